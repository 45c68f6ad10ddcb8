"""The part of a visit that calls several agents at once."""

from collections.abc import AsyncIterator, Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from carnet.core.messages.events import Event
from carnet.core.messages.interrupt import Answered, Interrupt
from carnet.runtime.visit.callee import Callee, Prompt
from carnet.runtime.visit.children import ChildCalls
from carnet.runtime.visit.fan_out.branch import Branch, OnFailure, Wanted, prompt_of
from carnet.runtime.visit.fan_out.fan_out import FanOut
from carnet.runtime.visit.fan_out.shares import CountingVisit, Share, even_share
from carnet.runtime.visit.interrupts import AskingVisit
from carnet.runtime.visit.means import VisitMeans

if TYPE_CHECKING:
    from carnet.core.call import Call
    from carnet.ports.calls.questions import Surface


class CallingVisit(AskingVisit, CountingVisit):
    """The part of a visit that calls others."""

    _means: VisitMeans

    @cached_property
    def _children(self) -> ChildCalls:
        """The places of the calls out of the turn: many an agent makes none."""
        return ChildCalls(self._call.carnet, self._call.record.key)

    @property
    def call(self) -> "Call":
        """The admitted call."""
        return self._call

    def peer(self, address: str, *, auth: str | None = None, budget: Share | None = None) -> Callee:
        """Another agent."""
        raise NotImplementedError

    def fan_out(
        self,
        branches: Sequence[str | Branch],
        prompt: Prompt | None = None,
        *,
        first: int | None = None,
        timeout: float | None = None,
        on_failure: OnFailure = "fail_fast",
        without: bool = False,
    ) -> FanOut:
        """Call several agents at once: `answers = await visit.fan_out(["a", "b"], visit.text)`.

        Answers stand in the order of the list. Leaving ends all that is under way.

        Args:
            branches: Addresses, or a `carnet.Branch` for what one of them has of its own.
            prompt: What they are asked that have no prompt of their own.
            first: How many answers are enough; all by default. The others are cancelled then.
            timeout: Seconds that each of them has.
            on_failure: "fail_fast" ends all as soon as too few can answer, "fail_late" lets the
                others end first, "collect" tells failures beside the answers.
            without: Whether what a branch asks for can be answered with "go on without": it is
                cancelled then, and the others stay.
        """
        given = [Branch(each) if isinstance(each, str) else each for each in branches]
        whole = [
            each if each.prompt is not None else replace(each, prompt=prompt_of(prompt, each))
            for each in given
        ]
        share = even_share(self._call.allowance, len(whole))
        if share is not None:
            whole = [e if e.budget is not None else replace(e, budget=share) for e in whole]
        wanted = Wanted(first=first, timeout=timeout, on_failure=on_failure, without=without)
        return FanOut(self, whole, wanted)

    # ------------------------------------------------------------------ for the fan-out

    @property
    def surface(self) -> "Surface | None":
        """What shows questions while the turn runs."""
        return self._means.surface

    def take_place(self) -> int:
        """A place among the calls out of the turn."""
        return self._children.take_ordinal()

    def at_place(
        self, place: int, make: Callable[[], AsyncIterator[Event]]
    ) -> AsyncIterator[Event]:
        """Make a call that has this place, which was taken."""
        self._children.fixed = place
        try:
            return make()
        finally:
            self._children.fixed = None

    def asked(self, ids: frozenset[str]) -> tuple[Interrupt, ...]:
        """What these are that the turn asks for."""
        return tuple([asked for asked in self._asking.asked if asked.id in ids])

    def offer_without(self, ids: frozenset[str]) -> None:
        """Say of these that the others can go on without."""
        asking = self._asking
        asking.asked = [
            replace(asked, without=True) if asked.id in ids else asked for asked in asking.asked
        ]

    def take_answers(self, answers: Sequence[Answered]) -> None:
        """Bring these to what is called from now on."""
        new = {each.interrupt.id for each in answers}
        known = [each for each in self._call.resolved if each.interrupt.id not in new]
        self._call = replace(self._call, resolved=(*known, *answers))

    def keep_back(self, ids: set[str]) -> None:
        """Bring nobody the answers to these."""
        if ids:
            kept = [each for each in self._call.resolved if each.interrupt.id not in ids]
            self._call = replace(self._call, resolved=tuple(kept))
