"""The travel document of one call, and how several stamps become one.

Law 1. Depth only grows: `next_hop().depth == depth + 1`.
Law 2. The run never changes: every hop shares it.
Law 3. The last depth never grows: a stamp may lower it, nothing raises it.
Law 4. A carnet with no hops left cannot be extended.

`depth` counts the agent-to-agent edges crossed to reach us (0: called by a person or a front
end). `last_depth` is the last depth still answered, inclusive; None while no stamp has set one,
then the dialect the call leaves by brings its default.
"""

from collections.abc import Sequence
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.chain.turn_id import scoped_turn_id, turn_id
from carnet.core.money.budget import IterationBudget
from carnet.core.people.proof import Spending
from carnet.errors import ChainFinal, ChainMismatch, DelegationExceeded, DepthExceeded

CHAIN_DEPTH: Final = "chain_depth"  # the budget of an agent or of a token (agents-api:depth:budget)


class Mark(Struct, frozen=True, kw_only=True):
    """What one stamp says about the chain. None is "did not say", which is not 0."""

    stamp: str
    depth: int | None = None
    last_depth: int | None = None
    run: str | None = None
    turn: str | None = None
    parent_turn: str | None = None
    speaker: str | None = None
    counts: bool = True  # it counts depth; one that does not is silent about it, also with None
    # Its limit is only this gateway's usual one: where another stamp brings its own, that counts.
    is_usual: bool = False
    own_depth: int | None = None  # the last depth that it names itself, where ours is lower
    is_recorded: bool = False  # no request says it: a turn of our own record stands there
    doubt: str | None = None  # what it says about itself that its numbers contradict, for the log


class DepthLimits(Struct, frozen=True, kw_only=True):
    """The last depth still answered here (inclusive), by the stamp that tells the chain."""

    by_stamp: dict[str, int] = {}
    default: int = 3  # of a stamp without its own, and of a call whose chain no stamp bounds

    def of(self, stamp: str) -> int:
        """The last depth of a chain that this stamp tells."""
        return self.by_stamp.get(stamp, self.default)

    def clamped(self, hard_last_depth: int) -> "DepthLimits":
        """The same limits, none above the hard one."""
        return DepthLimits(
            by_stamp={
                stamp: min(last_depth, hard_last_depth)
                for stamp, last_depth in self.by_stamp.items()
            },
            default=min(self.default, hard_last_depth),
        )


class Position(Struct, frozen=True, kw_only=True):
    """Where in its chain a request arrived, after all its stamps were merged."""

    depth: int = 0
    last_depth: int | None = None
    bound_by: str | None = None
    run: str | None = None
    turn: str | None = None
    parent_turn: str | None = None
    speaker: str | None = None
    most_depth: int | None = None  # that a budget leaves a chain which no stamp has bounded


TOP = Position()


def merge(marks: Sequence[Mark]) -> Position:
    """Read several stamps as one position: the largest depth, the smallest limit, one run."""
    if not marks:
        return TOP
    if len(marks) == 1:
        return _alone(marks[0])
    depths = [mark.depth for mark in marks if mark.depth is not None]
    depth = max(depths, default=0)
    if depth and 0 in depths:
        raise ChainMismatch("an explicit depth 0 stands beside a depth above 0")
    bounding = [mark for mark in marks if mark.last_depth is not None]
    own = [mark for mark in bounding if not mark.is_usual]
    bounds = [(mark.last_depth, 0, mark.stamp) for mark in own or bounding]
    for mark in marks:  # what one names itself holds beside others, and not what is usual here
        if mark.own_depth is not None and own:  # where it is the lower one: else they bound it
            bounds += ((mark.own_depth, 1, mark.stamp),)
    last_depth, _, bound_by = min(bounds, default=(None, 0, None))
    return Position(
        depth=depth,
        last_depth=last_depth,
        bound_by=bound_by,
        run=_one([mark.run for mark in marks], "two different runs"),
        turn=_one([mark.turn for mark in marks], "two different turns"),
        parent_turn=_one([mark.parent_turn for mark in marks], "two different parent turns"),
        speaker=min((mark.speaker for mark in marks if mark.speaker), default=None),
    )


def _alone(mark: Mark) -> Position:
    """What one stamp says, where nothing can contradict it."""
    return Position(
        depth=mark.depth or 0,
        last_depth=mark.last_depth,
        bound_by=None if mark.last_depth is None else mark.stamp,
        run=mark.run,
        turn=mark.turn,
        parent_turn=mark.parent_turn,
        speaker=mark.speaker or None,
    )


def _one(values: list[str | None], contradiction: str) -> str | None:
    found = {value for value in values if value is not None}
    if len(found) > 1:
        raise ChainMismatch(contradiction)
    return found.pop() if found else None


def check_depth(position: Position) -> None:
    """Refuse a request that arrived deeper than its chain may go."""
    if position.last_depth is not None and position.depth > position.last_depth:
        raise DepthExceeded(
            observed=position.depth, limit=position.last_depth + 1, stamp=position.bound_by
        )


