"""Agents elsewhere: what leaves, and what a refusal is read as."""

import json
from hashlib import blake2b
from typing import Any

import msgspec
import pytest

from carnet.core.call import Call
from carnet.core.chain.carnet import Trace
from carnet.core.messages.events import OUTBOUND_CALL, RESULT, Done, Extension, Text
from carnet.core.people.identity import Secret
from carnet.errors import (
    ConfigInvalid,
    DepthExceeded,
    PeerBusy,
    PeerNotListed,
    PeerRefused,
    ProviderError,
    ProviderUnavailable,
    SkillNotFound,
)
from carnet.runtime.agents.remote import RemoteEndpoint, Skilled
from carnet.runtime.peers.signing import Stamping
from carnet.runtime.wrappers.retrying import Retrying
from carnet.testing.clock import FakeClock, FakeIds
from tests.runtime.agents.elsewhere import ANSWER, call_record, provider_to, remote_to, streamed
from tests.runtime.peer import JSON, Line, Peer, answering, chunk, head, reply
from tests.runtime.scene import END, FINISH, collect, completion, delta, fail, make_call

CREDENTIAL = Secret("Bearer sk-tan-user-123")
CHAIN = ("x-tangle-", "x-agents-api-", "x-actor-", "carnet", "traceparent", "tracestate")

LISTED = Stamping(takes_credential=True)


def chain_of(error: BaseException) -> list[BaseException]:
    """An error and all that it came from, shown or not."""
    near = [link for link in (error.__cause__, error.__context__) if link is not None]
    return [error, *(link for one in near for link in chain_of(one))]


# ---------------------------------------------------------------------- skills by name


def skilled(*, is_carnet: bool) -> Skilled:
    async def found() -> bool:
        return is_carnet

    return Skilled(found, "carnet peers add globex.example --dialect samvad")


def asking(skill: str | None, payload: dict[str, Any], *, stream: bool = False) -> Call:
    """A call as it comes by SAMVAD: no messages, and no body of chat."""
    call = make_call(stream=stream)
    ask = msgspec.structs.replace(call.ask, messages=(), skill=skill, payload=payload)
    return msgspec.structs.replace(call, ask=ask)


def with_result(text: str, result: dict[str, Any]) -> bytes:
    body = {**json.loads(completion(text)), "carnet": {"result": result}}
    return reply(json.dumps(body).encode())


async def test_a_skill_is_passed_on_to_a_carnet_beside_a_message() -> None:
    answer = with_result('{"total":5}', {"total": 5})
    async with remote_to(answering(answer), skilled=skilled(is_carnet=True)) as (remote, peer):
        events = await collect(remote, asking("add", {"a": 2}))
    body = json.loads(peer.requests[0].body)
    assert body["carnet"] == {"skill": "add", "payload": {"a": 2}}
    assert body["messages"] == [{"role": "user", "content": '{"a":2}'}]
    assert events == [Extension(RESULT, {"total": 5}), call_record(status="done"), Done()]


async def test_what_a_skill_says_before_its_result_is_kept() -> None:
    end = FINISH.replace(b'"choices"', b'"carnet":{"result":{"n":2}},"choices"')
    for stream, answer in (
        (False, with_result("ab", {"n": 2})),
        (True, streamed(delta("a"), delta("b"), end, END)),
    ):
        async with remote_to(answering(answer), skilled=skilled(is_carnet=True)) as (remote, _):
            events = await collect(remote, asking("recite", {}, stream=stream))
        assert "".join(event.text for event in events if isinstance(event, Text)) == "ab"
        assert Extension(RESULT, {"n": 2}) in events


async def test_a_skill_is_not_asked_of_who_would_read_it_as_chat() -> None:
    async with remote_to(answering(ANSWER), skilled=skilled(is_carnet=False)) as (remote, peer):
        error, events = await fail(remote, asking("add", {"a": 2}))
        assert peer.requests == []
    assert type(error) is SkillNotFound
    assert "carnet peers add globex.example --dialect samvad" in error.next_step
    assert events == [call_record(status="refused", code="skill_not_found")]


async def test_a_chat_that_came_as_a_skill_stays_a_chat() -> None:
    call = make_call()
    ask = msgspec.structs.replace(call.ask, skill="chat", payload={"text": "hello"})
    async with remote_to(answering(ANSWER), skilled=skilled(is_carnet=False)) as (remote, peer):
        await collect(remote, msgspec.structs.replace(call, ask=ask))
    assert "carnet" not in json.loads(peer.requests[0].body)


