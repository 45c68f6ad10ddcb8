"""Agents elsewhere: what is made of their answers, good and bad."""

import asyncio
import json
import logging
from contextlib import aclosing

import pytest

from carnet.core.messages.events import Done, Event, Text, ToolCall, Usage
from carnet.core.messages.outbound_call import OutboundCall
from carnet.errors import DepthExceeded, ProviderError, ProviderTimeout
from carnet.ports.world.http_client import Bounds
from carnet.runtime.wrappers.timed import Timed
from carnet.testing.clock import FakeClock
from carnet.testing.wait import until_so
from tests.runtime.agents.elsewhere import ANSWER, call_record, provider_to, remote_to, streamed
from tests.runtime.loop_clock import LoopClock
from tests.runtime.peer import LONG, Line, answering, chunk, reply, stream_head
from tests.runtime.scene import (
    END,
    FINISH,
    Paper,
    collect,
    completion,
    delta,
    fail,
    make_call,
    streamed_events,
)


async def test_a_whole_answer_becomes_events_with_a_record_before_the_end() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 5, "cost": "0.0002", "currency": "credits"}
    async with remote_to(answering(reply(completion("well", **usage)))) as (remote, _):
        events = await collect(remote, make_call())
    assert events == [
        Text("well"),
        Usage(3, 5, 200, None, "credits"),
        call_record(status="done", cost=200),
        Done(),
    ]


async def test_a_stream_is_given_as_it_comes_and_its_connection_is_used_again() -> None:
    go_on = asyncio.Event()

    async def script(line: Line) -> None:
        while True:
            await line.request()
            await line.say(stream_head() + chunk(delta("one ")))
            await go_on.wait()
            await line.say(chunk(delta("two")) + chunk(FINISH) + chunk(END))
            await line.say(chunk(b""))

    events: list[Event] = []
    async with remote_to(script) as (remote, peer):
        async for event in streamed_events(remote, make_call(stream=True)):
            events.append(event)
            go_on.set()
        await collect(remote, make_call(stream=True))
    assert events == [Text("one "), Text("two"), Done()]
    assert peer.connections == 1
    assert peer.requests[0].headers["accept"] == "text/event-stream"
    assert json.loads(peer.requests[0].body)["stream"] is True


async def test_a_stream_that_does_not_hang_up_does_not_hold_the_end_back() -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.say(stream_head() + chunk(delta("one") + FINISH + END))
        await line.until_gone()

    async with remote_to(script) as (remote, peer):
        events = await asyncio.wait_for(collect(remote, make_call(stream=True)), LONG)
        await asyncio.wait_for(peer.gone.wait(), LONG)
    assert events == [Text("one"), call_record(status="done"), Done()]


@pytest.mark.parametrize("stream", [False, True])
async def test_what_came_decides_how_it_is_read(stream: bool) -> None:  # noqa: FBT001
    other = ANSWER if stream else streamed(delta("well"), FINISH, END)
    async with remote_to(answering(other)) as (remote, _):
        events = await collect(remote, make_call(stream=stream))
    assert events == [Text("well"), call_record(status="done"), Done()]


async def test_a_tool_call_passes_through() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    body = json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]}).encode()
    async with provider_to(answering(reply(body))) as (provider, _):
        events = await collect(provider, make_call())
    assert events == [ToolCall("c1", "find", "{}"), Done("tool_calls")]


async def test_a_model_provider_does_not_say_what_a_call_costs() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 5, "cost": "9", "currency": "credits"}
    async with provider_to(answering(reply(completion("well", **usage)))) as (provider, _):
        events = await collect(provider, make_call())
    assert events == [Text("well"), Usage(3, 5), Done()]


async def test_a_charge_beyond_the_limit_is_cut_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    usage = {"cost": "2.5", "run_cost": "3", "currency": "credits"}
    with caplog.at_level(logging.WARNING, "carnet.runtime"):
        async with remote_to(answering(reply(completion(**usage)))) as (remote, _):
            events = await collect(remote, make_call())
    assert Usage(None, None, 1_000_000, 3_000_000, "credits") in events
    assert call_record(status="done", cost=1_000_000) in events
    (record,) = caplog.records
    assert (record.run, record.turn) == ("run_1", "run_1.t0.critic")  # type: ignore[attr-defined]
    assert (record.charged, record.limit) == (2_500_000, 1_000_000)  # type: ignore[attr-defined]


# ---------------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize(
    "answer",
    [
        reply(b"<html>hello</html>"),
        reply(b""),
        reply(b'{"choices": []}'),
        reply(b"\xff\xfe"),
        reply(b"", status=204),
        streamed(b"data: not json\n\n"),
        streamed(b"data: \xff\xfe\n\n"),
        streamed(b"data: " + b"x" * 300_000 + b"\n\n"),
        streamed(b'data: {"error": {"code": "whatever", "message": "/srv/key"}}\n\n'),
    ],
)
async def test_an_answer_that_is_none_is_a_providers_error(answer: bytes) -> None:
    async with remote_to(answering(answer)) as (remote, _):
        error, events = await fail(remote, make_call(stream=True))
    assert isinstance(error, ProviderError)
    assert events == [call_record(status="failed", code="provider_error")]
    assert "srv" not in error.safe_text


async def test_a_stream_that_is_cut_off_is_not_complete() -> None:
    for answer in (streamed(delta("half")), stream_head() + chunk(delta("half")) + b"9\r\ndata:"):

        async def script(line: Line, answer: bytes = answer) -> None:
            await line.request()
            await line.say(answer)

        async with remote_to(script) as (remote, _):
            error, events = await fail(remote, make_call(stream=True))
        assert isinstance(error, ProviderError)
        assert events == [Text("half"), call_record(status="failed", code="provider_error")]


