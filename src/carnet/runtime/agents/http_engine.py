"""A loop elsewhere, asked over HTTP as the contract says, in the place of one in the process.

Law 1. Each request has a bearer of its turn, signed by our key: who acts, for which agent, until
       when, what somebody has approved. While its stream is open, calls of other agents come back
       with that bearer, and are made out of the turn (`OpenStreams`).
Law 2. A stream is kept in parts: to where every tool call has its result, and to its end. A turn
       that runs again shows them again and asks for what comes after them, with all that was said.
       So what is done again after a kill is what came after the last part, and no more.
Law 3. A stream that waits, for an approval or for what a callee asks for, is gone on with by
       another request, with all that was said and the answers, once every call that waits has one.
Law 4. A loop that refuses us, or is not there, is told as a failure of what we asked; one whose
       stream breaks off has failed by itself.
Law 5. The calls of a part that was kept are made again when it is shown again, and answered from
       their records: what they have cost stands in the record of the attempt that ends the turn.
Law 6. A stream that a named budget of the agent has ended is kept, where who pays may be asked for
       more. With more, another request goes on from there: with what was counted, and with the
       calls that the budget held up, by their ids.
"""

import math
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from carnet.core.messages.events import (
    COUNTED,
    Done,
    Event,
    Extension,
    Failed,
    Message,
    ToolCall,
    ToolResult,
    Usage,
    Waiting,
)
from carnet.core.messages.interrupt import Resolution
from carnet.core.messages.output import Sink
from carnet.core.people.identity import Secret
from carnet.errors import (
    BudgetExceeded,
    CarnetError,
    ProviderError,
    ProviderUnavailable,
    TurnElsewhere,
)
from carnet.ports.engine.calls import AgentCalls, CalleeWaits
from carnet.ports.engine.loop import LoopTurn
from carnet.ports.trust.keys import SigningKeys
from carnet.ports.world.clock import Clock, Ids
from carnet.ports.world.http_client import Bounds, HttpAnswer, HttpClient, NotSent, Outbound
from carnet.runtime.agents.loop_stream.part import AGENT, Short, StreamPart
from carnet.runtime.agents.loop_stream.tokens import StreamTokens
from carnet.runtime.peers.answer_reader import JSON, SSE, read_some, read_stream
from carnet.runtime.visit.pulled import pulled
from carnet.wire.dialects.engine_chat.bearer import MOST_BYTES, TurnBearer, write_bearer
from carnet.wire.dialects.engine_chat.refusals import BUDGET_EXCEEDED
from carnet.wire.dialects.engine_chat.request import write_request
from carnet.wire.dialects.engine_chat.stream import EngineReader
from carnet.wire.dialects.engine_chat.transcript import Shown, Transcript
from carnet.wire.dialects.refusal import BY_STATUS

PATH: Final = "/engine/chat"
_OK: Final = 200
_FAULT: Final = 500


class EngineAddress(Struct, frozen=True, kw_only=True):
    """Where a loop is, and who we are to it."""

    url: str
    domain: str  # ours
    seconds: float  # the most one answer may take


class OpenStreams:
    """The turns whose loops are being asked, by the ids of their bearers."""

    def __init__(self, process: str = "") -> None:
        """None yet; `process` is the name of this one among those that share a store."""
        self._process = process
        self._turns: dict[str, LoopTurn] = {}

    def name(self, id: str) -> str:
        """The id of a bearer of ours, by which every process knows whose it is."""
        return f"{self._process}.{id}"

    @contextmanager
    def opened(self, id: str, turn: LoopTurn) -> Iterator[None]:
        """While it is entered, the bearer with this id is good for calls out of the turn."""
        self._turns[id] = turn
        try:
            yield
        finally:
            del self._turns[id]

    def find(self, id: str, turn: str, agent: str, /) -> AgentCalls | None:
        """What calls for a turn that is open; TurnElsewhere for one of another process."""
        found = self.turn(id, turn, agent)
        return None if found is None else found.calls

    def turn(self, id: str, turn: str, agent: str, /) -> LoopTurn | None:
        """A turn that is open; TurnElsewhere for one of another process."""
        found = self._turns.get(id)
        if found is None and self._process and not id.startswith(self.name("")):
            raise TurnElsewhere
        return found if found is not None and (found.name, found.agent) == (turn, agent) else None


