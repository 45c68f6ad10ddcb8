"""Why a dialogue has stopped, and whether it may go on.

Law 1. A dialogue halts for one reason, which is recorded.
Law 2. A predicate has the last word. What was aborted, was late or failed may go on; a limit may be
       gone beyond once it has been raised.
"""

from typing import Literal

from msgspec import Struct

from carnet.core.money.amount import format_amount

HaltKind = Literal["max_turns", "max_spend", "predicate", "abort", "deadline", "participant_error"]


class DialogueLimits(Struct, frozen=True, kw_only=True):
    """How long a dialogue may be, and how much it may cost."""

    max_turns: int
    max_spend: int | None = None  # micro-units
    seconds: float | None = None  # for all of it, counted from where it begins or goes on

    def __post_init__(self) -> None:
        """Refuse what bounds nothing."""
        if self.max_turns < 1:
            raise ValueError("max_turns is at least 1")
        if self.max_spend is not None and self.max_spend < 0:
            raise ValueError("max_spend is at least 0")
        if self.seconds is not None and not self.seconds > 0:
            raise ValueError("a deadline is more than 0 seconds away")

    def within(self, most: int | None) -> "DialogueLimits":
        """These, where no more than so much is left; None: nothing above bounds it."""
        if most is None:
            return self
        spend = most if self.max_spend is None else min(most, self.max_spend)
        return DialogueLimits(max_turns=self.max_turns, max_spend=spend, seconds=self.seconds)


class Halt(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a dialogue has stopped."""

    kind: HaltKind
    turns: int | None = None  # max_turns: how many there were
    spent: int | None = None  # max_spend: micro-units
    cap: int | None = None
    reason: str | None = None  # predicate: what it gave
    participant: str | None = None  # participant_error: who failed
    code: str | None = None  # of our errors
    message: str | None = None
    detail: str | None = None  # of the error, for whoever runs the driver

    def may_go_on(self, limits: DialogueLimits, *, turns: int, spent: int) -> bool:
        """Whether a dialogue that halted so goes on within these limits."""
        if self.kind == "predicate":
            return False
        if self.kind == "max_turns":
            return turns < limits.max_turns
        if self.kind == "max_spend":
            return limits.max_spend is None or limits.max_spend > max(spent, self.cap or 0)
        return True

    def __str__(self) -> str:
        """In one line, for people."""
        if self.kind == "max_turns":
            return f"max_turns ({self.turns})"
        if self.kind == "max_spend":
            return f"max_spend ({format_amount(self.spent or 0)} of {format_amount(self.cap or 0)})"
        if self.kind == "predicate":
            return f"predicate: {self.reason}"
        if self.kind == "participant_error":
            return f"participant_error[{self.participant}]: {self.message}"
        return self.kind
