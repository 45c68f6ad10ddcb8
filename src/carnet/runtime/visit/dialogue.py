"""Conversations that the agent of one visit has others speak in.

Law 1. A conversation is known by its place among those of its turn, so that a function which runs
       again goes on with it: whoever has spoken is not asked again.
Law 2. It inherits run, payer, budget and deadline, and those who take part are calls of this turn.
Law 3. What somebody in it asks for, this turn asks for.
"""

from typing import TYPE_CHECKING, Any

from carnet.core.call import Call
from carnet.core.messages.events import Waiting
from carnet.core.messages.output import Output
from carnet.errors import Cancelled
from carnet.runtime.visit.fan_out.calls import CallingVisit
from carnet.runtime.visit.interrupts import Paused
from carnet.runtime.visit.means import VisitMeans

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from carnet.core.dialogue.events import ConversationResult


class ConversingVisit(CallingVisit):
    """The part of a visit that has others converse."""

    _call: Call
    _out: Output
    _means: VisitMeans

    def conversation(
        self, participants: Any, /, **options: Any
    ) -> "Coroutine[Any, Any, ConversationResult]":
        """Have several speak in turn: `result = await visit.conversation(["a", "b"], max_turns=4)`.

        Args:
            participants: A `carnet.Conversation`, or two or more who take part: names of agents
                here, addresses, functions, models, or `carnet.Participant`s of these.
            options: `seed`, what it begins with; `max_turns`, `max_spend`, `deadline`, `order`,
                `halt_on`, `policy`; and `on_event`, which is given every event.
        """
        if self._is_over:
            raise Cancelled("the agent has ended")
        return self._conversed(participants, options, self._children.take_conversation())

    async def _conversed(
        self, participants: Any, options: dict[str, Any], ordinal: int
    ) -> "ConversationResult":
        converses = self._means.converses
        if converses is None:
            raise RuntimeError("nobody drives conversations here: run it in a gateway")
        self._calling += 1
        try:
            result = await converses(self._call, self._out, participants, options, ordinal)
        finally:
            self._calling -= 1
            if self._quiet is not None:
                self._quiet.set()
        if not isinstance(result, Waiting):
            return result
        self.has_asked = True
        self._asking.asked.extend(result.interrupts)
        raise Paused
