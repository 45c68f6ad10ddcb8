"""What people are asked, over HTTP: the list, one question, and its answer.

Law 1. A person sees what her calls asked for, whichever token of hers they came with; an operator
       sees all. What a caller may not see does not exist for it.
Law 2. Who asked first answers, or somebody who holds `approve`; a payment is agreed to by its
       payer, or by a person whom the payer has named, as far as her ceiling goes (R45).
Law 3. The secret of a question is on no page.
"""

from typing import Any, Final

import msgspec

from carnet.core.messages.interrupt import (
    Resolution,
    chain_of,
    policy_words,
    words_of,
)
from carnet.core.money.amount import format_amount, parse_amount
from carnet.core.people.address import asker
from carnet.core.people.identity import Caller, allows, owner_of, person_of
from carnet.errors import (
    AnswerForbidden,
    Cancelled,
    InterruptNotFound,
    InvalidRequest,
    PersonNotFound,
    RuleNotFound,
)
from carnet.gateway.people.decision import (
    APPROVE,
    Decision,
    amount_of,
    ceiling_of,
    check_rights,
    read_approver,
    read_decision,
    shown_raise,
)
from carnet.http.exchange import Exchange, Row, check_json_body, reader_of, reply_json
from carnet.ports.calls.inbox import NOT_AGREED, Deciding, Inbox, InboxEntry, Rule, Rules
from carnet.ports.trust.people import People
from carnet.ports.world.clock import Clock
from carnet.wire.grammar.query import is_number, read_lines, read_number, read_query, read_word
from carnet.wire.grammar.times import when

APPROVER: Final = "approver"  # the kind of a rule by which a person agrees to another's payments
MOST_BYTES: Final = 65_536  # of an answer
NOT_PAID_HERE: Final = (
    "The amount is in another currency: an answer moves no money here. Pay it where it is asked"
    " for, and then approve, which says that it is done."
)
MAY_NOT_APPROVE: Final = (
    "{name} may not approve yet, and sees nothing of yours before she may: she and a token of hers"
    " need the permission 'approve'."
)
_STATUSES: Final = ("open", "all")


