"""One call of a fan-out: whom, what is special about it, and how it has ended."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, get_args

from msgspec import Struct

from carnet.core.messages.events import Event
from carnet.errors import CarnetError
from carnet.runtime.visit.callee import Prompt
from carnet.runtime.visit.fan_out.shares import Share

MOST_BRANCHES: Final = 64
OnFailure = Literal["fail_fast", "fail_late", "collect"]
BranchState = Literal["done", "failed", "cancelled"]


class Branch(Struct, frozen=True, eq=False):
    """One call of a fan-out: whom, and what is special about it."""

    to: str
    prompt: Prompt | None = None  # None: that of all
    system: str | None = None
    timeout: float | None = None  # seconds; None: that of all
    auth: str | None = None  # who pays, as for `visit.peer`
    parameters: Mapping[str, Any] = {}
    budget: Share | None = None  # what it may spend; None: an even part of calls and tokens


class BranchAnswer(Struct, frozen=True, kw_only=True, eq=False):
    """How one of them has ended."""

    place: int  # in the list
    to: str
    state: BranchState
    text: str = ""
    events: tuple[Event, ...] = ()
    error: CarnetError | None = None  # of one that is not done


class Wanted(Struct, frozen=True, kw_only=True):
    """What is wanted of all branches together."""

    first: int | None = None  # how many answers are enough; None: all
    timeout: float | None = None  # seconds that each of them has
    on_failure: OnFailure = "fail_fast"
    without: bool = False  # one that asks may be left out, if that is what it is answered


def judge(branches: Sequence[Branch], wanted: Wanted) -> None:
    """Refuse what cannot be wanted: ValueError, for whoever wrote the agent."""
    first, on_failure = wanted.first, wanted.on_failure
    if len(branches) > MOST_BRANCHES:
        raise ValueError(f"a fan-out has at most {MOST_BRANCHES} branches, not {len(branches)}")
    if first is not None and not 1 <= first <= len(branches):
        raise ValueError(f"'first' is from 1 to {len(branches)}, not {first!r}")
    if on_failure not in get_args(OnFailure):
        raise ValueError(f"on_failure is one of {', '.join(get_args(OnFailure))}")


def seconds_of(branch: Branch, wanted: Wanted) -> float | None:
    """How long one of them may take."""
    seconds = wanted.timeout if branch.timeout is None else branch.timeout
    if seconds is not None and not seconds > 0:
        raise ValueError(f"a timeout is a number of seconds above 0, not {seconds!r}")
    return seconds


def prompt_of(prompt: Prompt | None, branch: Branch) -> Prompt:
    """What one of them is asked."""
    if prompt is None:
        raise TypeError(
            f"what is {branch.to} asked? Give a prompt to the fan-out, or to its Branch"
        )
    return prompt
