"""Approvals in the words of BeeAI."""

from carnet.core.messages.interrupt import MOST_DATA_BYTES, Interrupt, Resolution
from carnet.wire.dialects.a2a.extensions.questions.beeai import BEEAI_URI, answer, ask, reply
from carnet.wire.dialects.a2a.extensions.questions.state import write_state

PLAIN = Interrupt(kind="approval", id="int_1", message="Send it?")


def test_a_plain_question_and_a_tool_are_told_apart() -> None:
    assert ask([PLAIN])[BEEAI_URI] == {
        "action": "generic",
        "title": None,
        "description": "Send it?",
    }
    tool = Interrupt(kind="approval", message="Send it?", more={"tool": "mail"})
    request = ask([tool])[BEEAI_URI]
    assert (request["action"], request["name"], request["input"]) == ("tool-call", "mail", None)
    full = Interrupt(kind="approval", message="?", more={"tool": "mail", "arguments": {"a": 1}})
    assert ask([full])[BEEAI_URI]["input"] == {"a": 1}


def test_of_several_none_is_asked_since_an_answer_could_not_say_which() -> None:
    assert ask([PLAIN, Interrupt(kind="approval", id="int_2", message="?")]) == {}


def test_input_too_long_to_be_kept_is_left_out() -> None:
    request = {"action": "tool-call", "name": "write", "input": {"text": "x" * MOST_DATA_BYTES}}
    reading = answer({BEEAI_URI: request}, "credits")
    assert reading is not None
    assert reading.interrupts[0].more == {"tool": "write"}


def test_what_was_not_asked_so_is_not_answered_so() -> None:
    for state in ("", "s3cret", "beeai.W10", write_state("beeai", ["urn:other"])):
        assert reply(state, Resolution(outcome="accepted")) is None
