"""What somebody has paid: by day, by who was paid, by run; and what rules still let be spent.

Law 1. Sums are of the postings that the page has, and the page says how many these are: the newest.
Law 2. A picture has the table beside it that it was drawn from.
"""

import csv
import io
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from carnet.console.shell import GUARDED, Shell, action_row, page_row
from carnet.core.people.identity import Caller
from carnet.http.exchange import Exchange
from carnet.ports.world.clock import Clock
from carnet.wire.grammar.query import read_query

Page = dict[str, Any]

HOME: Final = "/console/ledger"
NEWEST: Final = 200
DAYS: Final = 14
WIDTH: Final = 40  # of a bar, and of the room between two
HEIGHT: Final = 120
COLUMNS: Final = ("n", "at", "run", "turn", "debit", "credit", "amount", "currency")
_SECOND: Final = 1_000_000
# What a table of numbers takes for a formula; some also as wide signs.
_FORMULA: Final = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")


class LedgerPage:
    """The postings that debit whoever looks at them."""

    def __init__(self, shell: Shell, clock: Clock) -> None:
        self._shell = shell
        self._clock = clock

    async def _entries(self, exchange: Exchange) -> tuple[list[Page], int | None, dict[str, str]]:
        query = read_query(exchange.query.decode("latin-1"))
        asked = {name: query[name][0] for name in ("run", "before") if query.get(name, [""])[0]}
        found = await self._shell.api.get(exchange, "/ledger", {**asked, "limit": NEWEST})
        return found["entries"], found["next"], asked

    async def show(self, exchange: Exchange, caller: Caller) -> None:
        """GET /console/ledger."""
        entries, following, asked = await self._entries(exchange)
        rules = (await self._shell.api.get(exchange, "/rules"))["rules"]
        page = {
            "title": "Ledger",
            "asked": asked,
            "entries": entries,
            "next": following,
            "currency": entries[0]["currency"] if entries else "",
            "total": str(_sum(entries)),
            "days": by_day(entries, self._clock.wall_us()),
            "paid_to": shares(entries, lambda entry: entry["credit"]),
            "by_run": shares(entries, lambda entry: entry["run"]),
            "by_account": shares(entries, lambda entry: entry["debit"]),
            "budgets": [budget(rule) for rule in rules if rule["ceiling"] is not None],
        }
        await self._shell.show(exchange, caller, "operations/ledger.html", page)

    async def table(self, exchange: Exchange, caller: Caller) -> None:
        """GET /console/ledger/csv: the same postings, for other programs."""
        del caller
        entries, _, _ = await self._entries(exchange)
        fields = [
            (b"content-type", b"text/csv; charset=utf-8"),
            (b"content-disposition", b'attachment; filename="ledger.csv"'),
        ]
        await exchange.reply(200, [*fields, *GUARDED], written(entries))


def _sum(entries: Sequence[Page]) -> Decimal:
    return sum((Decimal(entry["amount"]) for entry in entries), Decimal(0))


def by_day(entries: Sequence[Page], now: int) -> list[Page]:
    """The last days, the oldest first, each with what was paid and the bar that shows it."""
    today = datetime.fromtimestamp(now // _SECOND, UTC).date()
    days = [(today - timedelta(days=ago)).isoformat() for ago in reversed(range(DAYS))]
    paid = {day: _sum([each for each in entries if each["at"][:10] == day]) for day in days}
    most = max(paid.values()) or Decimal(1)
    return [
        {
            "day": day,
            "amount": str(paid[day]),
            "x": place * WIDTH,
            "height": max(int(paid[day] / most * HEIGHT), 1 if paid[day] else 0),
        }
        for place, day in enumerate(days)
    ]


def shares(entries: Sequence[Page], key: Callable[[Page], str]) -> list[Page]:
    """What was paid for each, the most first, and its part of the largest in a hundred."""
    sums: dict[str, Decimal] = {}
    for entry in entries:
        sums[key(entry)] = sums.get(key(entry), Decimal(0)) + Decimal(entry["amount"])
    ordered = sorted(sums.items(), key=lambda item: (-item[1], item[0]))[:12]
    most = (ordered[0][1] if ordered else Decimal(1)) or Decimal(1)
    return [
        {"name": name, "amount": str(amount), "part": int(amount / most * 100)}
        for name, amount in ordered
    ]


def budget(rule: Page) -> Page:
    """How much of the ceiling of a rule is used."""
    used, ceiling = Decimal(rule["used"]), Decimal(rule["ceiling"])
    part = int(used / ceiling * 100) if ceiling else 100
    return {**rule, "part": min(max(part, 0), 100), "left": str(max(ceiling - used, Decimal(0)))}


def written(entries: Sequence[Page]) -> bytes:
    """Postings as CSV; what a program would take for a formula is text in it."""
    out = io.StringIO()
    lines = csv.writer(out)
    lines.writerow(COLUMNS)
    for entry in entries:
        texts = [str(entry[name]) for name in COLUMNS]
        lines.writerow([f"'{text}" if text.startswith(_FORMULA) else text for text in texts])
    return out.getvalue().encode()


_READ: Final = {"permission": "run:read"}
ROUTES: Final = (
    *page_row(HOME, LedgerPage.show, "What was paid", **_READ),
    action_row("GET", f"{HOME}/csv", LedgerPage.table, "The postings as CSV", **_READ),
)
