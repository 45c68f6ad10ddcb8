"""What somebody has paid: by day, by who was paid, by run; and what may still be spent.

For who may `admin:books` also whether the ledger is whole, and whether partners agree with it.

Law 1. Sums are of the postings that the page has, and the page says how many these are: the newest.
Law 2. A picture has the table beside it that it was drawn from.
Law 3. An export is bounded, and walks the same pages as everybody does.
"""

import csv
import io
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from carnet.console.api import PageAsker
from carnet.console.forms import read_form
from carnet.console.shell import GUARDED, Shell, action_row, page_row
from carnet.core.people.identity import Caller
from carnet.errors import InvalidRequest
from carnet.http.exchange import Exchange
from carnet.ports.world.clock import Clock
from carnet.wire.grammar import json
from carnet.wire.grammar.query import is_number, read_query

Page = dict[str, Any]

HOME: Final = "/console/ledger"
NEWEST: Final = 200
MOST_EXPORTED: Final = 5000  # postings
AUDITS: Final = "admin:books"
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
        asked = _asked(exchange)
        found = await self._shell.api.get(exchange, "/ledger", {**asked, "limit": NEWEST})
        return found["entries"], found["next"], asked

    async def show(self, exchange: Exchange, caller: Caller) -> None:
        """GET /console/ledger."""
        entries, following, asked = await self._entries(exchange)
        api = self._shell.api.of(exchange)
        rules = (await api.get("/rules"))["rules"]
        bounds = await api.get("/budgets")
        audits = caller.may(AUDITS)
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
            "bars": [*map(limit_bar, bounds["limits"]), *budget_bars(bounds["budgets"])],
            "bounds": bounds,
            "chain": await api.get("/ledger/chain") if audits else None,
            "partners": await _partners(api, caller) if audits else None,
        }
        await self._shell.show(exchange, caller, "operations/ledger.html", page)

    async def table(self, exchange: Exchange, caller: Caller) -> None:
        """GET /console/ledger/csv: the postings, for other programs."""
        del caller
        await _attach(exchange, written(await self._all(exchange)), "ledger.csv", b"text/csv")

    async def data(self, exchange: Exchange, caller: Caller) -> None:
        """GET /console/ledger/export: the same as JSON."""
        del caller
        body = json.write({"entries": await self._all(exchange)})
        await _attach(exchange, body, "ledger.json", b"application/json")

    async def _all(self, exchange: Exchange) -> list[Page]:
        api, asked = self._shell.api.of(exchange), _asked(exchange)
        found: list[Page] = []
        while len(found) < MOST_EXPORTED:
            page = await api.get("/ledger", {**asked, "limit": NEWEST})
            found += page["entries"]
            if page["next"] is None:
                break
            asked["before"] = str(page["next"])
        return found[:MOST_EXPORTED]

    # ------------------------------------------------------------------ for who audits

    async def verify(self, exchange: Exchange, caller: Caller) -> None:
        """POST /console/ledger/verify: check every posting now."""
        chain = (await self._shell.api.of(exchange).ask("POST", "/ledger/chain")).page
        await self._shell.write(exchange, caller, "operations/chain.html", {"chain": chain})

    async def compare(self, exchange: Exchange, caller: Caller) -> None:
        """POST /console/ledger/compare: our records beside those of a partner."""
        api, form = self._shell.api.of(exchange), await read_form(exchange)
        days = form.text("days") or "31"
        if not is_number(days):
            raise InvalidRequest("days", "must be a whole number")
        asked = {"peer": form.text("peer"), "days": int(days)}
        found = (await api.ask("POST", "/ledger/compare", asked)).page
        await self._shell.write(exchange, caller, "operations/comparison.html", {"found": found})


def _asked(exchange: Exchange) -> dict[str, str]:
    query = read_query(exchange.query.decode("latin-1"))
    return {name: query[name][0] for name in ("run", "before") if query.get(name, [""])[0]}


async def _partners(api: PageAsker, caller: Caller) -> list[str]:
    """Whose records ours can be compared with, for who may see that."""
    if not caller.may("metrics"):
        return []
    listed = (await api.get("/partners"))["partners"]
    return [each["domain"] for each in listed if each["is_peer"]]


async def _attach(exchange: Exchange, body: bytes, name: str, kind: bytes) -> None:
    fields = [
        (b"content-type", kind + b"; charset=utf-8"),
        (b"content-disposition", f'attachment; filename="{name}"'.encode()),
    ]
    await exchange.reply(200, [*fields, *GUARDED], body)


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


def _bar(subject: str, part: str, used: Page, *, of: str) -> Page:
    """How much of a bound is used: `used` has what is spent and held, in the same unit."""
    most, spent, held = Decimal(of), Decimal(used["spent"]), Decimal(used["held"])
    used_up = spent + held
    share = used_up / most * 100 if most else Decimal(100 if used_up else 0)
    return {
        "subject": subject,
        "part": part,
        "limit": of,
        "spent": used["spent"],
        "held": used["held"],
        "left": str(max(most - used_up, Decimal(0))),
        "share": min(max(int(share), 0), 100),
        "until": None,
        "per": "all",
        "set_by": None,
    }


def limit_bar(limit: Page) -> Page:
    """The bar of a hard limit: of a token, or of what a partner may owe us."""
    return _bar(limit["subject"], "money", limit, of=limit["limit"])


def budget_bars(budgets: Sequence[Page]) -> list[Page]:
    """The bars of budgets: one for each part that is bounded."""
    return [
        _bar(
            each["subject"],
            part,
            {"spent": str(each["spent"][part]), "held": str(each["held"][part])},
            of=str(each["limits"][part]),
        )
        | {"until": each["until"], "per": each["per"], "set_by": each["set_by"]}
        for each in budgets
        for part in ("money", "calls", "tokens")
        if each["limits"][part] is not None
    ]


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
_AUDITS: Final = {"permission": AUDITS}
ROUTES: Final = (
    *page_row(HOME, LedgerPage.show, "What was paid", **_READ),
    action_row("GET", f"{HOME}/csv", LedgerPage.table, "The postings as CSV", **_READ),
    action_row("GET", f"{HOME}/export", LedgerPage.data, "The postings as JSON", **_READ),
    action_row("POST", f"{HOME}/verify", LedgerPage.verify, "Check the ledger", **_AUDITS),
    action_row("POST", f"{HOME}/compare", LedgerPage.compare, "Compare with a partner", **_AUDITS),
)
