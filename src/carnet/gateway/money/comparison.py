"""Our records of the calls between us and a partner, beside those of the partner.

It is what `carnet ledger compare` shows. What nobody had told us the cost of is posted by the
command alone: here is read.

Law 1. One comparison with a partner at a time, over at most `MOST_DAYS` and `MOST_CALLS`.
Law 2. What the partner says is verified before it is compared.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from carnet.core.money.amount import format_amount
from carnet.core.money.statement import Disagreement, Statement, disagreements
from carnet.core.people.identity import Caller
from carnet.errors import InvalidRequest, PeerUnknown
from carnet.gateway.partners.askers import Walks
from carnet.http.exchange import Exchange, Row, check_json_body, reply_json
from carnet.ports.calls.statements import StatementLines
from carnet.ports.trust.trust import Peer, Peers
from carnet.ports.world.clock import Clock
from carnet.ports.world.records import Records
from carnet.wire.grammar import json
from carnet.wire.grammar.times import when

Page = dict[str, Any]
Ask = Callable[[Peer, int, int, Sequence[tuple[str, str]]], Awaitable[tuple[Statement, list[str]]]]

MARGIN_US: Final = 3600 * 1_000_000  # by which clocks may differ, and a call may last
DAY_US: Final = 86_400_000_000
DAYS: Final = 31
MOST_DAYS: Final = 366
MOST_CALLS: Final = 10_000  # of each side that one comparison looks at
MOST_SHOWN: Final = 500  # disagreements
MOST_BYTES: Final = 4096
_WORDS: Final = {
    "missing_here": "they have a call that we have not: ask them for its receipt",
    "missing_there": "we have a call that they have not: show them what they signed about it",
    "other_amount": "the two sides have other amounts: what they signed about the call decides",
    "other_payer": "they billed another payer than they were told of",
    "unmatched": "nobody had told us what it cost; our gateway posts what they have signed",
}


class ComparisonEndpoint:
    """Compares."""

    def __init__(
        self,
        lines: StatementLines,
        ask: Ask,
        records: Records,
        peers: Peers,
        clock: Clock,
        *,
        domain: str,
        currency: str,
    ) -> None:
        """`ask` gives what a partner states, verified; `domain` is ours."""
        self._lines = lines
        self._ask = ask
        self._records = records
        self._peers = peers
        self._clock = clock
        self._domain = domain
        self._currency = currency
        self._comparing = Walks(1)

    async def compare(self, exchange: Exchange, caller: Caller) -> None:
        """POST /ledger/compare: with a partner, over so many days until now."""
        del caller
        check_json_body(exchange.headers)
        asked = json.read_object(await exchange.read(MOST_BYTES))
        name, days = asked.get("peer"), asked.get("days", DAYS)
        if type(days) is not int or not 1 <= days <= MOST_DAYS:
            raise InvalidRequest("days", f"must be 1 to {MOST_DAYS}")
        peer = self._peers.find(name) if isinstance(name, str) else None
        if peer is None:
            raise PeerUnknown
        now = self._clock.wall_us()
        with self._comparing.one(peer.domain):
            ours = await self._ours(peer.domain, now - days * DAY_US, now)
            wide = max(0, ours.since - MARGIN_US), ours.until + MARGIN_US
            served = [line.key for line in ours.served]
            theirs, _ = await self._ask(peer, *wide, served)
        found = disagreements(ours, theirs)
        receipts = await receipts_of(self._records, found[:MOST_SHOWN])
        page = comparison_page(ours, theirs, found[:MOST_SHOWN], set(), receipts)
        await reply_json(exchange, {**page, "count": len(found), "at": when(now)})

    async def _ours(self, peer: str, since: int, until: int) -> Statement:
        """Our own records, both sides of them."""
        served, reached = await self._lines.served(peer, since, until, limit=MOST_CALLS)
        made, reached_there = await self._lines.made(
            peer, since, until, domain=self._domain, limit=MOST_CALLS
        )
        if min(reached, reached_there) < until:
            raise InvalidRequest("days", f"hold more than {MOST_CALLS} calls: choose fewer")
        return Statement(
            issuer=self._domain,
            audience=peer,
            since=since,
            until=until,
            currency=self._currency,
            served=tuple(served),
            made=tuple(made),
        )


async def receipts_of(
    records: Records, found: Sequence[Disagreement]
) -> dict[tuple[str, str], str]:
    """What the partner has signed about calls of ours that it now has otherwise."""
    receipts = {}
    for run in {each.run for each in found if each.owing == "us"}:
        by_turn = await records.outbound(run, reader=None)
        for call in [call for calls in by_turn.values() for call in calls]:
            if call.receipt is not None:
                receipts[run, call.child_turn] = call.receipt
    return receipts


def _amount(micros: int | None) -> str | None:
    return None if micros is None else format_amount(micros)


def comparison_page(
    ours: Statement,
    theirs: Statement,
    found: Sequence[Disagreement],
    settled: set[tuple[str, str]],
    receipts: dict[tuple[str, str], str],
) -> Page:
    """What both sides have, and where they differ."""
    listed = [
        {
            "kind": each.kind,
            "owing": each.owing,
            "run": each.run,
            "turn": each.turn,
            "here": _amount(each.here),
            "there": _amount(each.there),
            "payer_here": each.payer_here,
            "payer_there": each.payer_there,
            "settled": (each.run, each.turn) in settled,
            "receipt": receipts.get((each.run, each.turn)),
            "what": _WORDS[each.kind],
        }
        for each in found
    ]
    within = [line for line in theirs.served if ours.since <= line.at < ours.until]
    return {
        "peer": ours.audience,
        "since": when(ours.since),
        "until": when(ours.until),
        "we_owe": {
            "calls": len(ours.made),
            "here": format_amount(ours.owes()),
            "there": format_amount(sum(line.cost or 0 for line in within)),
        },
        "they_owe": {
            "calls": len(ours.served),
            "here": format_amount(ours.owed()),
            "there": format_amount(theirs.owes()),
        },
        "currency": ours.currency,
        "disagreements": listed,
    }


SCHEMAS: Final[dict[str, Any]] = {
    "Comparison": {
        "type": "object",
        "required": ["peer"],
        "properties": {
            "peer": {"type": "string", "description": "The domain of a partner"},
            "days": {"type": "integer", "minimum": 1, "maximum": MOST_DAYS, "default": DAYS},
        },
    },
}
ROUTES: Final = (
    Row(
        method="POST",
        path="/ledger/compare",
        endpoint=ComparisonEndpoint.compare,
        permission="admin:books",
        summary="Compare our records with those of a partner",
        body="Comparison",
        answer="Page",
    ),
)
