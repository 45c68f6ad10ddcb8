"""Policy parts as an extension: where they lie, and the resolution that answers one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.messages.interrupt import Interrupt, Resolution
from carnet.errors import InvalidRequest
from carnet.wire.dialects.a2a.extensions.questions.policy import (
    MOST_VALUE_BYTES,
    answer,
    ask,
    read,
    resolution_metadata,
    speaks,
)
from carnet.wire.dialects.a2a.extensions.questions.policy_part import (
    POLICY_ALIAS,
    POLICY_URI,
    state_as_carried,
)
from carnet.wire.dialects.a2a.extensions.row import AnswerClaim

PART = {"kind": "payment_required", "message": "Pay.", "state": "S"}
KEPT = {"policy": {"kind": "payment_required"}}
YES = Resolution(outcome="accepted")


def claim(**given: Any) -> AnswerClaim:
    found = read([{"mentionable": {"policy_resolution": given}}], 3)
    assert found is not None
    assert found.answer is not None
    return found.answer


def asked(state: str = "S", more: dict[str, Any] | None = KEPT) -> Interrupt:
    return Interrupt(kind="payment", message="Pay.", state=state, more=more)


@pytest.mark.parametrize(
    "metadata",
    [
        {POLICY_URI: PART},
        {POLICY_URI: [PART]},
        {POLICY_URI: {"policies": [PART]}},
        {POLICY_ALIAS: PART},
        {"mentionable": {"policy": PART}},
        {"mentionable.policy": PART},
        {POLICY_URI: PART, "mentionable": {"policy": PART}},
    ],
)
def test_a_part_counts_wherever_it_lies(metadata: dict[str, Any]) -> None:
    found = answer(metadata, "credits")
    assert found is not None
    (only,) = found.interrupts
    assert (only.kind, only.message, only.state) == ("payment", "Pay.", "S")
    assert "S" not in str(found.claimed)


@pytest.mark.parametrize("metadata", [{}, {"mentionable": 7}, {"mentionable": {}}, {"x": PART}])
def test_what_has_no_part_asks_for_nothing(metadata: dict[str, Any]) -> None:
    assert answer(metadata, "credits") is None


def test_what_is_asked_is_read_as_it_was() -> None:
    found = answer(ask([asked()]), "credits")
    assert found is not None
    assert found.interrupts[0].state == "S"


@pytest.mark.parametrize(
    ("metadata", "is_spoken"),
    [
        ({"mentionable": 1}, True),
        ({"mentionable.x": 1}, True),
        ({"mentionables": 1}, False),
        ({}, False),
        (None, False),
        ("mentionable", False),
    ],
)
def test_who_speaks_mentionable(metadata: object, *, is_spoken: bool) -> None:
    assert speaks(metadata) is is_spoken


# ------------------------------------------------------------------ resolutions


@given(
    state=st.text(min_size=1, max_size=30),
    value=st.none() | st.text() | st.integers() | st.dictionaries(st.just("proof"), st.integers()),
)
def test_a_resolution_that_is_sent_down_is_read_as_it_was(state: str, value: object) -> None:
    question = asked(state_as_carried(state))
    sent = resolution_metadata(
        {"a": 1, "mentionable": {"agent_chain": 2}},
        question,
        Resolution(outcome="accepted", value=value),
    )
    assert sent["a"] == 1
    assert sent["mentionable"]["agent_chain"] == 2
    assert sent["mentionable"]["policy_resolution"]["in_reply_to_state"] == state
    found = read([sent], 3)
    assert found is not None
    assert found.answer is not None
    assert found.answer.state == question.state
    assert found.answer.value == (value if value != {} else None)
    assert found.answer.is_resumption
    assert state not in str(found.shown) or state in "{'outcome': 'accepted'}"


def test_what_has_no_state_or_is_no_part_is_called_again_as_it_was() -> None:
    for question in (asked(""), asked(more=None)):
        assert resolution_metadata({"a": 1}, question, YES) == {"a": 1}
    assert resolution_metadata({"mentionable": 7}, asked(), YES)["mentionable"] == {
        "policy_resolution": {"in_reply_to_state": "S", "outcome": "accepted"}
    }


@pytest.mark.parametrize(
    ("word", "outcome"),
    [(None, "accepted"), ("paid", "accepted"), ("done", "accepted"), ("declined", "rejected")],
)
def test_outcomes_have_several_words(word: str | None, outcome: str) -> None:
    given_words = {} if word is None else {"outcome": word}
    assert claim(in_reply_to_state="S", **given_words).outcome == outcome


def test_a_message_without_a_resolution_brings_none() -> None:
    assert read([{}, {"mentionable": {}}], 3) is None
    assert claim(in_reply_to_state="S", value={"a": 1}, b=2).value == {"a": 1}


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"in_reply_to_state": 7},
        {"in_reply_to_state": ""},
        {"in_reply_to_state": "s" * 1025},
        {"in_reply_to_state": "s", "outcome": "perhaps"},
        {"in_reply_to_state": "s", "outcome": 7},
        {"in_reply_to_state": "s", "proof": "x" * MOST_VALUE_BYTES},
    ],
)
def test_a_broken_resolution_is_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match=r"policy_resolution"):
        claim(**broken)
