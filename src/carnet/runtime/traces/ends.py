"""Adds up the turns that have ended, and hands them on as spans: beside calls, never within one.

A turn's runner only puts its end into a list (`TurnRunner.ended`). Everything else is done here,
once a second and when somebody asks for the numbers.

Law 1. The values of labels are bounded: agents are those that are configured, and beyond
       `MOST_PEERS` organisations all others are counted as one.
Law 2. Each amount is counted once: of agents what their callers were charged, of peers what they
       charged us.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Final

from carnet.core.chain.turn import IN_PROCESS, Turn
from carnet.runtime.traces.exporter import SpanExporter
from carnet.runtime.traces.spans import EndedTurn, peer_of, spans_of
from carnet.telemetry import Tally

LOOK_SECONDS: Final = 1.0
MOST_PEERS: Final = 200
MOST_ENDED: Final = 100_000
OTHER: Final = "other"  # organisations beyond those
_MICROS: Final = 1_000_000

Counts = defaultdict[tuple[str, ...], float]


class Ends:
    """What has ended, added up by agent and by peer."""

    def __init__(self, *, domain: str, exporter: SpanExporter | None) -> None:
        """`exporter` is None where no spans are sent."""
        # Filled by who runs turns, and emptied here long before it is full.
        self.ended: deque[EndedTurn] = deque(maxlen=MOST_ENDED)
        self._domain = domain
        self._exporter = exporter
        self._peers: set[str] = set()
        self._cost: Counts = defaultdict(float)
        self._tokens: Counts = defaultdict(float)
        self._seconds: Counts = defaultdict(float)
        self._peer_calls: Counts = defaultdict(float)
        self._peer_cost: Counts = defaultdict(float)
        self._peer_tokens: Counts = defaultdict(float)
        self._peer_seconds: Counts = defaultdict(float)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look."""
        self._task = asyncio.create_task(self._look())
        if self._exporter is not None:
            self._exporter.start()

    async def close(self) -> None:
        """Count what is left, and send it while there is time."""
        if self._task is not None:
            self._task.cancel()
        self.fold()
        if self._exporter is not None:
            await self._exporter.close()

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.fold()

    def fold(self) -> None:
        """Add up what has ended since."""
        while self.ended:
            each = self.ended.popleft()
            if each[1].state == "waiting":
                continue
            self._add(each[1])
            if self._exporter is not None:
                for span in spans_of(each, self._domain):
                    self._exporter.offer(span)

    def _add(self, turn: Turn) -> None:
        peer = peer_of(turn.agent)
        if peer:
            labels: tuple[str, ...] = (self._bounded(peer),)
            self._peer_calls[*labels, turn.state] += 1
            cost, tokens, seconds = self._peer_cost, self._peer_tokens, self._peer_seconds
        else:
            labels = (turn.agent,)
            cost, tokens, seconds = self._cost, self._tokens, self._seconds
        if peer or not turn.actor.startswith(IN_PROCESS):  # else it is in its caller's
            cost[labels] += (turn.cost or 0) / _MICROS
        tokens[*labels, "in"] += turn.tokens_in or 0
        tokens[*labels, "out"] += turn.tokens_out or 0
        seconds[labels] += ((turn.ended or turn.created) - turn.created) / _MICROS

    def _bounded(self, peer: str) -> str:
        if peer not in self._peers:
            if len(self._peers) >= MOST_PEERS:
                return OTHER
            self._peers.add(peer)
        return peer

    def tallies(self) -> Iterator[Tally]:
        """The counters that a scrape sees, with what has ended until now."""
        self.fold()
        agent, peer = ("agent",), ("peer",)
        yield "carnet_cost", "What callers of an agent were charged", agent, self._cost
        yield (
            *("carnet_tokens", "Tokens that turns of an agent used"),
            *((*agent, "direction"), self._tokens),
        )
        yield "carnet_turn_seconds", "Time that turns of an agent took", agent, self._seconds
        yield (
            *("carnet_peer_calls", "Calls to an organisation, by how they ended"),
            *((*peer, "state"), self._peer_calls),
        )
        yield "carnet_peer_cost", "What calls to an organisation cost us", peer, self._peer_cost
        yield (
            *("carnet_peer_tokens", "Tokens that an organisation says to have used"),
            *((*peer, "direction"), self._peer_tokens),
        )
        yield "carnet_peer_seconds", "Time that calls to it took", peer, self._peer_seconds
        if self._exporter is not None:
            counts: dict[tuple[str, ...], float] = {
                (state,): n for state, n in self._exporter.counts.items()
            }
            yield "carnet_spans", "Spans, by what became of them", ("state",), counts
