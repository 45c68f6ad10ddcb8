"""How the turns of a run have ended once it was cancelled, hop by hop.

Law 1. What a turn is told to have come to is what its record says. One that has not ended, or that
       nobody can tell the end of, is `unknown`, never `cancelled`.
Law 2. What stands below a hop was called out of it, in the order in which it asked.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from carnet.core.chain.turn import IN_PROCESS, Turn
from carnet.core.chain.turn_id import ordinal_of
from carnet.errors import Cancelled

Outcome = Literal["done", "failed", "cancelled", "unknown"]

_LAST = 1 << 62


class Hop(Struct, frozen=True, kw_only=True):
    """One turn, and those that were called out of it."""

    turn: str
    agent: str
    depth: int
    outcome: Outcome
    code: str | None = None  # of one that failed, or why nobody can tell
    at: str | None = None  # the organisation that tells; None: we
    below: tuple["Hop", ...] = ()


def outcome_of(turn: Turn) -> Outcome:
    """What has come of a turn, by its record."""
    if turn.state == "done":
        return "done"
    if turn.state == "failed":
        return "cancelled" if turn.code == Cancelled.code else "failed"
    return "unknown"


def chosen(
    turns: Sequence[Turn], ids: Collection[str] | None, only: Turn | None = None
) -> list[Turn]:
    """Those of these turns, oldest first, that have one of the ids, and what they called here.

    Several may have the same id (R6): `only` is the one that is meant, and what its payer pays.
    """
    if ids is None:
        return list(turns)
    found: list[Turn] = []
    above: set[str | None] = set()
    for turn in turns:
        if only is not None and turn.payer != only.payer:
            continue
        is_named = turn.turn in ids if only is None else turn.n == only.n
        if is_named or (turn.actor.startswith(IN_PROCESS) and turn.parent_turn in above):
            found.append(turn)
            above.add(turn.turn)
    return found


def hops_of(turns: Sequence[Turn], elsewhere: Mapping[int, Sequence[Hop]]) -> tuple[Hop, ...]:
    """The turns of a run, oldest first, as a tree; `elsewhere` is what others tell, by number."""
    first: dict[str, int] = {}
    for turn in turns:
        first.setdefault(turn.turn, turn.n)
    below: dict[int | None, list[Hop]] = {}
    for turn in reversed(turns):  # whoever was called began after who called
        hop = Hop(
            turn=turn.turn,
            agent=turn.agent,
            depth=turn.depth,
            outcome=outcome_of(turn),
            code=turn.code,
            below=(*elsewhere.get(turn.n, ()), *sorted(below.get(turn.n, ()), key=_place)),
        )
        above = first.get(turn.parent_turn or "") if turn.actor.startswith(IN_PROCESS) else None
        below.setdefault(above if above != turn.n else None, []).insert(0, hop)
    return tuple(below.get(None, ()))


def _place(hop: Hop) -> int:
    ordinal = ordinal_of(hop.turn)
    return _LAST if ordinal is None else ordinal
