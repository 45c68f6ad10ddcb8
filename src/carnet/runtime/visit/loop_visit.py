"""The calls that an agent loop makes out of its turn: other agents are tools to it.

They are admitted, paid, recorded and told as those of any agent are; see `runtime.visit.visit`.

Law 1. The ordinal of a call does not depend on when it is made. It is the place of its tool call
       in the turn; where nobody counts these, it comes from what is asked, and whom. So a turn that
       runs again makes the same calls under the same ids.
Law 2. Where places are not counted, the same question to the same agent is one call of its turn,
       and is answered again from memory.
Law 3. A turn that has ended waits for none of them: those under way are cancelled.
Law 4. What a callee asks for, the turn asks for, with its secret, its origin and who is on the way;
       the loop learns that there is no answer yet, and nothing else.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.call import Ask, Call
from carnet.core.chain.capabilities import Capabilities
from carnet.core.messages.events import Waiting, joined_text
from carnet.core.messages.interrupt import Interrupt, grant_of, granted
from carnet.core.messages.output import Output
from carnet.core.money.budget import Ceilings
from carnet.core.people.address import check_name
from carnet.errors import BudgetExceeded, Cancelled
from carnet.ports.calls.admission import Dispatch
from carnet.ports.calls.agent import FORWARD_USER
from carnet.ports.engine.calls import AgentAsk, CalleeWaits
from carnet.ports.engine.loop import FindTokens
from carnet.ports.trust.policy import OperatorPolicy
from carnet.runtime.chain.turn_chain import TurnChain
from carnet.runtime.visit.children import scoped_ordinal
from carnet.runtime.visit.interrupts import MOST_RAISES, Paused, more_asked, more_of_loop
from carnet.runtime.visit.visit import Visit
from carnet.wire.dialects.openai.request import write_message
from carnet.wire.dialects.policy import own_id
from carnet.wire.grammar import json

_TOOLS: Final = "tools"


class CallsOut(Struct, frozen=True, kw_only=True, eq=False):
    """How an agent calls others and uses tools, and who pays for that."""

    dispatch: Dispatch
    last_depth: int  # of a call whose chain carries no limit of its own
    auth_source: str = FORWARD_USER
    policy: OperatorPolicy | None = None  # that is asked before each tool
    tokens: FindTokens | None = None  # what is left of those of a call


class LoopVisit(Visit):
    """One call as the loop that answers it sees it: the calls it may make."""

    def __init__(
        self, call: Call, out: Output, calls: CallsOut, stated: Capabilities | None = None
    ) -> None:
        """`out` takes what is noted of them; `stated` tells callees who reads their answers."""
        super().__init__(
            call,
            out,
            calls.dispatch,
            last_depth=calls.last_depth,
            auth_source=calls.auth_source,
        )
        self.stated = stated
        self.waits: set[str] = set()  # ids of tool calls whose callees wait
        self.made: list[AgentAsk] = []  # calls that were answered
        self._answers: dict[int, str] = {}  # to questions whose places nobody counts
        self._under_way: set[asyncio.Future[str]] = set()

    async def ask_agent(self, ask: AgentAsk, /) -> str:
        """Call another agent, and wait for the text of its answer."""
        ordinal = ordinal_of(ask) if ask.place is None else ask.place
        if ordinal in self._answers:
            return self._answers[ordinal]
        calling = asyncio.ensure_future(self._call_as(ordinal, ask))
        self._under_way.add(calling)
        try:
            text = await calling
        except Paused:
            self.waits.add(ask.call)
            raise CalleeWaits from None
        except asyncio.CancelledError:
            if self._is_over:  # else whoever waits for it is cancelled
                raise Cancelled("the turn has ended") from None
            raise
        finally:
            self._under_way.discard(calling)
        self.waits.discard(ask.call)
        self.made.append(ask)
        if ask.place is None:
            self._answers[ordinal] = text
        return text

    async def _call_as(self, ordinal: int, ask: AgentAsk) -> str:
        asked = Ask(messages=ask.messages, capabilities=self.stated)
        auth = self._payer_of(None)
        self._children.skip_to(ordinal)  # which the next line takes at once
        return joined_text(await self.answer(check_name(ask.to), asked, auth))

    @cached_property
    def _chain(self) -> TurnChain:
        """What tools call by themselves has places of its own: those counted are tool calls."""
        return super()._chain.scoped(_TOOLS)

    def close(self) -> None:
        """Make no more calls, and wait for none."""
        super().close()
        for calling in self._under_way:
            calling.cancel()

    def ask_for_loop(self, short: BudgetExceeded) -> Waiting | None:
        """What the turn waits for where a budget of the loop asks for more; None: it refuses."""
        return self._ask_for(short, lambda name: more_of_loop(name, short))

    def ask_for_tokens(self, short: BudgetExceeded) -> Waiting | None:
        """The same where the loop has used up the tokens of the call, or of whoever calls it."""
        return self._ask_for(short, lambda name: more_asked(self.call, name, short))

    def _ask_for(
        self, short: BudgetExceeded, question: Callable[[str], Interrupt | None]
    ) -> Waiting | None:
        part, key = str(short.facts.get("part")), self.call.record.key
        for count in range(MOST_RAISES):
            name = own_id(key, f"loop {part} {count}")
            answer = self._asking.answer_to(name)
            if answer is None:
                asked = question(name)
                return None if asked is None else Waiting((asked, *self._asking.asked))
            if not answer.accepted:
                return None
        return None

    @property
    def granted(self) -> Ceilings:
        """What who pays has given to budgets of the loop, by their names."""
        more: Counter[str] = Counter()
        for each in self.call.resolved:
            asked = each.interrupt.raises
            if asked is not None and not asked.budget and each.resolution.accepted:
                more[asked.part] += granted(asked, grant_of(each.resolution.value))
        return tuple(more.items())

    @property
    def questions(self) -> Sequence[Interrupt]:
        """What callees ask for, as it came."""
        return tuple(self._asking.asked)

    def whole(self, end: Waiting) -> Waiting:
        """What the turn waits for: approvals, under names of the turn, and what callees ask for."""
        key = self.call.record.key
        approvals: list[Interrupt] = [
            replace(asked, id=own_id(key, asked.id))
            for asked in end.interrupts
            if asked.id not in self.waits
        ]
        return Waiting((*approvals, *self._asking.asked))


def ordinal_of(ask: AgentAsk) -> int:
    """A number that is the same for the same question, and above all places."""
    asked = json.canonical([ask.to, [write_message(each) for each in ask.messages]])
    return scoped_ordinal(asked)
