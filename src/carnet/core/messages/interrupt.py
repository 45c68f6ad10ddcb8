"""An agent needs something before it goes on, and what it is answered.

Law 1. An unknown kind is kept as it came and never read as success.
Law 2. The secret `state` is single use and is compared hashed; only its holder can resolve.
Law 3. What is asked together can be told apart, and every store can hold it.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from carnet.core.money.amount import parse_amount
from carnet.core.people.proof import Spending
from carnet.errors import InvalidRequest

PAYMENT: Final = "payment"
APPROVAL: Final = "approval"  # one with an amount is of what a call may cost: it is set aside (R42)
WITHOUT: Final = "without"  # the value of an answer that lets the others go on without the asker
POLICY: Final = "policy"  # the member that keeps what a policy part says beside
WITHHELD: Final = "withheld"  # in that: the link that is not shown
LINK_WITHHELD: Final = (
    "The link that came with it does not lead to the host of its agent, and is not shown."
)
KINDS = (
    APPROVAL,
    PAYMENT,
    "consent",
    "sign_in",
    "forbidden",
    "rate_limited",
    "legal",
    "unavailable",
    "input",
)

MOST_DATA_BYTES: Final = 16_384  # of the schema, the options and what else an interrupt holds
MOST_GRANT: Final = 15  # digits of what is given to a budget
MOST_WORDS: Final = 200  # characters of a question that are kept with its answer for the future
_MOST: Final = (1 << 53) - 1  # the greatest integer that all who read JSON agree on


BudgetPart = Literal["money", "calls", "tokens", "seconds"]


class BudgetRaise(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is given to the budget of a call by who says yes. Ours alone: it comes by no wire."""

    budget: str  # its name in the store; empty: of the loop that asks, which counts it itself
    part: str  # a BudgetPart, or the name of one that a loop counts
    more: int  # unless the answer says how much
    observed: int  # what would be used
    limit: int
    opening: Spending | None = None  # what it begins with, where nothing was called for it yet
    begun: tuple[int, int, int] = (0, 0, 0)  # money, calls and tokens that are spent of it then


class Interrupt(Struct, frozen=True, kw_only=True):
    """What is needed, from whom, until when.

    `origin` is the address of the agent that asks. It is None while the agent of the turn itself
    asks; whoever passes the question on says who that was.
    """

    kind: str
    message: str
    id: str = ""  # given when it is asked
    state: str = ""  # given when it is recorded; its holder may answer
    url: str | None = None
    amount: int | None = None
    currency: str | None = None
    retry_after: int | None = None
    expires_at: str | None = None
    lasts: float | None = None  # seconds, until it is recorded; then it says until when
    origin: str | None = None
    via: tuple[str, ...] = ()  # whom we called on the way to it, each by the one before
    schema: dict[str, Any] | None = None  # of the value that is asked for
    options: tuple[str, ...] = ()  # of which the value is one
    without: bool = False  # whoever passes it on can go on without: rejected, value `WITHOUT`
    more: dict[str, Any] | None = None  # members that we do not know, as they came
    raises: BudgetRaise | None = None  # what it gives to a budget; agreed to as a payment is

    def __post_init__(self) -> None:
        """Refuse an interrupt that nobody could resolve or understand."""
        if not self.kind or not self.message:
            raise ValueError("an interrupt has a kind and a message")

    @property
    def other_amount(self) -> dict[str, str] | None:
        """The amount as it came, where it is in another currency: nobody here can pay it."""
        more = self.more or {}
        if self.amount is not None or "amount" not in more:
            return None
        return {name: str(more[name]) for name in ("amount", "currency") if name in more}

    @property
    def policy(self) -> dict[str, Any]:
        """What a policy part says beside, that it came by; empty where it came by none."""
        kept = (self.more or {}).get(POLICY)
        return kept if isinstance(kept, dict) else {}

    @property
    def is_of_money(self) -> bool:
        """Whether it is agreed to by who pays, and by nobody else (R45)."""
        return self.kind == PAYMENT or self.raises is not None

    @property
    def is_known(self) -> bool:
        """Whether we know what the kind asks for."""
        return self.kind in KINDS


_KEPT: Final = tuple(
    name for name in Interrupt.__struct_fields__ if name not in {"lasts", "raises"}
)


def check_together(interrupts: Sequence[Interrupt]) -> None:
    """Refuse interrupts that could not be told apart, or not be kept.

    Raises:
        ValueError: None of them is kept.
    """
    if len({asked.id for asked in interrupts}) < len(interrupts):
        raise ValueError("two interrupts of one turn have the same id")
    for asked in interrupts:
        for name in _KEPT:
            if not _can_be_kept(getattr(asked, name)):
                raise ValueError(f"the {name} of an interrupt cannot be kept")


def _can_be_kept(value: str | int | dict[str, Any] | tuple[str, ...] | None) -> bool:
    """Whether it is text without the character NUL, a number all read alike, or short JSON."""
    if isinstance(value, dict | tuple):
        return _is_short_json(value)
    if not isinstance(value, str):
        return value is None or 0 <= value <= _MOST
    try:
        return b"\x00" not in value.encode()
    except UnicodeEncodeError:  # half of a character
        return False