# ---------------------------------------------------------------------- what leaves


async def test_a_call_out_carries_all_six_headers() -> None:
    call = make_call(
        run="conv_abc",
        turn="conv_abc.1a2b3c4d.t0.critic",
        parent_turn="conv_abc.t0.researcher",
        depth=2,
        credential=CREDENTIAL,
    )
    async with remote_to(answering(ANSWER), stamping=LISTED) as (remote, peer):
        await collect(remote, call)
    headers = peer.requests[0].headers
    assert {name: headers[name] for name in headers if name.startswith("x-tangle-")} == {
        "x-tangle-forwarded-authorization": CREDENTIAL.reveal(),
        "x-tangle-forwarded-depth": "2",
        "x-tangle-runid": "conv_abc",
        "x-tangle-turnid": "conv_abc.1a2b3c4d.t0.critic",
        "x-tangle-parent-turnid": "conv_abc.t0.researcher",
        "x-tangle-speaker": "critic",
    }


async def test_a_retry_repeats_the_turn_id() -> None:
    clock = FakeClock()
    busy = reply(b"{}", status=503, headers={**JSON, "retry-after": "1"})
    async with remote_to(answering(busy)) as (remote, peer):
        again = Retrying(remote, retries=2, clock=clock, ids=FakeIds(), sleep=clock.sleep)
        error, _ = await fail(again, make_call(turn="run_1.t0.critic"))
    assert isinstance(error, PeerBusy)
    turns = [request.headers["x-tangle-turnid"] for request in peer.requests]
    assert turns == ["run_1.t0.critic"] * 3


async def test_every_outbound_agent_call_carries_depth_run_turn_parent_and_speaker() -> None:
    call = make_call(
        run="run_9",
        turn="run_9.1a2b3c4d.t2.critic",
        parent_turn="run_9.t0.researcher",
        depth=2,
        trace=Trace("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", "01", "vendor=1"),
    )
    async with remote_to(answering(ANSWER), token=Secret("tok-a")) as (remote, peer):
        await collect(remote, call)
    (request,) = peer.requests
    span = request.headers["traceparent"].split("-")[2]
    assert request.lines == [
        "POST /v1/chat/completions HTTP/1.1",
        f"host: 127.0.0.1:{peer.port}",
        "user-agent: carnet",
        "accept: application/json",
        "accept-encoding: identity",
        "content-type: application/json",
        "x-tangle-forwarded-depth: 2",
        "x-tangle-runid: run_9",
        "x-tangle-turnid: run_9.1a2b3c4d.t2.critic",
        "x-tangle-parent-turnid: run_9.t0.researcher",
        "x-tangle-speaker: critic",
        f"traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-{span}-01",
        "tracestate: vendor=1",
        "authorization: Bearer tok-a",
        f"content-length: {len(request.body)}",
    ]
    assert span not in {"00f067aa0ba902b7", "0" * 16}
    assert json.loads(request.body) == {
        "model": "critic",
        "stream": False,
        "messages": [{"role": "user", "content": "hello"}],
    }


async def test_calls_of_a_run_without_a_trace_share_the_one_that_the_run_names() -> None:
    calls = [make_call(), make_call(turn="run_1.t1.critic", depth=2), make_call(run="run_2")]
    async with remote_to(answering(ANSWER)) as (remote, peer):
        for call in (*calls, calls[0]):
            await collect(remote, call)
    parents = [request.headers["traceparent"] for request in peer.requests]
    _, named, span, flags = parents[0].split("-")
    assert named == blake2b(b"run_1").digest()[:16].hex()
    assert (len(span), flags) == (16, "01")
    assert [parent.split("-")[1] == named for parent in parents] == [True, True, False, True]
    assert parents[3] == parents[0]
    assert parents[1] != parents[0]
    assert "tracestate" not in peer.requests[0].headers


async def test_a_call_to_a_model_provider_carries_no_chain_header() -> None:
    call = make_call(
        parent_turn="run_1.t0.outer",
        credential=CREDENTIAL,
        trace=Trace("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"),
    )
    async with provider_to(answering(ANSWER)) as (provider, peer):
        await collect(provider, call)
    (request,) = peer.requests
    assert request.lines == [
        "POST /v1/chat/completions HTTP/1.1",
        f"host: 127.0.0.1:{peer.port}",
        "user-agent: carnet",
        "accept: application/json",
        "accept-encoding: identity",
        "content-type: application/json",
        "authorization: Bearer sk-model",
        f"content-length: {len(request.body)}",
    ]
    assert not [name for name in request.headers if name.startswith(CHAIN)]
    assert b"sk-tan" not in request.head + request.body
    assert json.loads(request.body)["model"] == "gpt-x"


