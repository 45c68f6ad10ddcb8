"""What a peer tells of a run that was cancelled is read strictly, and within bounds."""

import json
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

import pytest

from carnet.core.chain.hop import Hop
from carnet.core.chain.turn import Turn
from carnet.core.messages.outbound_call import OutboundCall, OutboundState
from carnet.core.people.identity import Account, Secret
from carnet.errors import ProviderError, ProviderUnavailable
from carnet.ports.calls.cancellation import CancelAsk
from carnet.ports.trust.trust import Peer
from carnet.ports.world.http_client import Outbound
from carnet.runtime.peers.cancellation import (
    MOST_HOPS,
    MOST_LEVELS,
    MOST_TEXT,
    MOST_TURNS,
    PeerLine,
    RunCancellation,
    read_hops,
)
from carnet.testing.clock import FakeClock
from tests.runtime.peers.test_signing import signing


def page(*hops: Any) -> bytes:
    return json.dumps({"run": "r", "cancelled": 0, "hops": hops}).encode()


def deep(levels: int) -> dict[str, Any]:
    return {"turn": "t", "outcome": "done", "below": [deep(levels - 1)] if levels else []}


def test_what_a_peer_tells_is_told_as_its_own_and_what_it_was_told_as_that_of_others() -> None:
    below = {"turn": "c", "agent": "b", "depth": 2, "outcome": "done", "at": "initech.example"}
    given = {"turn": "t", "agent": "a", "depth": 1, "outcome": "failed", "code": "x"}
    (hop,) = read_hops(page(given | {"below": [below], "more": 1}), at="globex.example")
    inner = Hop(turn="c", agent="b", depth=2, outcome="done", at="initech.example")
    assert hop.below == (inner,)
    assert (hop.at, hop.outcome, hop.code) == ("globex.example", "failed", "x")


def test_what_it_does_not_say_in_our_words_is_unknown_and_short() -> None:
    odd = {"turn": 3, "agent": "x" * 9999, "depth": True, "outcome": "splendid", "code": []}
    (hop,) = read_hops(page(odd), at="globex.example")
    assert hop == Hop(
        turn="", agent="x" * MOST_TEXT, depth=0, outcome="unknown", at="globex.example"
    )


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"hops": {}}',
        page("hop"),
        page({"turn": "t", "below": 3}),
        page(*[{"turn": "t", "outcome": "done"}] * (MOST_HOPS + 1)),
        page(deep(MOST_LEVELS + 1)),
    ],
)
def test_what_has_another_form_is_believed_in_no_part(body: bytes) -> None:
    with pytest.raises(ProviderError):
        read_hops(body, at="globex.example")


PEERS = {
    "globex.example": Peer(domain="globex.example", url="http://globex/", token=Secret("t")),
    "initech.example": Peer(domain="initech.example", url="http://initech"),
}


def turn(n: int, agent: str, **more: Any) -> Turn:
    given = {"state": "failed", "code": "cancelled", "actor": "agent:front", **more}
    payer = Account("acme.example", "alice")
    return Turn(n=n, agent=agent, run="r", turn=f"r.t{n}.x", payer=payer, created=n, **given)


def sent(n: int, state: OutboundState = "failed") -> list[OutboundCall]:
    name = f"r.sent.t{n}.x"
    return [OutboundCall(ordinal=0, child_turn=name, to="x", depth=1, state=state)]


