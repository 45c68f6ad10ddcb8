"""What may be spent, and how much of it is used: budgets that were set, and hard limits.

Law 1. Whoever asks is told of what bounds her: her person and her tokens. Who may `admin:books` is
       told of everybody's, and of what partners may owe us.
Law 2. What is held for calls that run is told apart from what is spent.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from carnet.core.money.amount import format_amount
from carnet.core.people.identity import Caller, Token
from carnet.core.people.proof import Spending
from carnet.http.exchange import Exchange, Row, reply_json
from carnet.ports.money.budgets import DAY, Amounts, BudgetRecord, Budgets
from carnet.ports.money.payments import Payments, UsedQuota
from carnet.ports.trust.people import People
from carnet.ports.trust.trust import Peers
from carnet.wire.grammar.times import when

Page = dict[str, Any]

SEES_ALL: Final = "admin:books"
MOST: Final = 500  # of each list
PERSON: Final = "person:"
BEARER: Final = "token:"
PEER: Final = "peer:"


class BudgetPages:
    """Budgets, over HTTP."""

    def __init__(
        self,
        budgets: Budgets,
        payments: Payments,
        tokens: Callable[[], Collection[Token]],
        people: People,
        peers: Peers,
        now: Callable[[], int],
        *,
        currency: str,
    ) -> None:
        """`tokens` gives all of them, from memory; `now` is the wall clock in microseconds."""
        self._budgets = budgets
        self._payments = payments
        self._tokens = tokens
        self._people = people
        self._peers = peers
        self._now = now
        self._currency = currency

    async def show(self, exchange: Exchange, caller: Caller) -> None:
        """GET /budgets."""
        everybody = caller.may(SEES_ALL)
        tokens = self._live(caller, everybody=everybody)
        names = None if everybody else {f"{BEARER}{token.account}" for token in tokens}
        if names is not None and caller.person is not None:
            names.add(f"{PERSON}{caller.person}")
        found = [
            self._page(one)
            for one in await self._budgets.list()
            if names is None or one.name.removesuffix(DAY) in names
        ]
        limits = await self._limits(tokens, everybody=everybody)
        page = {
            "budgets": found[:MOST],
            "limits": limits[:MOST],
            "is_cut": len(found) > MOST or len(limits) > MOST,
            "currency": self._currency,
        }
        await reply_json(exchange, page)

    def _live(self, caller: Caller, *, everybody: bool) -> list[Token]:
        now = self._now()
        live = [token for token in self._tokens() if token.is_live(now)]
        if everybody:
            return live
        if caller.person is not None:
            return [token for token in live if token.person == caller.person]
        return [token for token in live if token.number == caller.token]

    async def _limits(self, tokens: list[Token], *, everybody: bool) -> list[Page]:
        """Hard limits: of tokens, and of what partners may owe us."""
        caps = [
            (BEARER, token.name, f"{BEARER}{token.account}", token.spending_limit)
            for token in tokens
            if token.spending_limit is not None and token.peer is None
        ]
        if everybody:
            caps += [
                (PEER, peer.domain, f"{PEER}{peer.domain}", peer.credit)
                for peer in await self._peers.list()
            ]
        caps = caps[: MOST + 1]
        used = await self._payments.quotas([quota for _, _, quota, _ in caps])
        return [
            limit_page(f"{kind}{name}", most, used.get(quota)) for kind, name, quota, most in caps
        ]

    def _page(self, one: BudgetRecord) -> Page:
        return budget_page(one) | {"subject": self._subject(one.name.removesuffix(DAY))}

    def _subject(self, name: str) -> str:
        """A name of the store as people know it."""
        number = name.removeprefix(PERSON)
        if number == name or not number.isdecimal():
            return name
        person = self._people.numbered(int(number))
        return name if person is None else f"{PERSON}{person.name}"


def limit_page(subject: str, most: int, used: UsedQuota | None) -> Page:
    """A hard limit."""
    spent, held = (0, 0) if used is None else (used.spent, used.held)
    return {
        "subject": subject,
        "limit": format_amount(most),
        "spent": format_amount(spent),
        "held": format_amount(held),
        "left": format_amount(max(most - spent - held, 0)),
    }


def budget_page(one: BudgetRecord) -> Page:
    """A budget as it stands."""
    return {
        "name": one.name,
        "run": one.run or None,
        "limits": _bounds(one.limits),
        "spent": _counts(one.spent),
        "held": _counts(one.held),
        "left": _bounds(one.left),
        "until": when(one.until),
        "per": "all" if one.period is None else "day",
        "set_by": "carnet.toml" if one.written else "store",
        "on_budget": "ask" if one.asks else "refuse",
    }


def _bounds(amounts: Spending) -> Mapping[str, Any]:
    return {
        "money": None if amounts.money is None else format_amount(amounts.money),
        "currency": amounts.currency,
        "calls": amounts.calls,
        "tokens": amounts.tokens,
    }


def _counts(amounts: Amounts) -> Mapping[str, Any]:
    money = format_amount(amounts.money)
    return {"money": money, "calls": amounts.calls, "tokens": amounts.tokens}


ROUTES: Final = (
    Row(
        method="GET",
        path="/budgets",
        endpoint=BudgetPages.show,
        permission="run:read",
        summary="What may be spent, and how much of it is used",
        answer="Page",
    ),
)