def _is_short_json(value: dict[str, Any] | tuple[str, ...]) -> bool:
    try:
        data = msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return len(data) <= MOST_DATA_BYTES and b"\\u0000" not in data


def policy_words(asked: Interrupt) -> dict[str, Any]:
    """What people are shown of a policy part beside its message; nothing where there is none."""
    kept = asked.policy
    named = {"policy": "kind", "code": "code", "title": "title", "action_label": "action_label"}
    named |= {"translations": "message_translations", "challenges": "auth_challenges"}
    shown = {name: kept[member] for name, member in named.items() if kept.get(member)}
    return shown | ({"note": LINK_WITHHELD} if WITHHELD in kept else {})


def hash_state(state: str) -> bytes:
    """What is kept of a secret state, to compare it with. It has 128 bits or more of its own."""
    return sha256(state.encode()).digest()


Outcome = Literal["accepted", "rejected"]


class Resolution(Struct, frozen=True, kw_only=True):
    """The answer to an interrupt.

    `value` is what was answered beside: a text, an option, or arguments that were edited.
    """

    outcome: Outcome
    resolver: str | None = None
    proof: str | None = None
    value: Any = None

    @property
    def accepted(self) -> bool:
        """Whether what was asked for was granted."""
        return self.outcome == "accepted"

    @property
    def is_without(self) -> bool:
        """Whether the others are to go on without the one that asks (R38)."""
        return self.outcome == "rejected" and self.value == WITHOUT


class StatedResolution(Struct, frozen=True):
    """A resolution as a request brings it, with the secret of what it answers."""

    state: str
    resolution: Resolution

    def __repr__(self) -> str:
        """Without the secret: it may stand in a log."""
        return f"StatedResolution({self.resolution.outcome})"


class Answered(Struct, frozen=True):
    """An interrupt of a turn that was answered, and the answer."""

    interrupt: Interrupt
    resolution: Resolution
    is_charged: bool = False  # a payment that this turn debits


def grant_of(value: object) -> str | None:
    """How much an answer gives to a budget, as it was written; None where it does not say."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    return str(value)[: MOST_GRANT + 1]


def granted(asked: BudgetRaise, grant: str | None) -> int:
    """How much that is: what was asked for, or what was written. Raises InvalidRequest."""
    if grant is None:
        return asked.more
    if asked.part == "money":
        return parse_amount(grant, field="value")
    if len(grant) > MOST_GRANT or not (grant.isascii() and grant.isdecimal()):
        raise InvalidRequest("value", "must be a whole number")
    return int(grant)


class InterruptRecord(Struct, frozen=True, kw_only=True):
    """An interrupt of a turn, and what became of it."""

    interrupt: Interrupt  # its state is empty where the secrets file is another one
    status: Literal["open", "resolved", "expired"]
    expires: int
    outcome: Literal["accepted", "rejected"] | None = None
    resolver: str | None = None
    resolved: int | None = None
    value: bytes | None = None  # JSON
    is_charged: bool = False  # a payment that is debited by this turn
    asked: int = 0  # when
    owner: str | None = None  # who answers it here; None: whoever called, or the turn above

    @property
    def answered(self) -> Answered:
        """It with its answer, as the agent is given them."""
        value = None if self.value is None else msgspec.json.decode(self.value)
        resolution = Resolution(
            outcome=self.outcome or "rejected", resolver=self.resolver, value=value
        )
        return Answered(self.interrupt, resolution, is_charged=self.is_charged)


def chain_of(asked: Interrupt, agent: str) -> str:
    """Who asks, and through whom it came to an agent of ours, in one line.

    What we called ourselves is certain; the last, the asker, is what the callee says it is.
    """
    way = (agent, *asked.via)
    last = () if asked.origin is None or way[-1] == asked.origin else (asked.origin,)
    return " > ".join((*way, *last))


def question_of(asked: Interrupt) -> str:
    """What tells a question from others of its kind; nothing of a payment, which has a ceiling.

    It begins with a hash of all of it; the words after it are for people.
    """
    if asked.kind == PAYMENT:
        return ""
    parts: tuple[object, ...] = (asked.message, asked.url, asked.options, asked.schema, asked.more)
    if asked.raises is not None:
        parts = (*parts, asked.raises)
    digest = sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()
    return f"{digest} {asked.message[:MOST_WORDS]}"


def words_of(question: str) -> str | None:
    """What a person was asked, of what tells a question from others."""
    return question.partition(" ")[2] or None


def paid(resolved: Sequence[Answered]) -> int:
    """What was agreed to be paid by the turn that asked for it, in micro-units."""
    return agreed([each for each in resolved if each.is_charged])


def agreed(resolved: Sequence[Answered]) -> int:
    """What was agreed to be paid by whichever turn, in micro-units."""
    return sum(
        each.interrupt.amount or 0
        for each in resolved
        if each.resolution.accepted and each.interrupt.kind == PAYMENT
    )