class HttpEngine:
    """A loop behind an address."""

    def __init__(
        self,
        http: HttpClient,
        address: EngineAddress,
        keys: SigningKeys,
        clock: Clock,
        *,
        ids: Ids,
        streams: OpenStreams,
    ) -> None:
        """`keys` sign the bearers, `ids` names them; `streams` knows which of them are good."""
        self._http = http
        self._address = address
        self._keys = keys
        self._clock = clock
        self._ids = ids
        self._streams = streams

    async def __call__(self, turn: LoopTurn, sink: Sink, /) -> Done | Waiting:
        """Ask it until nothing is left that somebody has answered."""
        messages, named = turn.request.messages, dict[str, Resolution]()
        asking, answered = _Asking(self, turn, sink), set[str]()
        turn = replace(turn, held=frozenset())
        try:
            while True:
                part = await asking.part(turn, messages, named)
                messages, named = part.transcript.after(messages), {}
                end, turn = part.transcript.end, part.onward(turn)
                if isinstance(end, Done):
                    return end
                if end is None:
                    continue
                _refuse_again(end, part, answered)
                waiting = _unanswered(end, part, turn)
                if waiting is not None:
                    return waiting
                answered.update([each.id for each in end.interrupts])
                named = {each.id: turn.resolved.get(each.id, _GO_ON) for each in end.interrupts}
        finally:
            await asking.close()

    async def stream(
        self,
        turn: LoopTurn,
        messages: tuple[Message, ...],
        named: dict[str, Resolution],
        sink: Sink,
    ) -> Done | Waiting:
        """Ask once, and write what it says."""
        request, id = (
            replace(turn.request, messages=messages),
            self._streams.name(self._ids.token()),
        )
        bearer = Secret(f"Bearer {self._bearer(turn, named, id)}")
        outbound = Outbound(
            url=self._address.url + PATH,
            body=write_request(request),
            headers={
                "content-type": JSON,
                "accept": SSE,
                "x-correlation-id": request.correlation,
            },
            secrets={"authorization": bearer},
            bounds=Bounds(total_seconds=self._address.seconds),
        )
        if turn.tokens is not None:
            turn = replace(turn, tokens=StreamTokens(turn.tokens))
        with self._streams.opened(id, turn), _named_missing():
            async with self._http.send(outbound) as answer:
                del outbound  # an answer may last for long, and needs nothing of it
                if answer.status != _OK:
                    raise await _refusal(answer)
                return await read_stream(answer, EngineReader(), _failure, sink)

    def _bearer(self, turn: LoopTurn, named: dict[str, Resolution], id: str) -> str:
        now, signer = self._clock.wall_us() // 1_000_000, self._keys.signer()
        bearer = TurnBearer(
            issuer=self._address.domain,
            actor=turn.actor,
            turn=turn.name,
            expires=now + math.ceil(self._address.seconds),
            resolved=named,
            agent=turn.agent,
            id=id,
            is_final=turn.is_final,
            asks_policy=turn.ask_policy is not None,
            asks_tokens=turn.tokens is not None,
            budgets=turn.budgets,
            granted=turn.granted,
            counted=turn.counted,
            asks=turn.asks,
            held=turn.held,
        )
        written = write_bearer(bearer, kid=signer.kid, sign=signer.sign)
        if len(written) > MOST_BYTES:
            raise ProviderError("what was answered is longer than a bearer may be")
        return written


@contextmanager
def _named_missing() -> Iterator[None]:
    """Say in the log what is not there, and how it is started."""
    try:
        yield
    except ProviderUnavailable as error:
        if isinstance(error.__cause__, NotSent):
            error.detail = f"no engine at [engine] listen; start it: carnet engine; {error.detail}"
        raise


