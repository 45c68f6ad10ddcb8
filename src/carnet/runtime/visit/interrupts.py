"""What the agent of one visit asks for before it goes on.

A question that is not answered yet ends the attempt: `Paused` unwinds the agent's function, and its
turn waits. When it is answered the function runs again from its beginning; what it has done is
given from the record, and the question gives its answer.

Law 1. A question is known by its place among those of its turn, so that a function which runs again
       asks the same ones. Another kind there means that the agent has changed.
Law 2. What unwinds is no Exception: nobody takes it for a failure, or tries again because of it.
Law 3. What a callee asks for is asked for by this turn as well, with its secret and its origin.
Law 4. A function that went on after it asked has not waited: its turn fails.
"""

import asyncio
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final

from msgspec.structs import replace

from carnet.core.call import Call
from carnet.core.messages.events import Waiting
from carnet.core.messages.interrupt import (
    APPROVAL,
    PAYMENT,
    BudgetRaise,
    Interrupt,
    Resolution,
    check_together,
)
from carnet.core.money.amount import format_amount, parse_amount
from carnet.errors import BudgetExceeded, Cancelled, DefinitionChanged
from carnet.wire.dialects.policy import own_id

MOST_MESSAGE: Final = 1000  # characters
MOST_OPTIONS: Final = 32
MOST_RAISES: Final = 100  # times that who pays is asked for more at one place

_PARTS: Final = frozenset({"money", "calls", "tokens", "seconds"})
# What an answer may say: how much more it gives. Nothing: as much as was asked for.
_MONEY: Final = {"type": ["string", "null"], "pattern": r"^[0-9]{1,9}(\.[0-9]{1,6})?$"}
_COUNT: Final = {
    "type": ["integer", "string", "null"],
    "minimum": 1,
    "pattern": "^[1-9][0-9]{0,11}$",
}

_MESSAGES: Final = {
    "approval": "The agent asks for your approval.",
    PAYMENT: "The agent asks for a payment.",
    "consent": "The agent asks for your consent.",
    "sign_in": "The agent asks you to sign in.",
    "input": "The agent asks for an answer.",
}


class Paused(BaseException):
    """Unwinds a function whose turn is to wait. Let it pass."""

    ids: frozenset[str] = frozenset()  # of what a callee asks for


class TurnQuestions:
    """The questions of one turn."""

    __slots__ = ("_key", "_next", "_resolved", "asked")

    def __init__(self, call: Call, scope: str = "") -> None:
        """`scope` tells those apart who ask in one turn, one after the other."""
        self._key = (
            blake2b(scope.encode(), key=call.record.key).digest() if scope else call.record.key
        )
        self._next = 0
        self._resolved = {each.interrupt.id: each for each in call.resolved}
        self.asked: list[Interrupt] = []  # that nobody has answered yet

    def find(self, asked: Interrupt) -> Resolution | None:
        """The answer to the next question of the agent; None if there is none yet."""
        place, self._next = self._next, self._next + 1
        name = self._name(place)
        known = self._resolved.get(name)
        if known is None:
            own = replace(asked, id=name, state="", origin=None, via=(), raises=None)
            self.asked.append(own)
            return None
        if known.interrupt.kind != asked.kind:
            was = known.interrupt.kind
            raise DefinitionChanged(f"question {place + 1} was for {was}, not {asked.kind}")
        return known.resolution

    def _name(self, place: int) -> str:
        key = self._key + place.to_bytes(4)
        return f"int_{blake2b(key, digest_size=12).hexdigest()}"

    def ask_once(self, asked: Interrupt) -> Paused:
        """Ask for what has a name already, beside what the agent asks for."""
        if all(each.id != asked.id for each in self.asked):
            self.asked.append(asked)
        paused = Paused()
        paused.ids = frozenset({asked.id})
        return paused

    def answer_to(self, name: str) -> Resolution | None:
        """The answer to what has a name of its own; None if there is none yet."""
        known = self._resolved.get(name)
        return None if known is None else known.resolution

    def pass_on(self, waiting: Waiting, origin: str) -> Paused:
        """What a callee waits for, this turn waits for too."""
        known = {asked.id for asked in self.asked}
        for asked in waiting.interrupts:
            if asked.id not in known:
                via = (origin, *asked.via)
                self.asked.append(replace(asked, origin=asked.origin or origin, via=via))
        paused = Paused()
        paused.ids = frozenset([asked.id for asked in waiting.interrupts])
        return paused

    def waiting(self) -> Waiting:
        """How the turn ends that asks."""
        check_together(self.asked)
        return Waiting(tuple(self.asked))