class Trace(Struct, frozen=True):
    """W3C trace context: 32 and 16 hex digits, and the flags byte."""

    trace_id: str
    span_id: str
    flags: str = "01"
    state: str | None = None


class Carnet(Struct, frozen=True, kw_only=True):
    """The travel document. Immutable; `next_hop` writes the one the callee receives."""

    run: str
    turn: str
    depth: int = 0
    last_depth: int | None = None
    bound_by: str | None = None
    parent_turn: str | None = None
    speaker: str | None = None
    run_is_ours: bool = False  # we minted the run, so calls out of it are its first level
    path: tuple[str, ...] = ()
    on_behalf_of: tuple[str, ...] = ()
    deadline: float | None = None  # seconds of the monotonic clock
    budget: Spending | None = None  # what is left for this call and below; None is unbounded
    trace: Trace | None = None
    most_depth: int | None = None  # that a budget leaves a chain which no stamp has bounded

    def bound(self, default: int) -> int:
        """The last depth of this chain; `default` where no stamp set one, or what is left of it."""
        last, most = self.last_depth, self.most_depth
        if most is None:
            return default if last is None else last
        return min(most, default, most if last is None else last)

    def _bound_by(self, default: int) -> str | None:
        """What bounds it, where that is known."""
        most = self.most_depth
        if most is None:
            return self.bound_by
        bound = self.bound(default)
        if bound == most:
            return CHAIN_DEPTH
        return self.bound_by if bound == self.last_depth else None

    def is_final(self, default: int) -> bool:
        """Whether this hop may answer but not call on."""
        return self.depth >= self.bound(default)

    def remaining(self, default: int) -> int:
        """How many hops may still follow."""
        return max(0, self.bound(default) - self.depth)

    def refuse_if_final(self, default: int) -> None:
        """Raise before any I/O when no hop is left."""  # tangle:depth:refuse, A47
        if not self.is_final(default):
            return
        last, bound_by = self.bound(default), self._bound_by(default)
        if bound_by == "mentionable":
            raise ChainFinal(hop=self.depth, hops=last)
        if bound_by == "delegation":  # a larger limit here would not help
            raise DelegationExceeded
        if bound_by == CHAIN_DEPTH:
            raise DepthExceeded(
                observed=self.depth + 1,
                limit=last + 1,
                leaving=True,
                budget_of=_OF_EITHER,
                root=self.run,
            )
        raise DepthExceeded(observed=self.depth + 1, limit=last + 1, leaving=True, stamp=bound_by)

    @property
    def opens_the_run(self) -> bool:
        """Whether calls out of this turn are the first level of the run."""
        return self.run_is_ours and self.parent_turn is None

    def child_turn(self, index: int, speaker: str, key: bytes) -> str:
        """The turn id of the `index`-th call out of this turn, whose record has this key."""
        if self.opens_the_run:
            return turn_id(self.run, index, speaker)
        return scoped_turn_id(self.run, key, index, speaker)

    def next_hop(
        self,
        *,
        index: int,
        speaker: str,
        key: bytes,
        default: int,
        stamp: str = "tangle",
        via: str | None = None,
    ) -> "Carnet":
        """The document of a call out of this turn; refuses when no hop is left.

        `key` is that of the record of this turn; `default` is the last depth of a chain that
        begins here, by the `stamp` that the call leaves with; `via` is the address of the agent
        that makes the call, if it has one.
        """
        self.refuse_if_final(default)
        bound_by = self.bound_by if self.most_depth is None else self._bound_by(default)
        return Carnet(
            run=self.run,
            turn=self.child_turn(index, speaker, key),
            depth=self.depth + 1,
            last_depth=self.bound(default),
            bound_by=bound_by or stamp,
            parent_turn=None if self.opens_the_run else self.turn,
            speaker=speaker,
            path=self.path if via is None else (*self.path, via),
            on_behalf_of=self.on_behalf_of,
            deadline=self.deadline,
            budget=self.budget,
            trace=self.trace,
        )


_OF_EITHER: Final = "agent or of the token"

_Place = TypeVar("_Place", Position, Carnet)


def within_budget(
    place: _Place, ceiling: int, *, of: str, default: int, root: str | None = None
) -> _Place:
    """The same within a budget `chain_depth`; refused where that has ended.

    Args:
        place: Where a call arrives.
        ceiling: The first depth that is refused.
        of: Whose budget it is: the agent's, or the token's.
        default: The last depth where no stamp has set one; no budget raises it. One above it still
            holds where the call leaves in a dialect whose chains may be longer (R2).
        root: The request that the chain began with, which the caller is told.
    """
    if IterationBudget(CHAIN_DEPTH, ceiling, place.depth).exceeded:
        raise DepthExceeded(observed=place.depth, limit=ceiling, budget_of=of, root=root)
    last, most = default if place.last_depth is None else place.last_depth, ceiling - 1
    if place.last_depth is None or place.most_depth is not None:  # no stamp has bounded it
        before = most if place.most_depth is None else place.most_depth
        place = replace(place, most_depth=min(most, before))
    if most < last:
        return replace(place, last_depth=most, bound_by=CHAIN_DEPTH)
    return place