class Approvals:
    """The pages of what people are asked."""

    def __init__(
        self,
        inbox: Inbox,
        decisions: Deciding,
        rules: Rules,
        people: People,
        *,
        clock: Clock,
        domain: str,
    ) -> None:
        """`domain` is ours: our agents are named with it."""
        self._inbox = inbox
        self._rules = rules
        self._people = people
        self._clock = clock
        self._decisions = decisions
        self._domain = domain

    async def list(self, exchange: Exchange, caller: Caller) -> None:
        """GET /approvals."""
        query = read_query(exchange.query.decode("latin-1"))
        limit = read_lines(query)
        status = read_word(query, "status") or "open"
        if status not in _STATUSES:
            raise InvalidRequest("status", f"must be one of {', '.join(_STATUSES)}")
        found = await self._inbox.list(
            owner=_seen_by(caller),
            is_open=status == "open",
            limit=limit,
            before=read_number(query, "before", 0) or None,
        )
        following = found[-1].n if len(found) == limit else None
        lines = [self._page(entry) for entry in found]
        await reply_json(exchange, {"approvals": lines, "next": following})

    async def show(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """GET /approvals/{id}."""
        await reply_json(exchange, self._page(await self._find(name, _seen_by(caller))))

    async def decide(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """POST /approvals/{id}."""
        check_json_body(exchange.headers)
        body = await exchange.read(MOST_BYTES)
        decision = read_decision(body)
        entry = await self._find(name, None if caller.may(APPROVE) else caller.owner)
        check_rights(caller, decision, entry)
        ceiling = ceiling_of(decision, entry)
        if decision.remember is not None and caller.owner != entry.owner:
            raise AnswerForbidden(reason="an answer for the future is given by who is asked")
        used = await self._check_resolver(caller, decision, entry)
        resolver = self._name(caller.person, caller.actor.name)
        resolution = Resolution(outcome=decision.result, value=decision.value, resolver=resolver)
        try:
            answered = await self._decisions.decide(entry, resolution)
        except NOT_AGREED:  # of others it is not known
            await self._give_back(used)
            raise
        if decision.result == "rejected" or answered.record.resolver != resolver:
            await self._give_back(used)  # it was agreed to before, by somebody
        if decision.remember is not None:
            await self._decisions.remember(entry, ceiling)
        decided = decision.decision  # who answers in a client's words is answered in these, too
        words = {} if decided is None else {"request_id": name, "decision": decided}
        await reply_json(exchange, self._page(answered) | words)

    async def _check_resolver(
        self, caller: Caller, decision: Decision, entry: InboxEntry
    ) -> tuple[int, int] | None:
        """Refuse who may not answer; the rule by which somebody else agrees, and to how much."""
        asked = entry.record.interrupt
        if not asked.is_of_money or caller.owner == entry.owner or entry.record.status != "open":
            return None  # of one that was answered nothing changes
        used, amount = None, amount_of(decision, entry)
        if amount is not None:
            used = await self._rules.use(
                owner=entry.owner, agent=caller.owner, kind=APPROVER, amount=amount
            )
        if used is None or amount is None:
            raise AnswerForbidden(reason="a payment is agreed to by who pays")
        return used, amount

    async def _give_back(self, used: tuple[int, int] | None) -> None:
        if used is not None:
            await self._rules.give_back(*used)

    async def name_approver(self, exchange: Exchange, caller: Caller) -> None:
        """POST /rules: let a person agree to one's payments.

        Only people name one another: a machine cannot find out who is known here.
        """
        if caller.person is None:
            raise AnswerForbidden(reason="a person names who agrees for her")
        check_json_body(exchange.headers)
        body = await exchange.read(MOST_BYTES)
        asked = read_approver(body)
        if self._people.find(asked.person) is None:  # perhaps added a moment ago
            await self._people.list()
        person = self._people.find(asked.person)
        if person is None:
            raise PersonNotFound
        if person.n == caller.person:
            raise InvalidRequest("person", "is you, and you agree to your payments as it is")
        await self._rules.add(
            owner=caller.owner,
            agent=owner_of(person.n, ""),
            kind=APPROVER,
            ceiling=parse_amount(asked.ceiling, field="ceiling"),
            now=self._clock.wall_us(),
        )
        may_approve = allows(person.rights, APPROVE)
        note = {} if may_approve else {"note": MAY_NOT_APPROVE.format(name=person.name)}
        await reply_json(exchange, await self._rules_page(caller) | note)

    async def rules(self, exchange: Exchange, caller: Caller) -> None:
        """GET /rules."""
        await reply_json(exchange, await self._rules_page(caller))

    async def _rules_page(self, caller: Caller) -> dict[str, Any]:
        found = await self._rules.list(caller.owner)
        return {"rules": [self._rule_page(rule) for rule in found]}

    async def end_rule(self, exchange: Exchange, caller: Caller, number: str) -> None:
        """POST /rules/{n}/end."""
        now = self._clock.wall_us()
        known = is_number(number) and await self._rules.end(caller.owner, int(number), now)
        if not known:
            raise RuleNotFound
        await reply_json(exchange, {"rule": int(number), "ended": when(now)})

    async def _find(self, name: str, owner: str | None) -> InboxEntry:
        found = await self._inbox.find(name, owner=owner)
        if found is None:
            raise InterruptNotFound
        return found

    def _page(self, entry: InboxEntry) -> dict[str, Any]:
        record, turn = entry.record, entry.turn
        asked = record.interrupt
        amount = None if asked.amount is None else format_amount(asked.amount)
        more = asked.more or {}
        page = {
            "id": asked.id,
            "kind": asked.kind,
            "message": asked.message,
            "asked_by": asker(asked.origin, turn.agent, self._domain),
            "amount": amount,
            "currency": asked.currency,
            "other_amount": asked.other_amount,
            "url": asked.url,
            "options": list(asked.options),
            "schema": asked.schema,
            "arguments": more.get("arguments"),
            "preview": more.get("preview"),
            "budget": shown_raise(asked.raises),
            "without": asked.without,
            "chain": chain_of(asked, turn.agent),
            "agent": turn.agent,
            "run": turn.run,
            "turn": turn.turn,
            "owner": self._name(person_of(entry.owner), entry.owner),
            "created": when(record.asked),
            "expires": when(record.expires),
            "status": _status(entry),
        } | policy_words(asked)
        if asked.other_amount is not None:
            page["note"] = NOT_PAID_HERE
        if record.status == "resolved":
            value = None if record.value is None else msgspec.json.decode(record.value)
            page |= {"outcome": record.outcome, "value": value, "resolver": record.resolver}
            page |= {"resolved": when(record.resolved)}
        return page

    def _rule_page(self, rule: Rule) -> dict[str, Any]:
        ceiling = None if rule.ceiling is None else format_amount(rule.ceiling)
        person = self._people.owner(rule.chain) if rule.kind == APPROVER else None
        return {
            "rule": rule.n,
            "kind": rule.kind,
            "chain": rule.chain if person is None else person.handle(self._domain),
            "message": words_of(rule.question),
            "ceiling": ceiling,
            "used": format_amount(rule.used),
            "created": when(rule.created),
        }

    def _name(self, number: int | None, name: str) -> str:
        """How somebody is shown: a person by her name."""
        person = None if number is None else self._people.numbered(number)
        return name if person is None else person.name


def _status(entry: InboxEntry) -> str:
    """How a question stands: one whose call was cancelled did not come too late."""
    is_cancelled = entry.record.status == "expired" and entry.turn.code == Cancelled.code
    return "cancelled" if is_cancelled else entry.record.status


def _seen_by(caller: Caller) -> str | None:
    """Whose questions a caller sees: None is everybody's."""
    return None if caller.may(APPROVE) or reader_of(caller) is None else caller.owner


ROUTES = (
    Row(
        method="GET",
        path="/approvals",
        endpoint=Approvals.list,
        permission="run:read",
        summary="What agents wait for an answer to",
        query=("status", "limit", "before"),
        answer="Page",
    ),
    Row(
        method="GET",
        path="/approvals/{id}",
        endpoint=Approvals.show,
        permission="run:read",
        summary="One question",
        answer="Page",
    ),
    Row(
        method="POST",
        path="/approvals/{id}",
        endpoint=Approvals.decide,
        permission="run:read",
        summary="Answer it",
        body="Decision",
        answer="Page",
    ),
    Row(
        method="GET",
        path="/rules",
        endpoint=Approvals.rules,
        permission="run:read",
        summary="Answers that were given for the future",
        answer="Page",
    ),
    Row(
        method="POST",
        path="/rules",
        endpoint=Approvals.name_approver,
        permission="pay",
        summary="Let a person agree to payments of whoever asks",
        body="NewApprover",
        answer="Page",
    ),
    Row(
        method="POST",
        path="/rules/{number}/end",
        endpoint=Approvals.end_rule,
        permission="run:read",
        summary="Take one back",
        answer="Page",
    ),
)