def is_pause(raised: BaseException) -> bool:
    """Whether it unwinds for a question, and for nothing else."""
    if isinstance(raised, BaseExceptionGroup):
        return all(map(is_pause, raised.exceptions))
    return isinstance(raised, Paused)


def question(
    given: dict[str, Any],
    *,
    message: str | None,
    url: str | None,
    schema: dict[str, Any] | None,
    options: Sequence[str],
    arguments: dict[str, Any] | None,
    expires: float | None,
) -> Interrupt:
    """What an agent asks for, from the words of its function.

    Args:
        given: The kinds, of which one has a value: what is asked for.
        message: What the person reads beside that.
        url: Where it can be given.
        schema: The JSON Schema of the value that is asked for.
        options: The values of which one is asked for.
        arguments: What is to be approved; whoever answers may change it.
        expires: Seconds until it is too late.
    """
    asked = {kind: value for kind, value in given.items() if value is not None}
    if len(asked) != 1:
        raise ValueError(f"an interrupt asks for one of {', '.join(given)}")
    ((kind, value),) = asked.items()
    amount = None
    if kind == PAYMENT:
        amount = parse_amount(str(value), field=PAYMENT)
    elif kind == "sign_in":
        url = str(value)
    elif value is not True:
        message = str(value) if message is None else message
    if len(options) > MOST_OPTIONS:
        raise ValueError(f"an interrupt has at most {MOST_OPTIONS} options")
    return Interrupt(
        kind=kind,
        message=(message or _MESSAGES[kind])[:MOST_MESSAGE],
        url=url,
        amount=amount,
        lasts=expires,
        schema=schema,
        options=tuple(options),
        more=None if arguments is None else {"arguments": arguments},
    )


def more_asked(call: Call, name: str, short: BudgetExceeded) -> Interrupt | None:
    """The question for more of a budget that a call has; None where that refuses.

    Args:
        call: The call whose agent would spend more.
        name: Of the question.
        short: The refusal, which names the budget.
    """
    allowance = call.allowance
    while allowance is not None and (allowance.name is None or allowance.name != short.detail):
        allowance = allowance.above
    facts, part = short.facts, str(short.facts.get("part"))
    if allowance is None or not allowance.asks or part not in _PARTS or "limit" not in facts:
        return None
    if call.payer.payment is not None:  # its issuer has bounded it, and is not here
        return None
    observed, limit = (_count(part, facts[each]) for each in ("observed", "limit"))
    more = max(limit, observed - limit, 1)
    shown = {
        each: _shown(part, each_count)
        for each, each_count in (("observed", observed), ("limit", limit), ("more", more))
    }
    begun = allowance.begun
    raised = BudgetRaise(
        budget=allowance.name or "",
        part=part,
        more=more,
        observed=observed,
        limit=limit,
        opening=allowance.opening if allowance.above is None else None,
        begun=(begun.money, begun.calls, begun.tokens),
    )
    return _question(name, raised, shown)


def more_of_loop(name: str, short: BudgetExceeded) -> Interrupt:
    """The question for more of a budget that a loop counts, such as `turns`."""
    part, limit = str(short.facts["part"]), int(str(short.facts["limit"]))
    observed = int(str(short.facts["observed"])) + 1
    raised = BudgetRaise(budget="", part=part, more=limit, observed=observed, limit=limit)
    return _question(name, raised, {"observed": observed, "limit": limit, "more": limit})


def _question(name: str, raised: BudgetRaise, shown: dict[str, str | int]) -> Interrupt:
    part = raised.part
    return Interrupt(
        kind=APPROVAL,
        id=name,
        message=(
            f"The budget of this run has no {part} left: {shown['observed']} would be used of"
            f" {shown['limit']}. May it have {shown['more']} more?"
        ),
        schema=_MONEY if part == "money" else _COUNT,
        more={"budget": {"part": part, **shown}},
        raises=raised,
    )


