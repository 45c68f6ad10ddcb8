"""`carnet ledger statement` and `compare`: what partners owe one another, and if they agree."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from carnet.cli.failures import OK, UNVERIFIED
from carnet.cli.invocation import Command, Invocation, count, pass_invocation, table, wait

if TYPE_CHECKING:
    from carnet.core.money.statement import Disagreement, Statement
    from carnet.ports.trust.trust import Peer
    from carnet.runtime.partners.statements import PartnerStatements
    from carnet.stores.store import Store

MOST_MATCHED: Final = 1000  # calls that one comparison settles; the next goes on
MOST_MADE: Final = 100_000  # calls of ours that one comparison looks at


def _period(function: Any) -> Any:  # noqa: ANN401, RUF100  as click's decorators are typed
    since = click.option("--since", metavar="T", default="31d", help="From then on (31d).")
    until = click.option("--until", metavar="T", default=None, help="Until then (now).")
    return since(until(function))


@click.command(cls=Command)
@click.argument("peer")
@_period
@click.option("--verify", type=click.Path(path_type=Path, exists=True), help="Judge one of PEER's.")
@pass_invocation
def statement(
    invocation: Invocation, peer: str, since: str, until: str | None, verify: Path | None
) -> None:
    """Sign a statement of the calls between us and PEER, or verify one that PEER has signed.

    It lists what each side has served for the other, with its cost. PEER verifies it with the key
    that it knows us by, without asking us.
    """
    given = None if verify is None else verify.read_text().strip()
    page = wait(_statement(invocation, peer, since, until, given))
    invocation.result(page, lambda: _statement_text(page), page["lines"])


@click.command(cls=Command)
@click.argument("peer")
@_period
@click.option(
    "--with",
    "given",
    type=click.Path(path_type=Path, exists=True),
    help="Compare with this statement of PEER; it is not asked.",
)
@pass_invocation
def compare(
    invocation: Invocation, peer: str, since: str, until: str | None, given: Path | None
) -> int:
    """Compare our records of the calls between us and PEER with those of PEER.

    Names every call that the two sides do not have alike, with the receipt that proves ours. Of a
    call of ours that nobody had told us the cost of, our gateway posts what PEER signs, if it is
    running. Exit code 4 if something is left.
    """
    text = None if given is None else given.read_text().strip()
    page = wait(_compare(invocation, peer, since, until, text))
    invocation.result(page, lambda: _compare_text(page), page["disagreements"])
    left = [each for each in page["disagreements"] if not each["settled"]]
    return UNVERIFIED if left else OK


class _Books(NamedTuple):
    """What a comparison is made with."""

    store: "Store"
    peer: "Peer"
    statements: "PartnerStatements"
    now: int


@asynccontextmanager
async def _opened(invocation: Invocation, domain: str) -> AsyncIterator[_Books]:
    from carnet.assembly.store import open_from
    from carnet.cli.reach.gateway import open_http
    from carnet.cli.reach.request import find_peer
    from carnet.runtime.partners.statements import PartnerStatements
    from carnet.runtime.peers.keyring import Ring
    from carnet.runtime.peers.signing import Signing
    from carnet.runtime.system import SystemClock, SystemIds

    settings, clock = invocation.settings, SystemClock()
    peer = await find_peer(invocation, domain)
    store = await open_from(settings, exclusive=False)
    async with open_http() as http:
        ring = Ring(pinned=store.pinned, peers=store.peers, http=http, clock=clock)
        try:
            await store.refresh()
            await store.keys.ensure(clock.wall_us())
            own = settings.gateway.domain
            signing = Signing(keys=store.keys, domain=own, clock=clock, ids=SystemIds())
            currency = settings.ledger.currency
            asking = PartnerStatements(http, signing, ring, clock, currency=currency)
            yield _Books(store, peer, asking, clock.wall_us())
        finally:
            await ring.close()
            await store.close()


def _times(since: str, until: str | None, now: int) -> tuple[int, int]:
    from carnet.cli.times import read_since
    from carnet.errors import UsageInvalid
    from carnet.wire.grammar.times import micros_of

    begin = micros_of(read_since(since, now)) or 0
    end = now if until is None else micros_of(read_since(until, now)) or 0
    if begin >= end:
        raise UsageInvalid(
            reason="--since is not before --until.", fix="Write the earlier moment as --since."
        )
    return begin, end


async def _ours(
    invocation: Invocation, books: _Books, since: int, until: int, *, most: int
) -> "Statement":
    """Our own records, both sides of them."""
    from carnet.core.money.statement import Statement
    from carnet.errors import UsageInvalid

    settings, lines = invocation.settings, books.store.statements
    own, domain = settings.gateway.domain, books.peer.domain
    served, reached = await lines.served(domain, since, until, limit=most)
    made, reached_there = await lines.made(domain, since, until, domain=own, limit=most)
    if min(reached, reached_there) < until:
        raise UsageInvalid(
            reason=f"There are more than {most} calls in that time.",
            fix="Choose a shorter time with --since and --until.",
        )
    return Statement(
        issuer=own,
        audience=domain,
        since=since,
        until=until,
        currency=settings.ledger.currency,
        served=tuple(served),
        made=tuple(made),
    )


async def _statement(
    invocation: Invocation, domain: str, since: str, until: str | None, given: str | None
) -> dict[str, Any]:
    from carnet.core.people.proof import SECOND_US
    from carnet.wire import travel

    async with _opened(invocation, domain) as books:
        if given is not None:
            shown = await books.statements.verified(given, books.peer.domain)
            return _statement_page(shown, given)
        begin, end = _times(since, until, books.now)
        ours = await _ours(invocation, books, begin, end, most=travel.MOST_LINES)
        signer = books.store.keys.signer()
        issued = books.now // SECOND_US
        text = travel.write_statement(ours, issued=issued, kid=signer.kid, sign=signer.sign)
        return _statement_page(ours, text)


def _statement_page(shown: "Statement", text: str) -> dict[str, Any]:
    from carnet.core.money.amount import format_amount
    from carnet.wire.grammar.times import when

    kinds = (("served", shown.served), ("made", shown.made))
    lines = [
        {
            "kind": kind,
            "at": when(line.at),
            "run": line.run,
            "turn": line.turn,
            "cost": None if line.cost is None else format_amount(line.cost),
            "payer": line.payer,
        }
        for kind, listed in kinds
        for line in listed
    ]
    return {
        "from": shown.issuer,
        "to": shown.audience,
        "since": when(shown.since),
        "until": when(shown.until),
        "served": len(shown.served),
        "owed": format_amount(shown.owed()),
        "made": len(shown.made),
        "owes": format_amount(shown.owes()),
        "currency": shown.currency,
        "lines": lines,
        "statement": text,
    }


def _statement_text(page: dict[str, Any]) -> str:
    currency = page["currency"]
    return (
        f"{page['from']} to {page['to']}, {page['since']} to {page['until']}\n"
        f"  served for {page['to']}: {count(page['served'], 'call')}, {page['owed']} {currency}\n"
        f"  made there: {count(page['made'], 'call')}, {page['owes']} {currency}\n"
        f"{page['statement']}"
    )


async def _compare(
    invocation: Invocation, domain: str, since: str, until: str | None, given: str | None
) -> dict[str, Any]:
    from carnet.core.money.statement import disagreements
    from carnet.gateway.money.comparison import MARGIN_US, comparison_page, receipts_of

    async with _opened(invocation, domain) as books:
        begin, end = _times(since, until, books.now)
        ours = await _ours(invocation, books, begin, end, most=MOST_MADE)
        if given is not None:
            theirs = await books.statements.verified(given, books.peer.domain)
            texts = [given]
        else:
            wide = max(0, begin - MARGIN_US), end + MARGIN_US
            served = [line.key for line in ours.served]
            theirs, texts = await books.statements.ask(books.peer, *wide, served)
        found = disagreements(ours, theirs)
        settled = await _settle(invocation, books.peer.domain, found, texts)
        period = f"{begin}-{end}"
        await books.store.statements.keep(
            books.peer.domain, period, ours.owes(), theirs.owed(), "\n".join(texts), books.now
        )
        receipts = await receipts_of(books.store.records, found)
    return comparison_page(ours, theirs, found, settled, receipts)


async def _settle(
    invocation: Invocation, domain: str, found: "list[Disagreement]", texts: list[str]
) -> set[tuple[str, str]]:
    """Have our gateway post what is unmatched here and proved there; the calls that were."""
    from msgspec.structs import replace

    from carnet.cli.reach import gateway
    from carnet.errors import Unreachable
    from carnet.wire.grammar import json

    calls = [[each.run, each.turn] for each in found if _is_open(each)]
    settled: set[tuple[str, str]] = set()
    if not calls:
        return settled
    async with gateway.open_http() as http, gateway.reached(invocation, http) as (place, by):
        for text in texts:
            body = json.write({"peer": domain, "statement": text, "calls": calls[:MOST_MATCHED]})
            request = replace(
                gateway.request_to(place, "POST", "/ledger/matches", by),
                body=body,
                headers={"content-type": "application/json"},
            )
            try:
                async with gateway.sending(http, request, token_is_new=by.is_new) as answer:
                    page = gateway.decode(await answer.read())
            except Unreachable:  # it is not running: the next comparison settles it
                return settled
            settled |= {(each["run"], each["turn"]) for each in page["settled"]}
    return settled


def _is_open(each: "Disagreement") -> bool:
    return each.kind == "unmatched" and each.owing == "us"


def _compare_text(page: dict[str, Any]) -> str:
    head = [
        f"{page['peer']}, {page['since']} to {page['until']}, in {page['currency']}",
        *(
            f"  {who}: {count(sums['calls'], 'call')}, {sums['here']} here, {sums['there']} there"
            for who, sums in (("we owe", page["we_owe"]), ("they owe", page["they_owe"]))
        ),
    ]
    if not page["disagreements"]:
        return "\n".join([*head, "Both sides agree."])
    columns = ["kind", "owing", "here", "there", "payer_here", "payer_there", "run", "turn"]
    rows = [[str(each[column] or "-") for column in columns] for each in page["disagreements"]]
    words = {each["kind"]: each["what"] for each in page["disagreements"]}
    return "\n".join(
        [
            *head,
            table(rows, [column.upper() for column in columns]),
            *(f"{kind}: {what}." for kind, what in words.items()),
        ]
    )