async def test_a_stream_that_goes_on_after_its_end_is_no_answer() -> None:
    async with remote_to(answering(streamed(delta("one") + FINISH + END + END))) as (remote, _):
        error, events = await fail(remote, make_call(stream=True))
    assert isinstance(error, ProviderError)
    assert events == [Text("one"), call_record(status="failed", code="provider_error")]


async def test_what_comes_after_the_end_is_not_read() -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.say(stream_head() + chunk(delta("one") + FINISH + END))
        await asyncio.sleep(0.02)
        await line.say(chunk(delta("two") + FINISH + END) + chunk(b""))
        await line.until_gone()

    async with remote_to(script) as (remote, _):
        events = await collect(remote, make_call(stream=True))
    assert events == [Text("one"), call_record(status="done"), Done()]


async def test_a_code_of_ours_inside_a_stream_keeps_its_meaning() -> None:
    frame = b'data: {"error": {"code": "bridge_depth_exceeded", "observed": 5, "limit": 4}}\n\n'
    async with remote_to(answering(streamed(delta("one"), frame))) as (remote, _):
        error, events = await fail(remote, make_call(stream=True))
    assert isinstance(error, DepthExceeded)
    assert events[-1] == call_record(status="refused", code="bridge_depth_exceeded")


async def test_a_peer_that_hangs_is_recorded_as_failed() -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.until_gone()

    async with remote_to(script, bounds=Bounds(first_byte_seconds=0.1)) as (remote, peer):
        error, events = await fail(remote, make_call())
        await asyncio.wait_for(peer.gone.wait(), LONG)
    assert isinstance(error, ProviderTimeout)
    assert events == [call_record(status="failed", code="provider_timeout")]


# ---------------------------------------------------------------------- what failed and cost


CHARGE = b'"usage": {"prompt_tokens": 3, "cost": "%b", "currency": "%b"}'


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("cost", "owed"), [(b"0.5", 500_000), (b"2.5", 1_000_000)])
async def test_what_a_failed_call_has_cost_is_owed_within_the_limit(
    stream: bool,  # noqa: FBT001
    cost: bytes,
    owed: int,
) -> None:
    body = b'{"error": {"code": "agent_failed"}, ' + CHARGE % (cost, b"credits") + b"}"
    answer = streamed(b"data: " + body + b"\n\n") if stream else reply(body, status=500)
    async with remote_to(answering(answer)) as (remote, _):
        error, events = await fail(remote, make_call(stream=stream))
    assert isinstance(error, ProviderError)
    assert events == [
        Usage(3, None, owed, None, "credits"),
        call_record(status="failed", code="provider_error", cost=owed),
    ]


async def test_a_cost_in_another_currency_is_not_owed() -> None:
    body = b'{"error": {"code": "agent_failed"}, ' + CHARGE % (b"0.5", b"USD") + b"}"
    async with remote_to(answering(reply(body, status=500))) as (remote, _):
        _, events = await fail(remote, make_call())
    assert events == [call_record(status="failed", code="provider_error")]


# ---------------------------------------------------------------------- nobody listens any more


async def one_and_no_more(line: Line) -> None:
    """Say one word, and wait until the other side has left."""
    await line.request()
    await line.say(stream_head() + chunk(delta("one")))
    await line.until_gone()


async def test_a_reader_that_leaves_closes_the_socket() -> None:
    async with remote_to(one_and_no_more) as (remote, peer):
        async with aclosing(streamed_events(remote, make_call(stream=True))) as events:
            assert await anext(events) == Text("one")
        await asyncio.wait_for(peer.gone.wait(), LONG)


async def test_a_cancelled_call_closes_the_socket_and_leaves_a_record() -> None:
    paper = Paper()
    async with remote_to(one_and_no_more) as (remote, peer):
        task = asyncio.create_task(collect(remote, make_call(stream=True), paper))
        await until_so(lambda: bool(paper.events))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(peer.gone.wait(), LONG)
    assert paper.events == [Text("one"), call_record(status="failed", code="provider_timeout")]


async def test_a_call_that_takes_too_long_leaves_a_record() -> None:
    clock, paper = LoopClock(), Paper()
    async with remote_to(one_and_no_more) as (remote, peer):
        timed = Timed(remote, seconds=10, clock=FakeClock())
        asking = asyncio.create_task(fail(timed, make_call(stream=True), paper))
        await until_so(lambda: bool(paper.events))
        await clock.sleep(15)  # and a peer may be silent for longer
        error, events = await asyncio.wait_for(asking, LONG)
        await asyncio.wait_for(peer.gone.wait(), LONG)
    assert isinstance(error, ProviderTimeout)
    assert events == [Text("one"), call_record(status="failed", code="provider_timeout")]


async def test_the_record_says_what_the_other_side_answered() -> None:
    noted: list[OutboundCall] = []

    class Noting(Paper):
        def called(self, call: OutboundCall, /) -> None:
            noted.append(call)

    body = b'{"error": {"code": "payment_required", "message": "x"}}'
    async with remote_to(answering(reply(body, status=402))) as (remote, _):
        await fail(remote, make_call(), Noting())
    (call,) = noted
    assert (call.dialect, call.state, call.code) == ("openai", "refused", "peer_refused")
    assert (call.peer_status, call.peer_code) == (402, "payment_required")
