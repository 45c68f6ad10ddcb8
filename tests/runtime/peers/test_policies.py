"""What an agent elsewhere asks for, and how it is brought the answer."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from carnet.core.call import Call
from carnet.core.messages.events import Done, Event, Text, Waiting
from carnet.core.messages.interrupt import Answered, Interrupt, Resolution
from carnet.errors import (
    CarnetError,
    DepthExceeded,
    LegalRestriction,
    PeerBusy,
    PeerRefused,
    PolicyForbidden,
)
from carnet.runtime.peers.policies import NOT_PAID
from carnet.runtime.wrappers.breaker import Breaker
from carnet.runtime.wrappers.retrying import Retrying
from carnet.testing.clock import FakeClock, FakeIds
from carnet.wire.dialects.policy import own_id
from tests.runtime.agents.elsewhere import call_record, remote_to, streamed
from tests.runtime.peer import answering, reply
from tests.runtime.scene import END, FINISH, collect, completion, delta, fail, make_call

ASKED = {
    "id": "int_1",
    "state": "s3cret",
    "kind": "payment",
    "message": "Two cents.",
    "amount": "0.02",
    "currency": "credits",
    "origin": "@seller@initech.example",
    "tariff": {"kind": "flat"},
}
READ = Interrupt(
    id=own_id(b"", "int_1"),
    state="s3cret",
    kind="payment",
    message="Two cents.",
    amount=20_000,
    currency="credits",
    origin="@seller@initech.example",
    more={"tariff": {"kind": "flat"}},
)
WELL = reply(completion("well"))


def policy(status: int = 402, *asked: dict[str, Any], **error: Any) -> bytes:
    """A refusal that asks for something."""
    listed = asked or (ASKED,)
    body = {"code": "payment_required", "interrupt": listed[0], "interrupts": listed, **error}
    return reply(json.dumps({"error": body}).encode(), status=status)


USED = reply(b'{"error":{"code":"policy_state_invalid"}}', status=409)


def answered(*interrupts: Interrupt, outcome: Any = "accepted", value: Any = None) -> Call:
    """A call whose turn runs on."""
    resolution = Resolution(outcome=outcome, resolver="token:alice", value=value)
    resolved = tuple(Answered(each, resolution, is_charged=True) for each in interrupts)
    return replace(make_call(), resolved=resolved)


async def end_of(*answers: bytes, call: Call | None = None) -> tuple[list[Event], list[str]]:
    """How a call ends, and what each of its requests brought."""
    async with remote_to(answering(*answers), domain="acme.example") as (remote, peer):
        events = await collect(remote, call or make_call())
        brought = [request.headers.get("carnet-resolution", "") for request in peer.requests]
    return events, brought


@pytest.mark.parametrize("status", [401, 402, 403, 429, 451, 503])
async def test_a_refusal_with_a_policy_is_what_the_callee_waits_for(status: int) -> None:
    events, _ = await end_of(policy(status))
    assert events == [call_record(status="waiting"), Waiting((READ,))]


async def test_a_stream_may_end_in_one_as_well() -> None:
    frame = b'data: {"error":%b}\n\n' % json.dumps({"code": "x", "interrupt": ASKED}).encode()
    async with remote_to(answering(streamed(delta("so far"), frame))) as (remote, _):
        events = await collect(remote, make_call(stream=True))
    assert events == [Text("so far"), call_record(status="waiting"), Waiting((READ,))]


async def test_it_is_neither_repeated_nor_held_against_the_callee() -> None:
    clock = FakeClock()
    breaker = Breaker(failures_to_open=1, clock=clock)
    async with remote_to(answering(policy(503), WELL)) as (remote, peer):
        agent = Retrying(remote, retries=2, clock=clock, ids=FakeIds(), breaker=breaker)
        events = await collect(agent, make_call())
    assert (events[-1], len(peer.requests)) == (Waiting((READ,)), 1)
    assert (breaker.state, breaker.failures) == ("closed", 0)


@pytest.mark.parametrize(
    ("answer", "leaf"),
    [
        (reply(b"{}", status=429), PeerBusy),
        (reply(b'{"error":{"code":"payment_required"}}', status=402), PeerRefused),
        (policy(429, code="bridge_depth_exceeded"), DepthExceeded),
        (policy(404), PeerRefused),
        (policy(402, {"message": "no kind"}), PeerRefused),
        (policy(402, ASKED | {"kind": 7}), PeerRefused),
    ],
)
async def test_what_is_no_policy_stays_what_it_is(answer: bytes, leaf: type[CarnetError]) -> None:
    async with remote_to(answering(answer)) as (remote, _):
        error, _ = await fail(remote, make_call())
    assert type(error) is leaf


@pytest.mark.parametrize(
    ("kind", "leaf"), [("legal", LegalRestriction), ("forbidden", PolicyForbidden)]
)
async def test_what_nobody_can_answer_is_the_end_and_its_words_are_for_the_operator(
    kind: str, leaf: type[CarnetError]
) -> None:
    """R43."""
    async with remote_to(answering(policy(451, ASKED | {"kind": kind}))) as (remote, _):
        error, events = await fail(remote, make_call())
    assert (type(error), error.words) == (leaf, "Two cents.")
    assert "cents" not in error.safe_text + error.next_step
    assert events == [call_record(status="refused", code=leaf.code)]


async def test_a_kind_that_nobody_knows_is_kept_and_waited_for() -> None:
    events, _ = await end_of(policy(403, ASKED | {"kind": "carrier_pigeon"}))
    assert events[-1] == Waiting((replace(READ, kind="carrier_pigeon"),))


@pytest.mark.parametrize(
    "origin", ["@seller@acme.example", "agent://seller.acme.example", "seller", "@@", 7, None]
)
async def test_nobody_elsewhere_speaks_for_an_agent_of_ours(origin: object) -> None:
    events, _ = await end_of(policy(402, ASKED | {"origin": origin}))
    assert events[-1] == Waiting((replace(READ, origin="@critic@globex.example"),))


async def test_a_turn_that_runs_on_is_sent_without_the_answer_first_and_then_with_it() -> None:
    events, brought = await end_of(policy(), WELL, call=answered(READ))
    assert brought == ["", "s3cret;outcome=accepted"]
    assert events == [Text("well"), call_record(status="done"), Done()]


async def test_what_was_said_before_the_question_is_shown_once() -> None:
    frame = b'data: {"error":%b}\n\n' % json.dumps({"code": "x", "interrupt": ASKED}).encode()
    first = streamed(delta("so far "), frame)
    second = streamed(delta("so far "), delta("well"), FINISH, END)
    call = replace(answered(READ), ask=make_call(stream=True).ask)
    events, brought = await end_of(first, second, call=call)
    assert brought == ["", "s3cret;outcome=accepted"]
    assert events == [Text("so far "), Text("well"), call_record(status="done"), Done()]


async def test_an_answer_that_has_arrived_is_not_sent_again() -> None:
    events, brought = await end_of(WELL, call=answered(READ))
    assert brought == [""]
    assert events[-1] == Done()


async def test_an_answer_that_is_refused_there_is_not_sent_again() -> None:
    """R56: the call is, without it."""
    events, brought = await end_of(policy(), USED, WELL, call=answered(READ, value=["x"]))
    assert brought == ["", "s3cret;outcome=accepted;value=:WyJ4Il0=:", ""]
    assert events[-1] == Done()
    again, _ = await end_of(policy(), USED, policy(), call=answered(READ))
    assert again == [call_record(status="waiting"), Waiting((READ,))]


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (402, "payment_required", f"{NOT_PAID} Two cents."),
        (402, "spending_limit_reached", f"{NOT_PAID} Two cents."),
        (402, "bill_unpaid", f"{NOT_PAID} Two cents."),
        (431, "headers_too_large", "Two cents."),
        (400, "malformed_caller_context", "Two cents."),
    ],
)
async def test_a_payment_that_is_beyond_our_credit_there_is_asked_for_again(
    status: int, code: str, words: str
) -> None:
    """Nothing was used there: the person is told why, and can answer once there is room."""
    refused = reply(b'{"error":{"code":"%b"}}' % code.encode(), status=status)
    again, brought = await end_of(policy(), refused, policy(), call=answered(READ))
    assert brought == ["", "s3cret;outcome=accepted", ""]
    assert again == [call_record(status="waiting"), Waiting((replace(READ, message=words),))]


async def test_a_call_that_is_beyond_our_credit_there_before_it_is_answered_fails() -> None:
    refused = reply(b'{"error":{"code":"payment_required"}}', status=402)
    async with remote_to(answering(refused)) as (remote, peer):
        error, _ = await fail(remote, answered(READ))
    assert (type(error), len(peer.requests)) == (PeerRefused, 1)


async def test_several_answers_are_brought_one_after_the_other() -> None:
    other = ASKED | {"id": "int_2", "state": "0ther"}
    second = replace(READ, id=own_id(b"", "int_2"), state="0ther")
    events, brought = await end_of(
        policy(402, ASKED, other),
        policy(402, other),
        WELL,
        call=answered(READ, second, outcome="rejected"),
    )
    assert brought == ["", "s3cret;outcome=rejected", "0ther;outcome=rejected"]
    assert events[-1] == Done()


async def test_another_question_than_the_answered_one_is_asked_again() -> None:
    new = ASKED | {"id": "int_3", "state": "n3w"}
    events, brought = await end_of(policy(402, new), call=answered(READ))
    assert brought == [""]
    assert events[-1] == Waiting((replace(READ, id=own_id(b"", "int_3"), state="n3w"),))


async def test_nobody_elsewhere_chooses_the_name_of_a_question_of_another_turn() -> None:
    """A45: people answer by that name."""
    names = set()
    for key in (b"one", b"other"):
        call = make_call()
        call = replace(call, record=replace(call.record, key=key))
        events, _ = await end_of(policy(), call=call)
        (asked,) = events[-1].interrupts  # type: ignore[union-attr]  # it waits
        names.add(asked.id)
    assert len(names | {"int_1"}) == 3


async def test_what_was_agreed_to_be_paid_may_be_charged_beyond_the_limit() -> None:
    costly = completion("well", cost="1.05", currency="credits")
    async with remote_to(answering(reply(costly))) as (remote, _):
        plain = await collect(remote, make_call())
        agreed = await collect(remote, answered(replace(READ, amount=50_000)))
    assert call_record(status="done", cost=1_000_000) in plain
    assert call_record(status="done", cost=1_050_000) in agreed
