"""Agents that speak agents-api, byte by byte: what is sent, and what becomes of the answer."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from carnet.core.call import Ask
from carnet.core.messages.events import (
    OUTBOUND_CALL,
    Data,
    Done,
    Event,
    Extension,
    Message,
    Text,
    Usage,
    Waiting,
)
from carnet.core.messages.interrupt import Answered, Interrupt, Resolution
from carnet.core.people.identity import Secret
from carnet.core.people.proof import Spending
from carnet.errors import (
    DepthExceeded,
    InvalidRequest,
    PeerRefused,
    ProviderError,
    ProviderUnavailable,
    SkillNotFound,
)
from carnet.runtime.agents.agents_api_peer import AgentsApiEndpoint, AgentsApiPeer
from carnet.runtime.client.key import ClientKey
from carnet.runtime.peers.signing import Signing, Stamping
from carnet.testing.clock import FakeClock, FakeIds
from carnet.wire import travel
from carnet.wire.dialects.agents_api.actions import write_envelopes
from carnet.wire.grammar import sse
from carnet.wire.grammar.headers import Headers
from tests.runtime.peer import Peer, Request, Script, answering, chunk, opened, reply, stream_head
from tests.runtime.scene import collect, fail, make_call

ASKED = Interrupt(kind="approval", message="Publish?", id="int_1", state="s")


def frame(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, **members}).encode()


def task(*parts: Any, state: str = "completed", **metadata: Any) -> dict[str, Any]:
    return {"status": {"state": state, "message": {"parts": list(parts)}}, "metadata": metadata}


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


WELL = reply(frame(result=task(words("well"))))


@asynccontextmanager
async def reaching(script: Script, **more: Any) -> AsyncIterator[tuple[AgentsApiPeer, Peer]]:
    fields = {name: more.pop(name) for name in ("token", "peer") if name in more}
    async with Peer(script) as peer, opened() as http:
        url = f"http://127.0.0.1:{peer.port}/agents-api/v1/agent/critic"
        stamping = Stamping(host="https://gw.acme.example", domain="acme.example")
        given: dict[str, Any] = {
            "most_cost": 1_000_000,
            "domain": "acme.example",
            "stamping": stamping,
        }
        given |= more
        yield AgentsApiPeer(http, AgentsApiEndpoint(url=url, **fields), **given), peer


def body_of(request: Request) -> Any:
    return json.loads(request.body)


def kinds(events: list[Event]) -> list[Event]:
    """What was said, without the record of the call."""
    return [each for each in events if not isinstance(each, Extension)]


def record(events: list[Event]) -> Any:
    (found,) = [each for each in events if isinstance(each, Extension)]
    assert found.name == OUTBOUND_CALL
    return found.payload


async def test_a_call_is_a_message_under_our_turn_with_our_token() -> None:
    async with reaching(answering(WELL), token=Secret("wp_token")) as (agent, peer):
        events = await collect(agent, make_call())
    assert kinds(events) == [Text("well"), Done()]
    assert record(events)["code"] is None
    (request,) = peer.requests
    body = body_of(request)
    assert request.lines[0] == "POST /agents-api/v1/agent/critic HTTP/1.1"
    assert (body["method"], body["params"]["id"]) == ("message/send", "run_1.t0.critic")
    fields = {name.lower(): value for name, value in request.headers.items()}
    assert fields["authorization"] == "Bearer wp_token"
    assert fields["x-agents-api-chain-depth"] == "1"
    assert fields["accept"] == "application/json"


async def test_a_stream_is_passed_on_as_it_comes() -> None:
    delta = {
        "method": "message/delta",
        "params": {"delta": {"deltaType": "content", "content": "we"}},
    }
    frames = [
        sse.write_event(json.dumps(delta).encode()),
        sse.write_event(frame(result=task(words("well")))),
    ]
    answer = stream_head() + b"".join(map(chunk, frames)) + chunk(b"")
    async with reaching(answering(answer)) as (agent, peer):
        assert kinds(await collect(agent, make_call(stream=True))) == [
            Text("we"),
            Text("ll"),
            Done(),
        ]
        assert body_of(peer.requests[0])["method"] == "message/stream"
    cut = stream_head() + chunk(frames[0]) + chunk(b"")
    async with reaching(answering(cut)) as (agent, _):
        error, events = await fail(agent, make_call(stream=True))
    assert isinstance(error, ProviderUnavailable)
    assert events[0] == Text("we")


async def test_a_long_answer_is_read_whole() -> None:
    long = "x" * 200_000
    async with reaching(answering(reply(frame(result=task(words(long)))))) as (agent, _):
        assert kinds(await collect(agent, make_call())) == [Text(long), Done()]


async def test_what_it_says_to_cost_is_owed_up_to_what_it_may() -> None:
    usage = {"cost": "7", "currency": "credits", "input_tokens": 3}
    answer = reply(frame(result=task(words("well"), usage=usage)))
    for most, budget, cost in (
        (2_000_000, None, 2_000_000),
        (2_000_000, 5, 5),
        (9_000_000, None, 7_000_000),
    ):
        async with reaching(answering(answer), most_cost=most) as (agent, _):
            spending = None if budget is None else Spending(money=budget, currency="credits")
            events = await collect(agent, make_call(budget=spending))
        (used,) = [each for each in events if isinstance(each, Usage)]
        assert used.cost == cost


async def test_what_it_waits_for_is_an_end_and_the_decision_goes_to_its_action() -> None:
    envelopes = write_envelopes(Waiting((ASKED,)), "task-9", created=None)
    parts = [{"type": "data", "data": each} for each in envelopes]
    waits = reply(frame(result=task(words("Publish?"), *parts, state="input-required")))
    decided = reply(frame(result={"action_id": "task-9.int_1", "result": {"applied": True}}))
    async with reaching(answering(waits, decided)) as (agent, peer):
        call = make_call()
        *_, end = await collect(agent, call)
        assert isinstance(end, Waiting)
        (question,) = end.interrupts
        answer = Resolution(outcome="accepted", resolver="person:1", value={"x": 1})
        again = replace(call, resolved=(Answered(question, answer),))
        assert kinds(await collect(agent, again)) == [Data({"applied": True}), Done()]
        params = body_of(peer.requests[1])["params"]
    assert params == {
        "action_id": "task-9.int_1",
        "decision": "accepted",
        "resolver": "person:1",
        "payload": {"value": {"x": 1}},
    }


async def test_of_several_decisions_those_before_may_be_known_there() -> None:
    refused = reply(frame(error={"code": -32603, "message": "it is not pending"}))
    async with reaching(answering(refused, WELL)) as (agent, peer):
        asked = [
            replace(ASKED, id=f"i{n}", more={"agents_api": {"action": f"a-{n}"}}) for n in (1, 2)
        ]
        answer = Resolution(outcome="rejected")
        call = replace(make_call(), resolved=tuple(Answered(each, answer) for each in asked))
        assert kinds(await collect(agent, call)) == [Text("well"), Done()]
        sent = [body_of(each)["params"] for each in peer.requests]
    assert [each["action_id"] for each in sent] == ["a-1", "a-2"]
    assert {each["resolver"] for each in sent} == {"acme.example"}


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (reply(b'{"code": "wp_no"}', status=403), PeerRefused),
        (reply(b'{"code": "site_chain_depth_exceeded"}', status=429), DepthExceeded),
        (reply(b"no json"), ProviderError),
        (reply(frame(error={"code": -32603, "message": "canary of theirs"})), PeerRefused),
    ],
)
async def test_a_refusal_is_recorded_and_its_words_stay_there(answer: bytes, kind: type) -> None:
    async with reaching(answering(answer)) as (agent, _):
        error, events = await fail(agent, make_call())
    assert isinstance(error, kind)
    assert record(events)["code"] == error.code
    assert "canary" not in str(error.safe_text)
    if isinstance(error, DepthExceeded):
        assert error.facts["observed"] == 1


async def test_what_the_dialect_has_no_word_for_does_not_leave() -> None:
    async with reaching(answering(WELL)) as (agent, peer):
        skilled = replace(make_call(), ask=Ask(messages=(), skill="sum"))
        assert isinstance((await fail(agent, skilled))[0], SkillNotFound)
        given = (Message("system", ("be kind",)), Message.user("hi"))
        for ask in (Ask(messages=given), Ask(messages=given[1:], body={"temperature": 1})):
            child = replace(make_call(), ask=ask, is_child=True)
            assert isinstance((await fail(agent, child))[0], InvalidRequest)
        assert peer.requests == []
        through = replace(make_call(), ask=Ask(messages=given))  # of a caller it is left out
        assert kinds(await collect(agent, through)) == [Text("well"), Done()]
        assert "be kind" not in peer.requests[0].body.decode()


async def test_a_peer_that_knows_our_key_is_sent_the_travel_document() -> None:
    key = ClientKey(b"o" * 32, kid="k1")
    signing = Signing(keys=key, domain="acme.example", clock=FakeClock(), ids=FakeIds())
    async with reaching(answering(WELL), signing=signing, peer="globex.example") as (agent, peer):
        await collect(agent, make_call())
        paid = replace(ASKED, kind="payment", amount=500, more={"agents_api": {"action": "a"}})
        answered = Answered(paid, Resolution(outcome="accepted"), is_charged=True)
        await collect(agent, replace(make_call(), resolved=(answered,)))
    for request in peer.requests:
        lines = [(name.lower().encode(), value.encode()) for name, value in request.headers.items()]
        document = travel.read_beside(Headers(lines), request.body)
        assert document is not None
        assert (document.audience, document.depth) == ("globex.example", 1)
    async with reaching(
        answering(WELL), signing=signing, peer="globex.example", token=Secret("t")
    ) as (agent, peer):
        await collect(agent, make_call())
    assert "carnet" not in {name.lower() for name in peer.requests[0].headers}
