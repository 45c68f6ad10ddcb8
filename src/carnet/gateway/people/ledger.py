"""What whoever asks has paid for: its postings, and one line of each run that they are of (R26).

Law 1. Who pays is told what it paid for, whoever called; what was asked and answered belongs to the
       caller and is not told.
Law 2. Whoever shows a token of a person asks as that person: for all accounts that her live tokens
       bill. A service asks for its own account, a peer's token for the peer's.
"""

from collections.abc import Callable, Collection
from typing import Final

from carnet.core.people.identity import Account, Caller, Token
from carnet.errors import InvalidRequest
from carnet.gateway.pages import Page, ledger_page, run_line
from carnet.http.exchange import Exchange, Row, reply_json
from carnet.ports.money.payments import HeldAccount, Payments
from carnet.ports.trust.people import People
from carnet.ports.world.records import OF_TURN
from carnet.wire.grammar.query import Query, read_lines, read_number, read_query, read_word

MOST_ACCOUNTS: Final = 64  # of one person


class Holdings:
    """Knows the accounts of callers."""

    def __init__(
        self, tokens: Callable[[], Collection[Token]], people: People, *, domain: str
    ) -> None:
        """`tokens` gives all of them, from memory; `domain` is ours."""
        self._tokens = tokens
        self._people = people
        self._domain = domain

    def of(self, caller: Caller, now: int) -> list[HeldAccount]:
        """The accounts of whoever shows a token, each with since when it has them."""
        known = self._tokens()
        shown = next((token for token in known if token.number == caller.token), None)
        if shown is None:
            return []
        if shown.person is None:
            account = self._account(shown)
            alike = [one for one in known if one.person is None and self._account(one) == account]
            return [HeldAccount(account, min(token.created for token in alike))]
        hers = [token for token in known if token.person == shown.person]
        live = {self._account(token) for token in hers if token.is_live(now)}
        begun: dict[Account, int] = {}
        for token in hers:
            account = self._account(token)
            if account in live:
                begun[account] = min(token.created, begun.get(account, token.created))
        person = self._people.numbered(shown.person)
        if person is not None and person.account is not None:
            begun.setdefault(Account(self._domain, person.account), person.created)
        return [HeldAccount(one, since) for one, since in sorted(begun.items())][:MOST_ACCOUNTS]

    def _account(self, token: Token) -> Account:
        """The account that a token bills."""
        if token.peer is not None:
            return Account(token.peer, token.peer)
        return Account(self._domain, token.payer or token.account)


class LedgerPages:
    """What was paid, over HTTP."""

    def __init__(
        self,
        payments: Payments,
        holdings: Holdings,
        now: Callable[[], int],
        *,
        currency: str,
    ) -> None:
        """`now` is the wall clock, in microseconds."""
        self._payments = payments
        self._holdings = holdings
        self._now = now
        self._currency = currency

    async def list(self, exchange: Exchange, caller: Caller) -> None:
        """GET /ledger: the postings that debit whoever asks, newest first."""
        query = read_query(exchange.query.decode("latin-1"))
        entries, following = await self._payments.postings(
            self._holdings.of(caller, self._now()),
            limit=read_lines(query),
            before=read_number(query, "before", 0) or None,
            run=read_word(query, "run"),
        )
        await reply_json(exchange, {**ledger_page(entries, self._currency), "next": following})

    async def runs(self, caller: Caller, query: Query) -> Page:
        """The page of `GET /runs?payer=me`, which goes by the account alone."""
        for name in (*OF_TURN, "since"):
            if name in query:
                raise InvalidRequest(name, "is not asked for beside payer=me")
        found, following = await self._payments.runs(
            self._holdings.of(caller, self._now()),
            limit=read_lines(query),
            before=read_number(query, "before", 0) or None,
        )
        return {"runs": [run_line(each, self._currency) for each in found], "next": following}


ROUTES = (
    Row(
        method="GET",
        path="/ledger",
        endpoint=LedgerPages.list,
        permission="run:read",
        summary="What the holder of this token has paid",
        query=("limit", "before", "run"),
        answer="Page",
    ),
)