class _Asking:
    """The streams of one turn, part by part."""

    def __init__(self, engine: HttpEngine, turn: LoopTurn, sink: Sink) -> None:
        self._engine = engine
        self._turn = turn
        self._sink = sink
        self._stream: AsyncGenerator[Event, None] | None = None  # that is being read
        self._counted = ""  # of named budgets, as it has told

    async def part(
        self, turn: LoopTurn, messages: tuple[Message, ...], named: dict[str, Resolution]
    ) -> StreamPart:
        """The next part, read now or before."""
        is_new = False

        async def act() -> object:
            nonlocal is_new
            is_new = True
            return to_builtins(await self._read(turn, messages, named))

        part = convert(await self._turn.once("engine", act), StreamPart)
        if is_new:
            return replace(part, is_new=True)
        await self._show(part)
        return part

    async def close(self) -> None:
        """Stop reading."""
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.aclose()

    async def _read(
        self, turn: LoopTurn, messages: tuple[Message, ...], named: dict[str, Resolution]
    ) -> StreamPart:
        if self._stream is None:
            used = self._sink.usage
            self._stream = pulled(
                lambda sink: self._engine.stream(turn, messages, named, _CountedSink(sink, used))
            )
        calls = self._turn.calls
        before = 0 if calls is None else len(calls.made)
        self._counted = ""
        transcript, short = await self._gather(self._stream)
        if transcript.end is not None or short is not None:
            await self.close()
        part = StreamPart(transcript, short=short, counted=self._counted)
        if calls is None:
            return part
        return replace(part, asked=tuple(calls.made[before:]), called=tuple(calls.waits))

    async def _gather(self, stream: AsyncGenerator[Event, None]) -> tuple[Transcript, Short | None]:
        """Pass on what a stream says, to the end of a part of it."""
        events: list[Shown] = []
        try:
            return await self._passed_on(stream, events), None
        except BudgetExceeded as error:
            short = self._short(error)
            if short is None:
                raise
            return Transcript(tuple(events)), short

    def _short(self, error: BudgetExceeded) -> Short | None:
        """What ended a stream, where who pays may be asked for more of it."""
        facts, granted = error.facts, dict(self._turn.granted)
        if not self._turn.asks or facts.get("budget") != AGENT:
            return None
        part = str(facts["part"])
        counts = [int(str(facts[name])) for name in ("observed", "limit")]
        return Short(part, counts[0], counts[1], granted.get(part, 0))

    async def _passed_on(
        self, stream: AsyncGenerator[Event, None], events: list[Shown]
    ) -> Transcript:
        waiting: set[str] = set()
        async for event in stream:
            match event:
                case Done() | Waiting():
                    self._refuse_short(event)
                    return Transcript(tuple(events), event)
                case Extension(name=name) if name == COUNTED:
                    self._counted = str(event.payload)
                    continue
                case ToolCall():
                    waiting.add(event.id)
                case ToolResult():
                    waiting.discard(event.id)
            await self._sink.write(event)
            if isinstance(event, Shown):
                events.append(event)
            if isinstance(event, ToolResult) and not waiting:
                return Transcript(tuple(events))
        raise ProviderError("the stream has no end")

    def _refuse_short(self, end: Done | Waiting) -> None:
        """Refuse an end for want of tokens: it is none that a turn which runs again would keep."""
        tokens = self._turn.tokens
        if tokens is not None and tokens.short is not None and end == Done(BUDGET_EXCEEDED):
            raise tokens.short

    async def _show(self, part: StreamPart) -> None:
        """Say again what was said before, and note again what was called for it."""
        for event in part.transcript.events:
            await self._sink.write(event)
        for ask in part.asked:
            if self._turn.calls is not None:
                with suppress(CarnetError, CalleeWaits):
                    await self._turn.calls.ask_agent(ask)


class _CountedSink:
    """Passes on what a loop says; what it used is counted at once, also where nobody reads on."""

    __slots__ = ("usage", "write")

    def __init__(self, sink: Sink, used: Callable[[Usage], None]) -> None:
        self.write = sink.write
        self.usage = used


_GO_ON: Final = Resolution(outcome="accepted")  # of a call that its callee may be asked for again


def _unanswered(end: Waiting, part: StreamPart, turn: LoopTurn) -> Waiting | None:
    """What nobody has answered yet; a callee was answered when a turn runs that waited for it."""
    waits = part.called if part.is_new else ()
    called = () if part.is_new else part.called
    left = [
        asked
        for asked in end.interrupts
        if asked.id in waits or (asked.id not in turn.resolved and asked.id not in called)
    ]
    return Waiting(tuple(left)) if left else None


def _refuse_again(end: Waiting, part: StreamPart, answered: set[str]) -> None:
    """Refuse a loop that asks for an approval under the name of one that was given."""
    if any(each.id in answered and each.id not in part.called for each in end.interrupts):
        raise ProviderError("the engine asks again for a call that was answered")


def _failure(failed: Failed, fault: str) -> CarnetError:
    error = failed.error()
    error.detail = error.detail or fault
    return error


async def _refusal(answer: HttpAnswer) -> CarnetError:
    """What a loop that begins no stream is told as; what it says is for the log."""
    status, body = answer.status, await read_some(answer)
    words = f"the engine answered {status} {body[:200].decode(errors='replace')}"
    if status >= _FAULT:
        return ProviderUnavailable(words, by=BY_STATUS, peer_status=status)
    return ProviderError(words)
