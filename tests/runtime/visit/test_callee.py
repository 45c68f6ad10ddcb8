"""What an agent asks another with is judged before it leaves."""

from typing import Any

import pytest

import carnet
from carnet.core.messages.events import Message
from carnet.runtime.visit.callee import asked
from carnet.wire.dialects.openai.request import MOST_MESSAGES


def test_text_and_messages_alone_are_asked_as_they_always_were() -> None:
    message = carnet.Message.user("hi")
    for prompt in ("hi", message, [message]):
        ask = asked(prompt, None, {})
        assert (ask.messages, ask.body, ask.stream) == ((message,), None, False)
    assert asked("hi", "Be brief.", {}).messages == (carnet.Message.system("Be brief."), message)


def test_objects_stay_as_they_were_written_beside_messages_of_ours() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:,", "detail": "low"}}
    written = {"role": "user", "content": [{"type": "text", "text": "hi"}, image]}
    ask = asked([carnet.Message.assistant("yes?"), written], "x", {}, stream=True)
    assert [message.role for message in ask.messages] == ["system", "assistant", "user"]
    assert [link.url for link in ask.messages[2].images] == ["data:,"]
    assert ask.body == {
        "messages": [
            {"role": "system", "content": "x"},
            {"role": "assistant", "content": "yes?"},
            written,
        ]
    }


def test_what_was_given_is_copied() -> None:
    stop = ["a"]
    ask = asked("hi", None, {"stop": stop, "max_tokens": 3})
    stop.append("b")
    assert ask.body == {
        "messages": [{"role": "user", "content": "hi"}],
        "stop": ["a"],
        "max_tokens": 3,
    }
    assert ask.max_tokens == 3


@pytest.mark.parametrize(
    ("prompt", "more", "message"),
    [
        ([], {}, "ask with text, or with a list of messages such as carnet.Message.user"),
        (3, {}, "ask with text, or with a list of messages"),
        ({"role": "user", "content": "x"}, {}, "ask with text, or with a list of messages"),
        (["x"], {}, r"messages\[0\] must be a message such as"),
        (["x"] * (MOST_MESSAGES + 1), {}, f"at most {MOST_MESSAGES} messages"),
        ([{"role": "boss", "content": "x"}], {}, r"'messages\[0\].role' must be one of system"),
        ([{"role": "user", "content": "x"}, {"role": "user", "content": 3}], {}, r"\[1\].content'"),
        ([Message("boss", ("x",))], {}, r"'messages\[0\].role' must be one of system"),  # type: ignore[arg-type]
        ([Message("user", "x")], {}, r"'messages\[0\].parts' must be a tuple of texts"),  # type: ignore[arg-type]
        ([Message("user", (3,))], {}, r"'messages\[0\].parts' must be a tuple of texts"),  # type: ignore[arg-type]
        ("x", {"system": 3}, "'system' must be text"),
        ("x", {"metadata": {"at": object()}}, "what is asked is no JSON"),
        ("x", {"metadata": {"at": 2**60}}, "what is asked is no JSON: an integer beyond"),
        ("x", {"user": "\ud800"}, "what is asked is no JSON"),
    ],
)
def test_what_cannot_be_asked_is_told_to_whoever_wrote_the_agent(
    prompt: Any, more: dict[str, Any], message: str
) -> None:
    system = more.pop("system", None)
    with pytest.raises((TypeError, ValueError), match=message):
        asked(prompt, system, more)
