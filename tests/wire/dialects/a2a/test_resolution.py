"""What a message answers: by an extension, or in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.messages.interrupt import Interrupt, InterruptRecord
from carnet.errors import InvalidRequest, PolicyStateInvalid
from carnet.wire.dialects.a2a import DIALECT
from carnet.wire.dialects.a2a.extensions.interrupt import INTERRUPT_URI
from carnet.wire.dialects.a2a.extensions.questions.beeai import BEEAI_URI
from carnet.wire.dialects.a2a.extensions.questions.kagent import KAGENT_URI
from carnet.wire.dialects.a2a.extensions.questions.x402 import PAYLOAD, STATUS
from carnet.wire.dialects.a2a.resolution import MOST_BYTES, NO, YES, answer_of
from tests.wire.dialects.a2a.scene import send


def asked(kind: str, name: str = "int_1") -> InterruptRecord:
    interrupt = Interrupt(kind=kind, id=name, state=f"s-{name}", message="?", amount=5)
    return InterruptRecord(interrupt=interrupt, status="open", expires=0)


APPROVAL, INPUT, PAYMENT = asked("approval"), asked("input"), asked("payment", "int_2")


def words(text: str, record: InterruptRecord = APPROVAL) -> tuple[str, str, object]:
    stated = answer_of(send(taskId="t", parts=[{"text": text}]), [record])
    return stated.state, stated.resolution.outcome, stated.resolution.value


@pytest.mark.parametrize("word", sorted(YES | NO))
def test_a_clear_word_is_an_answer(word: str) -> None:
    outcome = "accepted" if word in YES else "rejected"
    for text in (word, word.upper(), f" {word.title()}! ", f"{word}."):
        assert words(text) == ("s-int_1", outcome, None)


@given(st.text(max_size=30))
def test_no_other_word_is_a_yes(text: str) -> None:
    if text.strip().lower().rstrip(".!") in YES | NO:
        return
    with pytest.raises(InvalidRequest):
        words(text)


@pytest.mark.parametrize("text", ["", "yes and no", "maybe", "not ok", "approve it", "yeah"])
def test_what_is_not_clear_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        words(text)


def test_a_value_is_what_was_written_or_the_first_data() -> None:
    assert words("Bern", INPUT) == ("s-int_1", "accepted", "Bern")
    parts = [{"text": "see"}, {"data": {"city": "Bern"}}, {"data": 7}]
    stated = DIALECT.answer_of(send(parts=parts), (INPUT,))
    assert stated.resolution.value == {"city": "Bern"}


@pytest.mark.parametrize(
    ("metadata", "state", "outcome"),
    [
        ({INTERRUPT_URI: {"id": "int_1", "outcome": "rejected"}}, "s-int_1", "rejected"),
        ({INTERRUPT_URI: {"state": "s-int_2", "outcome": "accepted"}}, "s-int_2", "accepted"),
        ({STATUS: "payment-rejected"}, "s-int_2", "rejected"),
        (
            {
                KAGENT_URI: {
                    "type": "tool_approval_response",
                    "approvals": [{"id": "int_1", "approved": True}],
                }
            },
            "s-int_1",
            "accepted",
        ),
        (
            {
                INTERRUPT_URI: {"id": "int_1", "outcome": "rejected"},
                BEEAI_URI: {"decision": "approve"},
            },
            "s-int_1",
            "rejected",
        ),
    ],
)
def test_an_extension_says_which_of_several_is_answered(
    metadata: dict[str, object], state: str, outcome: str
) -> None:
    stated = answer_of(send(metadata, taskId="t"), [APPROVAL, PAYMENT])
    assert (stated.state, stated.resolution.outcome) == (state, outcome)


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {INTERRUPT_URI: {"outcome": "accepted"}},
        {INTERRUPT_URI: {"id": "int_9", "outcome": "accepted"}},
        {BEEAI_URI: {"decision": "approve"}},
        {BEEAI_URI: {"decision": "perhaps"}},
        {STATUS: "payment-submitted", PAYLOAD: {"scheme": "exact", "payload": "s3cret"}},
    ],
)
def test_what_does_not_say_which_of_several_is_refused(metadata: dict[str, object] | None) -> None:
    with pytest.raises(InvalidRequest) as refused:
        answer_of(send(metadata, parts=[{"text": "approve"}]), [APPROVAL, PAYMENT])
    assert "s3cret" not in str(refused.value)


def test_a_resolution_by_its_state_answers_what_has_it_and_nothing_else() -> None:
    resolution = {"in_reply_to_state": "s-int_2", "outcome": "paid", "proof": "x"}
    metadata = {"mentionable": {"policy_resolution": resolution}}
    stated = answer_of(send(metadata), [APPROVAL, PAYMENT])
    assert (stated.state, stated.resolution.outcome) == ("s-int_2", "accepted")
    assert stated.resolution.value == {"proof": "x"}
    with pytest.raises(PolicyStateInvalid):
        answer_of(send(metadata), [APPROVAL])


def test_a_value_in_words_is_bounded() -> None:
    with pytest.raises(InvalidRequest, match="at most"):
        words("x" * MOST_BYTES, INPUT)
