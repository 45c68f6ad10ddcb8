"""Cancelling a run: what runs of it here, then what other gateways run of it for us.

Law 1. Our turns end first, and with them the connections of their calls. Then every peer that has
       a call of them which did not end well is asked, once, what has become of it.
Law 2. A peer is asked for the turns that it was sent by those that are cancelled here, by their
       ids, and for no others: a run's id is known to all who took part in it.
Law 3. What a peer tells is read strictly and within bounds. Whoever does not answer, in time or at
       all, leaves its hops unknown, with the reason.
Law 4. Every hop has less time than the one before it, so that every walk ends.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args
from urllib.parse import quote

from msgspec import Struct

from carnet.core.chain.hop import Hop, Outcome, chosen, hops_of
from carnet.core.chain.turn import Turn
from carnet.core.messages.outbound_call import OutboundCall
from carnet.core.people.address import is_agent_uri, is_elsewhere, is_handle
from carnet.core.people.identity import Secret
from carnet.errors import (
    CarnetError,
    InvalidJson,
    PeerRefused,
    PeerUnknown,
    ProviderError,
    ProviderTimeout,
    RunNotFound,
)
from carnet.ports.calls.agent import Journal
from carnet.ports.calls.cancellation import CancelAsk, CancelReport
from carnet.ports.trust.trust import Peer, Peers
from carnet.ports.world.clock import Clock
from carnet.ports.world.http_client import Bounds, HttpClient, Outbound
from carnet.ports.world.records import Records
from carnet.runtime.peers.a2a.abandoned import WaitingTasks
from carnet.runtime.peers.signing import Signing
from carnet.wire.grammar import json

HOP_SECONDS: Final = 1.0  # that the next hop has less
AT_ONCE: Final = 16  # peers that are asked at the same time, for one run
MOST_TURNS: Final = 256  # that one peer is asked about
MOST_HOPS: Final = 1000  # that one peer may tell
MOST_LEVELS: Final = 32
MOST_BYTES: Final = 1024 * 1024
MOST_TEXT: Final = 256  # characters of what a peer tells

_JSON: Final = "application/json"
_OK: Final = 200
_OUTCOMES: Final = get_args(Outcome)
_REFUSALS: Final = {401: PeerRefused.code, 403: PeerRefused.code, 404: RunNotFound.code}


class SentTurn(Struct, frozen=True):
    """A turn of ours that is a call to somebody else."""

    turn: Turn
    id: str  # under which it was sent


class PeerLine(Struct, frozen=True, eq=False):
    """How peers are reached."""

    http: HttpClient
    peers: Peers
    signing: Signing


class RunCancellation:
    """Ends runs, and tells hop by hop what has become of them."""

    def __init__(
        self,
        journal: Journal,
        records: Records,
        line: PeerLine,
        clock: Clock,
        waiting: WaitingTasks | None = None,
    ) -> None:
        """`journal` ends what is here; `line` leads to the others.

        `waiting` ends what waits elsewhere for an answer that nobody will give.
        """
        self._waiting = waiting
        self._journal = journal
        self._records = records
        self._line = line
        self._clock = clock

    async def __call__(self, asked: CancelAsk, /) -> CancelReport | None:
        """End what runs or waits of it, hop by hop; None if there is nothing of it to see."""
        until = self._clock.monotonic() + asked.seconds
        seen = await self._seen(asked)
        if not seen:
            return None
        left = [] if self._waiting is None else await self._waiting.of(seen)
        stopped = await self._journal.cancel({turn.n for turn in seen})
        if self._waiting is not None:
            await self._waiting.end(left)
        ended = await self._seen(asked)
        outbound = await self._records.outbound(asked.run, reader=asked.reader)
        sent = [one for turn in ended for one in _sent(turn, outbound.get(turn.n, ()))]
        elsewhere = await self._ask_all(asked.run, sent, until)
        return CancelReport(stopped=stopped, hops=hops_of(ended, elsewhere))

    async def _seen(self, asked: CancelAsk) -> list[Turn]:
        turns = await self._records.run(asked.run, reader=asked.reader)
        return chosen(turns, asked.turns, asked.only)

    async def _ask_all(
        self, run: str, sent: Sequence[SentTurn], until: float
    ) -> dict[int, list[Hop]]:
        """What the others tell of the turns that they were sent, by our numbers."""
        by_peer: dict[str, list[SentTurn]] = {}
        for one in sent:
            by_peer.setdefault(self._domain(one.turn.agent), []).append(one)
        places = asyncio.Semaphore(AT_ONCE)

        async def ask(domain: str, ours: Sequence[SentTurn]) -> list[Hop]:
            async with places:
                known, code = await self._ask(run, domain, [one.id for one in ours], until)
            return [known.get(one.id) or _unknown(one, domain, code) for one in ours]

        asked = [
            (domain, ours[start : start + MOST_TURNS])
            for domain, ours in by_peer.items()
            for start in range(0, len(ours), MOST_TURNS)
        ]
        found: dict[int, list[Hop]] = {}
        for (_, ours), hops in zip(
            asked, await asyncio.gather(*(ask(*each) for each in asked)), strict=True
        ):
            for one, hop in zip(ours, hops, strict=True):
                found.setdefault(one.turn.n, []).append(hop)
        return found

    def _domain(self, agent: str) -> str:
        """The domain of the peer that a call went to; empty if there is none of that name."""
        if not is_elsewhere(agent):
            return ""
        domain = agent.rpartition("@")[2] if is_handle(agent) else agent.rpartition("/")[2]
        if self._line.peers.find(domain) is not None:
            return domain
        parent = domain.partition(".")[2]
        known = is_agent_uri(agent) and self._line.peers.find(parent) is not None
        return parent if known else ""

    async def _ask(
        self, run: str, domain: str, ids: Sequence[str], until: float
    ) -> tuple[Mapping[str, Hop], str]:
        """What a peer tells, by the ids that it was sent, and why it tells nothing of the rest."""
        peer, seconds = self._line.peers.find(domain), until - self._clock.monotonic() - HOP_SECONDS
        if peer is None:
            return {}, PeerUnknown.code
        if seconds <= 0:
            return {}, ProviderTimeout.code
        try:
            async with self._line.http.send(self._written(peer, run, ids, seconds)) as answer:
                if answer.status != _OK:
                    return {}, _REFUSALS.get(answer.status, ProviderError.code)
                hops = read_hops(await answer.read(), at=domain)
        except CarnetError as error:
            return {}, error.code
        return {hop.turn: hop for hop in hops}, RunNotFound.code

    def _written(self, peer: Peer, run: str, ids: Sequence[str], seconds: float) -> Outbound:
        token = peer.token
        outbound = Outbound(
            url=f"{peer.url.rstrip('/')}/runs/{quote(run, safe='')}/cancel",
            body=json.write({"turns": list(ids), "within": seconds}),
            headers={"content-type": _JSON, "accept": _JSON},
            secrets={} if token is None else {"authorization": Secret(f"Bearer {token.reveal()}")},
            bounds=Bounds(first_byte_seconds=seconds, total_seconds=seconds, max_bytes=MOST_BYTES),
        )
        return self._line.signing.sign_whole(outbound) if token is None else outbound


def _sent(turn: Turn, calls: Sequence[OutboundCall]) -> list[SentTurn]:
    """What a turn has sent to somebody else, if it may be going on there."""
    if turn.state == "done":
        return []
    ids = {call.child_turn for call in calls if call.state != "refused"}
    if not calls and is_elsewhere(turn.agent):  # which has not ended, so nothing is noted yet
        ids = {turn.turn}
    return [SentTurn(turn, each) for each in sorted(ids)]


def _unknown(sent: SentTurn, domain: str, code: str) -> Hop:
    """What is told of a call that nobody tells anything of."""
    return Hop(
        turn=sent.id,
        agent=sent.turn.agent,
        depth=sent.turn.depth,
        outcome="unknown",
        code=code,
        at=domain or None,
    )


def read_hops(body: bytes, *, at: str) -> tuple[Hop, ...]:
    """The hops that a peer tells; ProviderError if they cannot be read."""
    try:
        page = json.read_object(body)
    except InvalidJson as error:
        raise ProviderError(f"what it tells of a cancelled run is no JSON: {error}") from None
    return _Reading(at).hops(page.get("hops"), 0)


class _Reading:
    """Reads what a peer tells, and counts it."""

    def __init__(self, at: str) -> None:
        self._at = at
        self._count = 0

    def hops(self, given: object, level: int) -> tuple[Hop, ...]:
        if not isinstance(given, list) or level > MOST_LEVELS:
            raise ProviderError("what it tells of a cancelled run has another form")
        return tuple([self._hop(each, level) for each in given])

    def _hop(self, given: Any, level: int) -> Hop:
        self._count += 1
        if self._count > MOST_HOPS or not isinstance(given, dict):
            raise ProviderError("what it tells of a cancelled run has another form")
        outcome: Outcome = given["outcome"] if given.get("outcome") in _OUTCOMES else "unknown"
        depth = given.get("depth")
        return Hop(
            turn=_text(given, "turn") or "",
            agent=_text(given, "agent") or "",
            depth=depth if type(depth) is int else 0,
            outcome=outcome,
            code=_text(given, "code"),
            at=_text(given, "at") or self._at,
            below=self.hops(given.get("below", []), level + 1),
        )


def _text(given: dict[str, Any], name: str) -> str | None:
    value = given.get(name)
    return value[:MOST_TEXT] if isinstance(value, str) else None
