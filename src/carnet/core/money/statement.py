"""What two organisations have served one another, as each of them has it, and where they differ.

A statement lists calls: those that its issuer has served for the other, and those that it has made
there. Both sides know a call by the same two ids.

Law 1. A call that both sides have with the same cost and the same payer is in no list of
       disagreements, and every other call of the time that is looked at is in it once.
Law 2. Clocks differ, and a call may begin at one side a moment before the time that is looked at.
       So a call is missing only where a wider statement of the other side does not have it.
Law 3. The callee bills the payer that it was told of, the caller as a whole, or the account that a
       forwarded credential stands for, whose name only the callee knows. Any other is another one.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal

from msgspec import Struct

DisagreementKind = Literal[
    "missing_here", "missing_there", "other_amount", "other_payer", "unmatched"
]
Owing = Literal["us", "them"]  # who owes what the call has cost

# As gateways name the account of a credential that was forwarded to them.
_FINGERPRINT: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)


class StatementLine(Struct, frozen=True):
    """One call."""

    run: str
    turn: str
    cost: int | None  # micro-units; None: nobody has told its caller
    payer: str | None  # as the callee was told of it, or bills it
    at: int  # when it began there: microseconds since the epoch

    @property
    def key(self) -> tuple[str, str]:
        """By which both sides know it."""
        return self.run, self.turn


class Statement(Struct, frozen=True, kw_only=True):
    """The calls of one time, as its issuer has them."""

    issuer: str  # domains
    audience: str
    since: int
    until: int  # it says nothing of what began then or later
    currency: str
    served: tuple[StatementLine, ...] = ()  # by the issuer, for the audience
    made: tuple[StatementLine, ...] = ()  # by the issuer, at the audience

    def owed(self) -> int:
        """What the audience owes for what it was served."""
        return sum(line.cost or 0 for line in self.served)

    def owes(self) -> int:
        """What the issuer owes for what it was served."""
        return sum(line.cost or 0 for line in self.made)


class Disagreement(Struct, frozen=True, kw_only=True):
    """One call that the two sides do not have alike."""

    kind: DisagreementKind
    owing: Owing
    run: str
    turn: str
    here: int | None = None  # what it has cost by our records; None: they have none
    there: int | None = None
    payer_here: str | None = None
    payer_there: str | None = None


def disagreements(ours: Statement, theirs: Statement) -> list[Disagreement]:
    """Where two statements differ about what began in the time of ours.

    `theirs` is of a wider time, and has of the calls that were made there at least those that ours
    says to have been served.
    """
    caller = ours.issuer
    found = _compared(ours, _by_key(ours.made), _by_key(theirs.served), caller, owing="us")
    return found + _compared(
        ours, _by_key(ours.served), _by_key(theirs.made), theirs.issuer, owing="them"
    )


def _by_key(lines: Iterable[StatementLine]) -> dict[tuple[str, str], StatementLine]:
    return {line.key: line for line in lines}


def _compared(
    ours: Statement,
    here: Mapping[tuple[str, str], StatementLine],
    there: Mapping[tuple[str, str], StatementLine],
    caller: str,
    *,
    owing: Owing,
) -> list[Disagreement]:
    found = []
    for key in {**here, **there}:
        line, other = here.get(key), there.get(key)
        seen = line or other
        assert seen is not None  # noqa: S101  one of them has it
        if not ours.since <= seen.at < ours.until:
            continue
        kind = _kind(line, other, caller, owing)
        if kind is not None:
            found.append(
                Disagreement(
                    kind=kind,
                    owing=owing,
                    run=seen.run,
                    turn=seen.turn,
                    here=None if line is None else line.cost,
                    there=None if other is None else other.cost,
                    payer_here=None if line is None else line.payer,
                    payer_there=None if other is None else other.payer,
                )
            )
    return found


def _kind(
    line: StatementLine | None, other: StatementLine | None, caller: str, owing: Owing
) -> DisagreementKind | None:
    if line is None or other is None:
        known = line or other
        if known is not None and known.cost is None:  # a call that nobody answered, and nobody has
            return None
        return "missing_here" if line is None else "missing_there"
    made, served = (line, other) if owing == "us" else (other, line)
    if made.cost is None:
        return "unmatched"
    if made.cost != served.cost:
        return "other_amount"
    return None if _is_payer(served.payer, made.payer, caller) else "other_payer"


def _is_payer(billed: str | None, named: str | None, caller: str) -> bool:
    """Whether who was billed is who was named, as far as the callee was told."""
    if billed is None or named is None or billed in {named, caller}:
        return True
    return _FINGERPRINT.fullmatch(billed) is not None