def _count(part: str, value: object) -> int:
    return parse_amount(str(value)) if part == "money" else int(str(value))


def _shown(part: str, count: int) -> str | int:
    return format_amount(count) if part == "money" else count


class AskingVisit:
    """The part of a visit that asks."""

    _call: Call
    _is_over: bool
    _calling: int  # calls to others that have not ended
    _quiet: asyncio.Event | None  # set when one of them ends
    _interrupts: TurnQuestions | None
    has_asked: bool  # for something that nobody has given yet

    async def interrupt(
        self,
        *,
        approval: str | bool | None = None,
        payment: str | None = None,
        consent: str | bool | None = None,
        sign_in: str | None = None,
        input: str | bool | None = None,
        message: str | None = None,
        url: str | None = None,
        schema: dict[str, Any] | None = None,
        options: Sequence[str] = (),
        arguments: dict[str, Any] | None = None,
        expires: float | None = None,
    ) -> Resolution:
        """Ask for something before going on: `answer = await visit.interrupt(payment="0.02")`.

        Exactly one kind is given: an amount for a `payment`, an address for `sign_in`, and a
        question for the others. The turn waits until it is answered, perhaps for a day and in
        another process. Then the function runs again: steps and calls that have ended are given
        from the record, and this gives the answer. Do not catch what it raises until then.

        Args:
            approval: Asks for leave to do something.
            payment: Asks for money: a decimal number in the currency of the gateway.
            consent: Asks whether something may be used or passed on.
            sign_in: Asks the person to sign in at this address.
            input: Asks for a value.
            message: What the person reads beside.
            url: Where it can be given.
            schema: The JSON Schema of the value that is asked for.
            options: The values of which one is asked for.
            arguments: What is to be approved; whoever answers may change it.
            expires: Seconds until it is too late.
        """
        kinds = {"approval": approval, "payment": payment, "consent": consent}
        asked = question(
            kinds | {"sign_in": sign_in, "input": input},
            message=message,
            url=url,
            schema=schema,
            options=options,
            arguments=arguments,
            expires=expires,
        )
        return self.ask(asked)

    def ask(self, asked: Interrupt) -> Resolution:
        """The answer to the next question of the agent; unwinds it if there is none yet."""
        if self._is_over:
            raise Cancelled("the agent has ended")
        answer = self._asking.find(asked)
        if answer is None:
            self.has_asked = True
            raise Paused
        return answer

    def ask_more(self, place: int, short: BudgetExceeded) -> None:
        """Ask who pays for more, where the budget asks that a call at a place is short of.

        Returns where nobody is asked, or has said no; else it unwinds the agent.
        """
        for count in range(MOST_RAISES):
            name = own_id(self._call.record.key, f"budget {place} {count}")
            answer = self._asking.answer_to(name)
            if answer is not None and answer.accepted:
                continue  # it was given, and is used up
            asked = None if answer is not None else more_asked(self._call, name, short)
            if asked is not None:
                self.has_asked = True
                raise self._asking.ask_once(asked)
            return

    def withdraw(self, ids: frozenset[str]) -> None:
        """Ask for these no more: whoever called who asks goes on without."""
        asking = self._asking
        asking.asked = [asked for asked in asking.asked if asked.id not in ids]
        self.has_asked = bool(asking.asked)

    async def waiting(self, raised: BaseException | None) -> Waiting | None:
        """How the turn ends for what was asked in it; None where its function ended otherwise.

        The calls that are under way end first: each of them may ask for something too.
        """
        if not self.has_asked or self._interrupts is None:
            return None
        if raised is not None and not is_pause(raised):
            return None
        while self._calling:
            self._quiet = asyncio.Event()
            await self._quiet.wait()
        if raised is None:
            raise DefinitionChanged("the agent went on after it had asked")
        return self._interrupts.waiting()

    @property
    def _asking(self) -> TurnQuestions:
        if self._interrupts is None:
            self._interrupts = TurnQuestions(self._call)
        return self._interrupts
