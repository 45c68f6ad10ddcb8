"""A loop elsewhere: what it is asked with, what is kept of it, and what calls come back."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from carnet.core.messages.events import (
    Done,
    Event,
    Message,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    Waiting,
)
from carnet.core.messages.interrupt import Resolution
from carnet.errors import CarnetError, ProviderError, ProviderUnavailable
from carnet.ports.engine.calls import AgentAsk, AgentCalls
from carnet.ports.engine.loop import LoopTurn
from carnet.ports.world.http_client import NotSent, Outbound
from carnet.runtime.agents.http_engine import EngineAddress, HttpEngine, OpenStreams
from carnet.testing.clock import FakeClock, FakeIds
from carnet.testing.wait import until_so
from carnet.wire.crypto import ed25519
from carnet.wire.dialects.engine_chat.bearer import TurnBearer, read_bearer
from carnet.wire.dialects.engine_chat.request import EngineRequest, read_request
from tests.engine.scene import ALICE, YES, Kept, Written

SEED = b"\x01" * 32
CALL = ("tool-call", {"id": "c1", "name": "look", "arguments": {}})
RESULT = ("tool-result", {"id": "c1", "output": "seen"})
SO = ("text-delta", {"content": "So."})
STOP = ("done", {"finish_reason": "stop"})
WAITS = ("done", {"finish_reason": "approval_required"})


class Key:
    """The key of the gateway."""

    kid = "k-1"
    public = ed25519.public_of(SEED)

    def sign(self, message: bytes) -> bytes:
        return ed25519.signer(SEED)(message)

    def signer(self) -> "Key":
        return self


class Answer:
    """A stream of frames; one may be an error, which breaks it."""

    status = 200

    def __init__(self, frames: Sequence[Any]) -> None:
        self._frames = list(frames)

    def header(self, name: str) -> str | None:
        del name
        return "text/event-stream"

    async def next(self) -> bytes:
        if not self._frames:
            return b""
        frame = self._frames.pop(0)
        if isinstance(frame, Exception):
            raise frame
        if isinstance(frame, bytes):
            return frame
        name, data = frame if isinstance(frame, tuple) else await frame()
        return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()

    async def read(self) -> bytes:
        raise AssertionError("a stream is not read whole")

    def chunks(self) -> AsyncIterator[bytes]:
        raise AssertionError("a stream is read piece by piece")


class Scene:
    """A gateway's side, and the streams that it is given one after the other."""

    def __init__(self, *streams: Sequence[Any]) -> None:
        self.left = list(streams)
        self.asked: list[tuple[Message, ...]] = []
        self.bearers: list[TurnBearer] = []
        self.streams = OpenStreams()
        self.written = Written()
        self.kept = Kept()
        address = EngineAddress(url="http://engine", domain="acme.example", seconds=9)
        self._engine = HttpEngine(
            self, address, Key(), FakeClock(), ids=FakeIds(), streams=self.streams
        )

    @asynccontextmanager
    async def send(self, request: Outbound) -> AsyncIterator[Answer]:
        self.asked.append(read_request(request.body).messages)
        written = request.secrets["authorization"].reveal().removeprefix("Bearer ")
        self.bearers.append(read_bearer(written).bearer)
        if not self.left:
            raise ProviderUnavailable("refused") from NotSent()
        yield Answer(self.left.pop(0))

    async def run(
        self, resolved: dict[str, Resolution] | None = None, calls: AgentCalls | None = None
    ) -> Done | Waiting:
        request = EngineRequest(messages=(Message.user("Hi"),), correlation="req_1")
        turn = LoopTurn(
            request=request,
            actor=ALICE,
            name="t1",
            agent="assistant",
            resolved=resolved or {},
            once=self.kept,
            calls=calls,
        )
        self.kept.again()
        self.written.events.clear()
        return await self._engine(turn, self.written)


async def test_it_is_asked_for_an_agent_with_a_bearer_of_its_own() -> None:
    scene = Scene([SO, STOP])
    assert await scene.run() == Done("stop")
    (bearer,) = scene.bearers
    assert (bearer.actor, bearer.turn, bearer.agent) == (ALICE, "t1", "assistant")
    assert bearer.id


async def test_what_was_used_before_a_stream_failed_is_told() -> None:
    failed = ("error", {"code": "tool_error", "message": ""})
    for end in (failed, ProviderUnavailable("the line is dead")):
        scene = Scene([b": used 30 5\n\n", CALL, RESULT, b": used 70 9\n\n", end])
        with pytest.raises(CarnetError):
            await scene.run()
        assert scene.written.used == [Usage(30, 5), Usage(40, 4)]