async def test_headers_are_written_in_lower_case_and_empty_ones_omitted() -> None:
    async with remote_to(answering(ANSWER)) as (remote, peer):
        await collect(remote, make_call(speaker=None))
    (request,) = peer.requests
    assert [name for name in request.headers if name != name.lower()] == []
    assert [line for line in request.lines if line.endswith((":", ": "))] == []
    absent = ("parent-turnid", "speaker", "forwarded-authorization")
    assert not {f"x-tangle-{name}" for name in absent} & set(request.headers)
    assert "authorization" not in request.headers


@pytest.mark.parametrize(
    "credential",
    [
        "Bearer sk-tan-user-123",
        "bearer  two",
        "Bearer x402.eyJ0eXAiOiJKV1QifQ==",
        "Bearer !#~/+=_-.",
    ],
)
async def test_a_forwarded_credential_leaves_byte_for_byte_to_a_listed_peer(
    credential: str,
) -> None:
    async with remote_to(answering(ANSWER), stamping=LISTED, token=Secret("tok-a")) as (
        remote,
        peer,
    ):
        await collect(remote, make_call(credential=Secret(credential)))
    line = f"\r\nx-tangle-forwarded-authorization: {credential}\r\n"
    assert line.encode() in peer.requests[0].head
    assert peer.requests[0].headers["authorization"] == "Bearer tok-a"


async def test_an_agent_owned_call_omits_the_forwarded_credential() -> None:
    more: Any = {"stamping": Stamping(takes_credential=True, forwards="agent-owned")}
    async with remote_to(answering(ANSWER), **more) as (remote, peer):
        await collect(remote, make_call(credential=CREDENTIAL))
    assert "x-tangle-forwarded-authorization" not in peer.requests[0].headers
    assert b"sk-tan" not in peer.requests[0].head
    assert peer.requests[0].headers["x-tangle-forwarded-depth"] == "1"


async def test_a_credential_that_may_not_leave_keeps_the_call_from_being_made() -> None:
    async with remote_to(answering(ANSWER)) as (remote, peer):
        error, events = await fail(remote, make_call(credential=CREDENTIAL))
    assert isinstance(error, PeerNotListed)
    assert events == [call_record(status="refused", code="peer_not_listed")]
    assert peer.connections == 0


def test_a_token_that_no_header_can_carry_is_refused_at_the_start() -> None:
    for token in ("a\r\nb", "a b", "ä", ""):
        with pytest.raises(ConfigInvalid):
            RemoteEndpoint(url="http://127.0.0.1/", model="m", token=Secret(token)).authorization()


async def test_a_system_prompt_is_said_first_and_the_rest_of_the_body_is_kept() -> None:
    call = make_call()
    body = {"model": "echo", "temperature": 0, "messages": [{"role": "user", "content": "hello"}]}
    call = msgspec.structs.replace(call, ask=msgspec.structs.replace(call.ask, body=body))
    async with provider_to(answering(ANSWER), system_prompt="Be brief.") as (provider, peer):
        await collect(provider, call)
        await collect(provider, make_call())
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hello"},
    ]
    kept, composed = [json.loads(request.body) for request in peer.requests]
    assert kept == {"model": "gpt-x", "temperature": 0, "stream": False, "messages": messages}
    assert composed == {"model": "gpt-x", "stream": False, "messages": messages}
    assert len(body["messages"]) == 1  # type: ignore[arg-type]


# ---------------------------------------------------------------------- refusals


def refusal(status: int, code: str, **facts: Any) -> bytes:
    body = {"error": {"code": code, "message": "no", **facts}, "code": code, "message": "no"}
    return reply(json.dumps(body).encode(), status=status)


async def test_a_depth_refusal_is_final_and_never_retried() -> None:
    answer = refusal(429, "bridge_depth_exceeded", observed=4, limit=4)
    clock = FakeClock()
    async with remote_to(answering(answer)) as (remote, peer):
        agent = Retrying(remote, retries=3, clock=clock, ids=FakeIds(), sleep=clock.sleep)
        error, events = await fail(agent, make_call())
    assert isinstance(error, DepthExceeded)
    assert error.public_facts() == {"observed": 4, "limit": 4}
    assert events == [call_record(status="refused", code="bridge_depth_exceeded")]
    assert len(peer.requests) == 1
    assert clock.slept == []