class CancelWorld:
    """What is recorded here, and what others answer."""

    def __init__(self, *turns: Turn, **answers: Any) -> None:
        """`answers` are by the name of a host: a status and a body, or what is raised."""
        self.turns = turns
        self.calls: dict[int, list[OutboundCall]] = {}
        self.answers = answers
        self.asked: list[Outbound] = []
        self.cancelled: set[int] = set()
        self.clock = FakeClock()

    async def cancel(self, turns: Collection[int]) -> int:
        self.cancelled = set(turns)
        return len(turns)

    async def run(self, run: str, *, reader: str | None) -> list[Turn]:
        assert (run, reader) == ("r", "token:alice")
        return list(self.turns)

    async def outbound(self, run: str, *, reader: str | None) -> dict[int, list[OutboundCall]]:
        assert (run, reader) == ("r", "token:alice")
        return self.calls

    def find(self, domain: str) -> Peer | None:
        return PEERS.get(domain)

    @asynccontextmanager
    async def send(self, request: Outbound) -> AsyncIterator[Any]:
        self.asked.append(request)
        answer = self.answers[request.url.split("/")[2]]
        if isinstance(answer, Exception):
            raise answer
        yield PeerReply(*answer)

    async def walk(self, seconds: float = 20.0) -> list[list[tuple[str | None, str, str | None]]]:
        """Who tells what, of each turn."""
        given: Any = self
        line = PeerLine(given, given, signing(self.clock))
        cancels = RunCancellation(given, given, line, self.clock)
        report = await cancels(CancelAsk(run="r", reader="token:alice", seconds=seconds))
        assert report is not None
        return [[(far.at, far.outcome, far.code) for far in hop.below] for hop in report.hops]


class PeerReply:
    """The answer of a peer."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self._body = body

    async def read(self) -> bytes:
        return self._body


async def test_each_peer_is_asked_once_for_the_turns_that_it_was_sent() -> None:
    turns = [turn(1, "@a@globex.example"), turn(2, "@b@globex.example"), turn(3, "here")]
    done = {"turn": "r.sent.t1.x", "agent": "a", "outcome": "done"}
    world = CancelWorld(*turns, globex=(200, page(done)))
    world.calls = {1: sent(1), 2: sent(2), 3: sent(3, "refused")}
    assert await world.walk() == [
        [("globex.example", "done", None)],
        [("globex.example", "unknown", "run_not_found")],
        [],
    ]
    (asked,) = world.asked
    assert asked.url == "http://globex/runs/r/cancel"
    assert asked.secrets["authorization"].reveal() == "Bearer t"
    assert "signature" not in asked.headers
    given = json.loads(asked.body)
    assert given == {"turns": ["r.sent.t1.x", "r.sent.t2.x"], "within": 19.0}  # less than we have
    assert asked.bounds.total_seconds == 19.0
    assert world.cancelled == {1, 2, 3}


async def test_whoever_does_not_tell_leaves_its_hops_unknown_with_the_reason() -> None:
    globex, initech = turn(1, "@a@globex.example"), turn(2, "agent://b.initech.example")
    for answer, code in (
        ((404, b""), "run_not_found"),
        ((403, b""), "peer_refused"),
        ((500, b""), "provider_error"),
        ((200, b"{}"), "provider_error"),
        (ProviderUnavailable("gone"), "provider_unavailable"),
    ):
        world = CancelWorld(globex, initech, globex=answer, initech=answer)
        assert await world.walk() == [
            [("globex.example", "unknown", code)],
            [("initech.example", "unknown", code)],
        ]
        assert "signature" in world.asked[1].headers  # where we have no token
        assert not world.asked[1].secrets


async def test_nobody_is_asked_of_what_has_ended_well_or_whom_we_do_not_know() -> None:
    turns = [
        turn(1, "@a@globex.example", state="done", code=None),
        turn(2, "@a@umbrella.example"),
        turn(3, "section"),
    ]
    world = CancelWorld(*turns)
    world.calls = {1: sent(1, "done"), 3: sent(3)}
    assert await world.walk() == [
        [],
        [(None, "unknown", "peer_unknown")],
        [(None, "unknown", "peer_unknown")],
    ]
    assert world.asked == []


async def test_without_time_nobody_is_asked() -> None:
    world = CancelWorld(turn(1, "@a@globex.example"))
    assert await world.walk(1.0) == [[("globex.example", "unknown", "provider_timeout")]]
    assert world.asked == []


async def test_one_request_names_no_more_turns_than_it_may() -> None:
    turns = [turn(n, "@a@globex.example") for n in range(MOST_TURNS + 1)]
    world = CancelWorld(*turns, globex=(404, b""))
    assert len(await world.walk()) == len(turns)
    assert [len(json.loads(asked.body)["turns"]) for asked in world.asked] == [MOST_TURNS, 1]