async def test_what_was_used_is_counted_also_where_nobody_reads_on() -> None:
    scene, is_held = Scene([SO, SO, b": used 30 5\n\n", asyncio.Event().wait]), asyncio.Event()

    async def write(event: Event, /) -> None:
        del event
        is_held.set()
        await asyncio.Event().wait()

    scene.written.write = write  # type: ignore[method-assign]
    running = asyncio.ensure_future(scene.run())
    await is_held.wait()
    await until_so(lambda: scene.written.used, bool)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert scene.written.used == [Usage(30, 5)]


async def test_where_no_loop_is_the_log_says_how_it_is_started() -> None:
    with pytest.raises(ProviderUnavailable) as raised:
        await Scene().run()
    assert "start it: carnet engine" in raised.value.detail
    assert raised.value.detail.endswith("refused")


async def test_what_tools_gave_before_a_stream_broke_is_not_asked_for_again() -> None:
    broken = ProviderUnavailable("the line is dead")
    scene = Scene([CALL, RESULT, broken], [SO, STOP])
    with pytest.raises(CarnetError):
        await scene.run()
    assert await scene.run() == Done("stop")
    call = ToolCall("c1", "look", "{}", is_own=True)
    assert scene.written.events == [call, ToolResult("c1", "ok", "seen"), Text("So.")]
    assert scene.asked[1] == (
        Message.user("Hi"),
        Message("assistant", ("",), tool_calls=(ToolCall("c1", "look", "{}"),)),
        Message("tool", ("seen",), tool_call_id="c1"),
    )
    assert await scene.run() == Done("stop")
    assert len(scene.asked) == 2


async def test_a_call_that_waits_is_gone_on_with_once_it_is_answered() -> None:
    scene = Scene([CALL, WAITS], [CALL, RESULT, SO, STOP])
    assert isinstance(await scene.run(), Waiting)
    assert isinstance(await scene.run(), Waiting)
    assert await scene.run({"c1": YES}) == Done("stop")
    assert [bearer.resolved for bearer in scene.bearers] == [{}, {"c1": YES}]


async def test_an_approval_cannot_be_asked_for_under_the_name_of_one_that_was_given() -> None:
    scene = Scene([CALL, WAITS], [CALL, RESULT, CALL, WAITS])
    assert isinstance(await scene.run(), Waiting)
    with pytest.raises(ProviderError):
        await scene.run({"c1": YES})


class Calls:
    """Calls others for a turn; whom it calls waits, as long as it does."""

    def __init__(self, *, waiting: bool = False) -> None:
        self.waits: set[str] = {"c1"} if waiting else set()
        self.made: list[AgentAsk] = []

    async def ask_agent(self, ask: AgentAsk, /) -> str:
        self.made.append(ask)
        return "yes"


async def test_its_bearer_is_good_for_calls_while_its_stream_is_open() -> None:
    calls, found = Calls(), list[AgentCalls | None]()
    scene = Scene()

    async def look() -> tuple[str, Any]:
        id = scene.bearers[0].id
        asked = ((id, "t1", "assistant"), (id, "t2", "assistant"), (id, "t1", "x"), ("y", "t1", ""))
        found.extend([scene.streams.find(*each) for each in asked])
        return SO

    scene.left = [[look, STOP]]
    await scene.run(calls=calls)
    assert found == [calls, None, None, None]
    assert scene.streams.find(scene.bearers[0].id, "t1", "assistant") is None


async def test_a_call_whose_callee_waits_is_made_again_when_the_turn_goes_on() -> None:
    scene = Scene([CALL, WAITS], [CALL, RESULT, SO, STOP])
    assert isinstance(await scene.run(calls=Calls(waiting=True)), Waiting)
    assert await scene.run(calls=Calls()) == Done("stop")
    assert scene.bearers[1].resolved == {"c1": Resolution(outcome="accepted")}


async def test_calls_of_what_was_kept_are_noted_again() -> None:
    calls = Calls()
    asked = AgentAsk(to="@b@b.example", messages=(Message.user("Hi"),), call="c1")

    async def meanwhile() -> tuple[str, Any]:
        await calls.ask_agent(asked)
        return RESULT

    scene = Scene([CALL, meanwhile, ProviderUnavailable("dead")], [SO, STOP])
    with pytest.raises(CarnetError):
        await scene.run(calls=calls)
    again = Calls()
    assert await scene.run(calls=again) == Done("stop")
    assert again.made == [asked]
