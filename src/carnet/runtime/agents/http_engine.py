"""A loop elsewhere, asked over HTTP as the contract says, in the place of one in the process.

Law 1. Each request has a bearer of its turn, signed by our key: who acts, until when, what somebody
       has approved.
Law 2. A stream that has ended is kept as a step of its turn. A turn that runs again shows it again
       and asks for what comes after it.
Law 3. A stream that waits for an approval is gone on with by another request, with all that was
       said and the answer, once every call that waits has one.
Law 4. A loop that refuses us, or is not there, is told as a failure of what we asked; one whose
       stream breaks off has failed by itself.
"""

import math
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.messages.events import Done, Event, Failed, Message, Usage, Waiting
from carnet.core.messages.interrupt import Resolution
from carnet.core.messages.output import Sink
from carnet.core.people.identity import Secret
from carnet.errors import CarnetError, ProviderError, ProviderUnavailable
from carnet.ports.engine.loop import LoopTurn
from carnet.ports.trust.keys import SigningKeys
from carnet.ports.world.clock import Clock
from carnet.ports.world.http_client import Bounds, HttpAnswer, HttpClient, Outbound
from carnet.runtime.peers.answer_reader import JSON, SSE, read_some, read_stream
from carnet.wire.dialects.engine_chat.bearer import MOST_BYTES, TurnBearer, write_bearer
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


class HttpEngine:
    """A loop behind an address."""

    def __init__(
        self, http: HttpClient, address: EngineAddress, keys: SigningKeys, clock: Clock
    ) -> None:
        """`keys` sign the bearers."""
        self._http = http
        self._address = address
        self._keys = keys
        self._clock = clock

    async def __call__(self, turn: LoopTurn, sink: Sink, /) -> Done | Waiting:
        """Ask it until nothing is left that somebody has answered."""
        messages, named = turn.request.messages, dict[str, Resolution]()
        while True:
            transcript = await self._stream(turn, messages, named, sink)
            end = transcript.end
            if isinstance(end, Done):
                return end
            open_ones = [asked for asked in end.interrupts if asked.id not in turn.resolved]
            if open_ones:
                return Waiting(tuple(open_ones))
            named = {asked.id: turn.resolved[asked.id] for asked in end.interrupts}
            messages = (*messages, *transcript.messages())

    async def _stream(
        self,
        turn: LoopTurn,
        messages: tuple[Message, ...],
        named: dict[str, Resolution],
        sink: Sink,
    ) -> Transcript:
        """One stream, read now or before."""
        is_new = False

        async def act() -> object:
            nonlocal is_new
            is_new = True
            return (await self._ask(turn, messages, named, sink)).written()

        transcript = Transcript.read(await turn.once("engine", act))
        if not is_new:
            for event in transcript.events:
                await sink.write(event)
        return transcript

    async def _ask(
        self,
        turn: LoopTurn,
        messages: tuple[Message, ...],
        named: dict[str, Resolution],
        sink: Sink,
    ) -> Transcript:
        request, keeping = replace(turn.request, messages=messages), _KeepingSink(sink)
        outbound = Outbound(
            url=self._address.url + PATH,
            body=write_request(request),
            headers={
                "content-type": JSON,
                "accept": SSE,
                "x-correlation-id": request.correlation,
            },
            secrets={"authorization": Secret(f"Bearer {self._bearer(turn, named)}")},
            bounds=Bounds(total_seconds=self._address.seconds),
        )
        async with self._http.send(outbound) as answer:
            if answer.status != _OK:
                raise await _refusal(answer)
            end = await read_stream(answer, EngineReader(), _failure, keeping)
        return Transcript(tuple(keeping.events), end)

    def _bearer(self, turn: LoopTurn, named: dict[str, Resolution]) -> str:
        now, signer = self._clock.wall_us() // 1_000_000, self._keys.signer()
        bearer = TurnBearer(
            issuer=self._address.domain,
            actor=turn.actor,
            turn=turn.name,
            expires=now + math.ceil(self._address.seconds),
            resolved=named,
        )
        written = write_bearer(bearer, kid=signer.kid, sign=signer.sign)
        if len(written) > MOST_BYTES:
            raise ProviderError("what was answered is longer than a bearer may be")
        return written


class _KeepingSink:
    """Passes on what a stream says, and keeps it."""

    __slots__ = ("_sink", "events")

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.events: list[Shown] = []

    async def write(self, event: Event, /) -> None:
        if isinstance(event, Shown):
            self.events.append(event)
        await self._sink.write(event)

    def usage(self, usage: Usage, /) -> None:
        self._sink.usage(usage)


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