async def test_a_413_depth_refusal_is_read_like_a_429() -> None:
    answer = refusal(413, "bridge_depth_exceeded", observed=7, limit=4)
    async with remote_to(answering(answer)) as (remote, _):
        error, events = await fail(remote, make_call())
    assert isinstance(error, DepthExceeded)
    assert error.public_facts() == {"observed": 7, "limit": 4}
    assert events == [call_record(status="refused", code="bridge_depth_exceeded")]


async def test_another_413_is_not_a_depth_refusal() -> None:
    async with remote_to(answering(refusal(413, "body_too_large"))) as (remote, _):
        error, events = await fail(remote, make_call())
    assert isinstance(error, PeerRefused)
    assert error.public_facts() == {"peer_status": 413, "peer_code": "body_too_large"}
    assert events == [call_record(status="refused", code="peer_refused")]


async def test_a_rate_limit_of_a_peer_says_how_long_to_wait() -> None:
    answer = reply(b"{}", status=429, headers={**JSON, "retry-after": "7"})
    async with remote_to(answering(answer)) as (remote, _):
        error, _ = await fail(remote, make_call())
    assert isinstance(error, PeerBusy)
    assert error.retry_after == 7


async def test_a_date_to_come_back_at_is_measured_from_the_date_of_the_answer() -> None:
    dates = {
        "date": "Wed, 21 Oct 2026 07:28:00 GMT",
        "retry-after": "Wed, 21 Oct 2026 07:28:09 GMT",
    }
    async with remote_to(answering(reply(b"{}", status=503, headers={**JSON, **dates}))) as (
        remote,
        _,
    ):
        error, _ = await fail(remote, make_call())
    assert isinstance(error, PeerBusy)
    assert error.retry_after == 9


@pytest.mark.parametrize("status", [500, 502, 503])
async def test_a_fault_of_a_peer_is_a_peer_that_cannot_be_reached(status: int) -> None:
    async with remote_to(answering(reply(b"trace: /srv/x.py", status=status))) as (remote, _):
        error, events = await fail(remote, make_call())
    assert isinstance(error, ProviderUnavailable)
    assert events == [call_record(status="failed", code="provider_unavailable")]
    assert "/srv" not in error.safe_text


async def test_a_refusal_without_end_is_read_only_so_far() -> None:
    sent = 0

    async def script(line: Line) -> None:
        nonlocal sent
        await line.request()
        await line.say(head(403, {"transfer-encoding": "chunked"}))
        while True:
            await line.say(chunk(b"x" * 10_000))
            sent += 10_000

    async with remote_to(script) as (remote, _):
        error, _ = await fail(remote, make_call())
    assert isinstance(error, PeerRefused)
    assert sent < 32_000_000  # what the kernels hold, and no more


async def test_a_refusal_that_breaks_off_is_still_a_refusal() -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.say(head(402, {"content-length": "100"}) + b'{"err')

    async with remote_to(script) as (remote, _):
        error, _ = await fail(remote, make_call())
    assert isinstance(error, PeerRefused)
    assert error.facts["peer_status"] == 402


async def test_a_redirect_is_not_followed() -> None:
    async with Peer(answering(ANSWER)) as other:
        answer = reply(b"", status=307, headers={"location": other.url})
        async with remote_to(answering(answer)) as (remote, _):
            error, _ = await fail(remote, make_call(credential=None))
    assert isinstance(error, ProviderError)
    assert other.connections == 0


async def test_no_error_or_record_holds_a_credential() -> None:
    more: Any = {"stamping": LISTED, "token": Secret("tok-secret")}
    answers = (
        b"HTTP/1.1 garbage sk-tan\r\n\r\n",
        reply(b"no", status=500),
        reply(b"no", status=403),
    )
    for answer in answers:
        async with remote_to(answering(answer), **more) as (remote, _):
            error, events = await fail(remote, make_call(credential=Secret("Bearer sk-canary")))
        texts = [f"{error} {error.safe_text} {error.facts} {events}"]
        texts += [f"{link!r} {link.args}" for link in chain_of(error)]
        assert [text for text in texts if "sk-canary" in text or "tok-secret" in text] == []
        assert events[-1].name == OUTBOUND_CALL  # type: ignore[union-attr]
