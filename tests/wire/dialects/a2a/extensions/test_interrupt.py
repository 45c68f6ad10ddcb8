"""What a turn waits for in our own extension, and the answer to it."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.messages.interrupt import KINDS, Interrupt, Resolution
from carnet.errors import InvalidRequest
from carnet.wire.dialects.a2a.extensions import (
    AnswerClaim,
    read_answer,
    read_inbound,
    resolution_of,
    write_reply,
    write_status,
)
from carnet.wire.grammar.headers import Headers

IDS = st.text(string.ascii_letters + string.digits + "_-", min_size=1, max_size=40)
VALUES = st.none() | st.booleans() | st.text(max_size=20) | st.lists(st.integers(-9, 9), max_size=4)

INTERRUPTS = st.builds(
    Interrupt,
    kind=st.sampled_from(KINDS),
    message=IDS,
    id=IDS,
    state=IDS,
    url=st.none() | IDS.map("https://pay.example/{}".format),
    amount=st.none() | st.integers(0, 10**12),
    currency=st.just("credits"),
    expires_at=st.none() | st.just("2026-11-15T06:46:52Z"),
    origin=st.none() | st.just("@critic@globex.example"),
    options=st.lists(IDS, max_size=4).map(tuple),
    schema=st.none() | st.just({"type": "string"}),
)


@given(st.lists(INTERRUPTS, min_size=1, max_size=4, unique_by=lambda asked: asked.id))
def test_what_is_asked_is_read_as_the_same(interrupts: list[Interrupt]) -> None:
    found = read_answer(write_status(interrupts), currency="credits").interrupts
    for asked, read in zip(interrupts, found, strict=True):
        names = ("kind", "message", "id", "state", "url", "amount", "expires_at", "origin")
        assert [getattr(asked, name) for name in names] == [getattr(read, name) for name in names]
        assert (asked.options, asked.schema) == (read.options, read.schema)


@given(IDS, st.sampled_from(["accepted", "rejected"]), VALUES)
def test_an_answer_is_read_as_the_same(state: str, outcome: str, value: object) -> None:
    resolution = Resolution(
        outcome="accepted" if outcome == "accepted" else "rejected", value=value
    )
    metadata, _ = write_reply(state, resolution)
    read = read_inbound(metadata, None, headers=Headers([]), last_depth=3).resolution
    assert read is not None
    assert (read.state, read.outcome, read.value) == (state, outcome, value)


APPROVAL = Interrupt(kind="approval", id="int_1", state="s1", message="May it?")
PAY = Interrupt(kind="payment", id="int_2", state="s2", message="Pay.", amount=1)


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (AnswerClaim(outcome="accepted", id="int_1"), "s1"),
        (AnswerClaim(outcome="rejected", state="s2", value="no"), "s2"),
        (AnswerClaim(outcome="accepted", id="int_2", state="s2"), "s2"),
        (AnswerClaim(outcome="accepted", kind="payment"), "s2"),
    ],
)
def test_an_answer_is_to_the_interrupt_that_it_means(answer: AnswerClaim, state: str) -> None:
    stated = resolution_of(answer, [APPROVAL, PAY])
    assert (stated.state, stated.resolution.outcome) == (state, answer.outcome)
    assert stated.resolution.value == answer.value


@pytest.mark.parametrize(
    "answer",
    [
        AnswerClaim(outcome="accepted"),
        AnswerClaim(outcome="accepted", id="int_3"),
        AnswerClaim(outcome="accepted", id="int_1", state="s2"),
        AnswerClaim(outcome="accepted", id="int_1", kind="payment"),
    ],
)
def test_an_answer_that_means_none_or_several_is_refused(answer: AnswerClaim) -> None:
    with pytest.raises(InvalidRequest, match="one question"):
        resolution_of(answer, [APPROVAL, PAY])


def test_an_agreement_to_pay_is_no_approval() -> None:
    assert resolution_of(AnswerClaim(outcome="accepted"), [APPROVAL]).state == "s1"
    with pytest.raises(InvalidRequest):
        resolution_of(AnswerClaim(outcome="accepted", kind="payment"), [APPROVAL])
