"""What a person says to a question, and whether she may: the bodies of `/approvals` and `/rules`.

Law. What is agreed to by who pays, a payment or more of a budget, needs the permission to pay.
"""

from typing import Any, Final, Literal, TypeVar

import msgspec
from msgspec import Struct

from carnet.core.messages.interrupt import PAYMENT, BudgetRaise, Outcome, grant_of, granted
from carnet.core.money.amount import format_amount, parse_amount
from carnet.core.people.identity import Caller
from carnet.errors import InvalidJson, InvalidRequest, PermissionMissing
from carnet.ports.calls.inbox import InboxEntry
from carnet.wire.grammar import json

T = TypeVar("T")

APPROVE: Final = "approve"
NO_OUTCOME: Final = (
    "must be 'accepted' or 'rejected', or in its place 'decision' 'approved' or 'denied'"
)


class Remember(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether the same is to be answered so from now on, and how much it may cost in all."""

    ceiling: str | None = None


class NewApprover(Struct, frozen=True, forbid_unknown_fields=True):
    """Who may agree to payments of whoever asks, and how much they may cost in all."""

    person: str
    ceiling: str


class Decision(Struct, frozen=True, forbid_unknown_fields=True):
    """What is sent as an answer: an outcome, or the same in the words of a person's client (R16).

    Raises:
        ValueError: It has none of the two, or both.
    """

    outcome: Literal["accepted", "rejected"] | None = None
    decision: Literal["approved", "denied"] | None = None
    value: Any = None
    remember: Remember | None = None

    def __post_init__(self) -> None:
        """Refuse what says nothing, or two things."""
        if (self.outcome is None) == (self.decision is None):
            raise ValueError("an answer has an outcome or a decision")

    @property
    def result(self) -> Outcome:
        """What was decided, in our words."""
        return self.outcome or _OUTCOMES[self.decision or "denied"]


_OUTCOMES: Final[dict[str, Outcome]] = {"approved": "accepted", "denied": "rejected"}
_decision: Final = msgspec.json.Decoder(Decision)
_approver: Final = msgspec.json.Decoder(NewApprover)


def check_rights(caller: Caller, decision: Decision, entry: InboxEntry) -> None:
    """Refuse a token that may not have the call go on, or pay: it only looks."""
    if caller.owner != entry.owner:
        return  # it may approve, and of money it was named
    agent = entry.turn.agent
    is_let = caller.may(f"call:{agent}") or (agent.startswith("@") and caller.may("call:remote"))
    if not is_let and not caller.may(APPROVE):
        raise PermissionMissing(permission=f"call:{agent}")
    is_paid = entry.record.interrupt.is_of_money and decision.result == "accepted"
    if is_paid and not caller.may("pay"):
        raise PermissionMissing(permission="pay")


def ceiling_of(decision: Decision, entry: InboxEntry) -> int | None:
    """How much a rule may cost in all; refuses one that nobody could keep to."""
    if decision.remember is None:
        return None
    if decision.result != "accepted" or decision.value is not None:
        raise InvalidRequest("remember", "is for an approval without a value")
    if entry.record.interrupt.raises is not None:
        raise InvalidRequest("remember", "is not for a budget: begin with a higher one")
    ceiling = decision.remember.ceiling
    if entry.record.interrupt.kind != PAYMENT:
        if ceiling is not None:
            raise InvalidRequest("remember.ceiling", "is for a payment alone")
        return None
    if entry.record.interrupt.amount is None:
        raise InvalidRequest("remember", "is for an amount that is paid here")
    if ceiling is None:
        raise InvalidRequest("remember.ceiling", "says how much payments may cost in all")
    return parse_amount(ceiling, field="remember.ceiling")


def amount_of(decision: Decision, entry: InboxEntry) -> int | None:
    """The money that is agreed to; None where nobody here knows how much that is."""
    asked = entry.record.interrupt
    if asked.raises is None:
        return asked.amount
    return granted(asked.raises, grant_of(decision.value)) if asked.raises.part == "money" else 0


def shown_raise(asked: BudgetRaise | None) -> dict[str, Any] | None:
    """What a page tells of the budget that more is asked for."""
    if asked is None:
        return None
    counts = {"observed": asked.observed, "limit": asked.limit, "more": asked.more}
    is_money = asked.part == "money"
    return {"part": asked.part} | {
        name: format_amount(count) if is_money else count for name, count in counts.items()
    }


def read_decision(body: bytes) -> Decision:
    """The answer that was sent."""
    return _read(body, _decision, "outcome", NO_OUTCOME)


def read_approver(body: bytes) -> NewApprover:
    """Who is named to agree to payments."""
    return _read(body, _approver, "person", "must be a name, beside a ceiling")


def _read(body: bytes, decoder: msgspec.json.Decoder[T], field: str, reason: str) -> T:
    """What was sent; `field` and `reason` tell what is wrong most often."""
    try:
        json.read_object(body)  # strictly
        return decoder.decode(body)
    except msgspec.DecodeError as error:
        if isinstance(error, msgspec.ValidationError):
            raise InvalidRequest(field, reason) from None
        raise InvalidJson(str(error)) from None
