"""`POST /engine/chat`: a request of the contract in, its stream out. It stands behind Auth.

Law 1. Nobody is asked who they are here: Auth has said so, in two headers, and whoever comes
       without them did not come by it.
Law 2. What is wrong before the stream has a status; in it, an end. What there is no word for is a
       fault of the loop: the connection is cut, so that nobody takes half an answer for one.
Law 3. A client that leaves cancels its answer. A stop ends those that run with a reason.
Law 4. The cause of a failure is in our log, under the name of the request.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.messages.events import End, Event, Failed, Usage
from carnet.core.people.identity import Secret
from carnet.engine.stop import LoopStop
from carnet.errors import CarnetError, Internal, MethodNotAllowed, RouteNotFound, ShuttingDown
from carnet.http.exchange import (
    Disconnected,
    DisconnectWatch,
    Exchange,
    Receive,
    Scope,
    Send,
    check_json_body,
)
from carnet.ports.engine.calls import AgentCalls
from carnet.ports.engine.loop import Engine, LoopTokens, LoopTurn
from carnet.ports.engine.tools import AskPolicy, TurnTriggers
from carnet.ports.memory.memory import TurnMemory
from carnet.ports.memory.past import TurnPast
from carnet.wire.dialects.dialect import Fields, Reply
from carnet.wire.dialects.engine_chat.actor import EngineActor, read_actor
from carnet.wire.dialects.engine_chat.bearer import TurnBearer, read_resolved, read_shown
from carnet.wire.dialects.engine_chat.refusals import SHUTTING_DOWN, write_refusal
from carnet.wire.dialects.engine_chat.request import EngineRequest, read_request
from carnet.wire.dialects.engine_chat.writer import EngineWriter
from carnet.wire.grammar import sse

logger = logging.getLogger("carnet.engine")

CHAT: Final = b"/engine/chat"
_OF_MACHINE: Final = ":"  # what the name of a machine holds, and that of no person
LARGE_BYTES: Final = 65_536  # of a body that is read beside the event loop
HEARTBEAT_SECONDS: Final = 15.0
KEEP_ALIVE: Final = sse.write_comment("keep-alive")
FindPolicy = Callable[[EngineActor, tuple[Secret, TurnBearer] | None], AskPolicy | None]
_STREAMED: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
)


class OfTurns(Struct, frozen=True, kw_only=True, eq=False):
    """What the bearer of a turn opens at the gateway that has signed it; None: nothing of that."""

    calls: Callable[[Secret], AgentCalls] | None = None  # of other agents
    memory: Callable[[Secret], TurnMemory] | None = None  # of the person it is for
    past: Callable[[Secret], TurnPast] | None = None  # what she has said
    triggers: Callable[[Secret], TurnTriggers] | None = None  # her schedules and hooks
    tokens: Callable[[Secret], LoopTokens] | None = None  # what is left of them


NOTHING: Final = OfTurns()


class EngineEndpoint:
    """Serves one loop."""

    def __init__(
        self,
        engine: Engine,
        *,
        max_bytes: int,
        of_turns: OfTurns = NOTHING,
        own_memory: Callable[[str], TurnMemory | None] | None = None,
        policy: FindPolicy | None = None,
    ) -> None:
        """`max_bytes` is the most that a request may have.

        `of_turns` is what the bearers of turns open; `own_memory` is the memory of who asks
        without one, by name. `policy` finds what is asked before each tool.
        """
        self._policy = policy
        self._engine = engine
        self._of_turns = of_turns
        self._own_memory = own_memory
        self._max_bytes = max_bytes
        self._running: set[LoopStop] = set()
        self._quiet = asyncio.Event()  # nothing runs
        self._quiet.set()
        self._is_draining = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        exchange = Exchange(scope, receive, send)
        try:
            await self._route(exchange)
        except Disconnected:
            return
        except CarnetError as error:
            await self._refuse(exchange, error)
        except Exception as error:
            logger.exception("unforeseen %s", type(error).__name__)
            await self._refuse(exchange, Internal(type(error).__name__))

    async def drain(self, seconds: float) -> None:
        """Take no new work; what runs has some time to end, and is then stopped with a reason."""
        self._is_draining = True
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._quiet.wait()
        for stop in tuple(self._running):
            stop.ask(SHUTTING_DOWN)
        await self._quiet.wait()

    async def _route(self, exchange: Exchange) -> None:
        if exchange.path != CHAT:
            raise RouteNotFound
        if exchange.method != "POST":
            raise MethodNotAllowed(allow="POST")
        if self._is_draining:
            raise ShuttingDown(retry_after=1)
        headers = exchange.headers
        actor, resolved, shown = read_actor(headers), read_resolved(headers), read_shown(headers)
        check_json_body(headers)
        request = await _read(await exchange.read(self._max_bytes))
        if self._is_draining:  # it began while the body was on its way
            raise ShuttingDown(retry_after=1)
        await exchange.start(200, _STREAMED)
        turn = LoopTurn(request=request, actor=actor, resolved=resolved)
        if self._policy is not None:
            turn = replace(turn, ask_policy=self._policy(actor, shown))
        if shown is not None:
            turn = self._named(turn, *shown)
        elif self._own_memory is not None:
            turn = replace(turn, memory=self._own_memory(actor.id))
        with DisconnectWatch(exchange.line):
            await self._stream(exchange, turn)

    def _named(self, turn: LoopTurn, credential: Secret, bearer: TurnBearer) -> LoopTurn:
        """The same for the agent that a gateway asks for, with what it may call and has kept."""
        is_person = _OF_MACHINE not in turn.actor.id  # R25
        has, hers = self._of_turns, self._of_turns if is_person else NOTHING
        tokens = has.tokens if bearer.asks_tokens else None
        return replace(
            turn,
            name=bearer.turn,
            agent=bearer.agent,
            is_final=bearer.is_final,
            budgets=bearer.budgets,
            granted=bearer.granted,
            counted=bearer.counted,
            asks=bearer.asks,
            tells=True,
            held=bearer.held,
            calls=None if has.calls is None else has.calls(credential),
            memory=None if hers.memory is None else hers.memory(credential),
            past=None if hers.past is None else hers.past(credential),
            triggers=None if hers.triggers is None else hers.triggers(credential),
            tokens=None if tokens is None else tokens(credential),
        )

    async def _stream(self, exchange: Exchange, turn: LoopTurn) -> None:
        # The name of a turn is that of a gateway, which bills it.
        sink, stop = _StreamSink(exchange, tells_used=bool(turn.name)), LoopStop()
        self._running.add(stop)
        self._quiet.clear()
        try:
            async with asyncio.TaskGroup() as group:
                beating = group.create_task(sink.beat())
                end = await self._end(turn, sink, stop)
                beating.cancel()
            last = sink.writer.end(end)
            if last is None:
                exchange.line.cut()
                return
            await exchange.write(last)
            await exchange.write(b"", more=False)
        finally:
            self._running.discard(stop)
            if not self._running:
                self._quiet.set()

    async def _end(self, turn: LoopTurn, sink: "_StreamSink", stop: LoopStop) -> End:
        """How it ended; what was raised is for the log."""
        try:
            return await stop.run(self._engine(turn, sink))
        except CarnetError as error:
            _note(error, turn)
            return Failed.of(error)
        except Exception as error:  # noqa: BLE001  the edge of the loop: it may raise anything
            _note(error, turn)
            return Failed.of(Internal(type(error).__name__))

    async def _refuse(self, exchange: Exchange, error: CarnetError) -> None:
        if exchange.started:  # a half answer is no answer
            exchange.line.cut()
            return
        logger.info(
            "refused",
            extra={
                "correlation_id": exchange.line.correlation,
                "code": error.code,
                "detail": str(error),
            },
        )
        await exchange.reply(*refuse(error, exchange.path))


class _StreamSink:
    """Writes what a loop says to its client, and something now and then while it says nothing."""

    __slots__ = ("_exchange", "_is_silent", "writer")

    def __init__(self, exchange: Exchange, *, tells_used: bool) -> None:
        self._exchange = exchange
        self._is_silent = True
        self.writer = EngineWriter(tells_used=tells_used)

    async def write(self, event: Event, /) -> None:
        frames = self.writer.write((event,))
        if frames:
            self._is_silent = False
            await self._exchange.write(frames)

    def usage(self, usage: Usage, /) -> None:
        self.writer.write((usage,))

    async def beat(self) -> None:
        """Keep the connection alive until it is cancelled."""
        while True:
            self._is_silent = True
            await asyncio.sleep(HEARTBEAT_SECONDS)
            if self._is_silent:
                await self._exchange.write(self.writer.used() or KEEP_ALIVE)


def refuse(error: CarnetError, path: bytes, head: Fields | None = None) -> Reply:
    """The answer to a request that began no stream, at whatever path."""
    del path, head
    status, body = write_refusal(error)
    headers: Fields = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    if isinstance(error, MethodNotAllowed):  # RFC 9110, 15.5.6
        headers.append((b"allow", str(error.facts.get("allow") or "").encode()))
    if status == 401:  # noqa: PLR2004  RFC 9110 asks for a challenge beside it
        headers.append((b"www-authenticate", b"Bearer"))
    if error.retry_after is not None:
        headers.append((b"retry-after", b"%d" % error.retry_after))
    return Reply(status, headers, body)


async def _read(body: bytes) -> EngineRequest:
    if len(body) <= LARGE_BYTES:
        return read_request(body)
    return await asyncio.to_thread(read_request, body)


def _note(error: Exception, turn: LoopTurn) -> None:
    """Note the cause of a failure, for the operator."""
    extra = {"correlation_id": turn.request.correlation, "actor": turn.actor.id}
    if isinstance(error, CarnetError):
        logger.warning("answer failed", extra={**extra, "code": error.code, "detail": str(error)})
    else:
        logger.error("loop raised %s", type(error).__name__, exc_info=error, extra=extra)
