"""An agent whose answer is relayed to those whom it mentions (R37).

It stands before the agent that a person talks to, in one call of one of her conversations.

Law 1. Who is mentioned in a whole answer is asked what was answered, one hop further, as a call out
       of the same turn; what it says follows under its own name.
Law 2. One asks another at most once in a turn, and nobody at the last hop of the chain. There is a
       bound to all of them together.
Law 3. Who is not known, may not be called or fails is no failure of the answer: it stands, and of
       the one that failed stands why.
"""

from collections import deque
from typing import Final

from msgspec.structs import replace

from carnet.core.call import Agent, Call
from carnet.core.messages.events import RELAYED, Done, End, Event, Extension, Message, Text
from carnet.core.messages.mentions import mentions, named
from carnet.core.messages.output import Output
from carnet.errors import ApprovalRequired, CarnetError, ChainFinal, DepthExceeded, LoopDetected
from carnet.ports.calls.agent import Router, Target
from carnet.ports.engine.calls import AgentAsk, CalleeWaits
from carnet.runtime.visit.loop_visit import CallsOut, LoopVisit

MOST_RELAYS: Final = 8  # of one turn
# A chain that has passed there, or may go no further: that is no news to anybody.
_NOT_ASKED: Final = frozenset({LoopDetected.code, DepthExceeded.code, ChainFinal.code})


def with_relays(call: Call, router: Router, calls: CallsOut) -> Call:
    """The same call, with an agent whose answer is relayed."""
    target = call.target
    relay = Relay(target, call, router, calls)
    return replace(call, target=replace(target, agent=relay))


class Relay:
    """The agent of one call, and those whom it mentions."""

    def __init__(self, target: Target, call: Call, router: Router, calls: CallsOut) -> None:
        """`call` is what calls are made out of; `router` finds who is mentioned."""
        self._agent: Agent = target.agent
        self._name = target.name
        self._call = call
        self._router = router
        self._calls = calls

    async def __call__(self, call: Call, out: Output, /) -> End:
        """Have the agent answer, then those whom it mentions."""
        spoken = TextOutput(out)
        end = await self._agent(call, spoken)
        if isinstance(end, Done):
            await self._relay(spoken.text, out)
        return end

    async def _relay(self, text: str, out: Output) -> None:
        call = self._call
        # Who is elsewhere stands one hop further than the turn that it is called in.
        first = call.onward or call.carnet
        waiting = deque([(self._name, text, 0)])
        asked: set[tuple[str, str]] = set()
        while waiting:
            speaker, before, level = waiting.popleft()
            here = replace(
                call.carnet,
                depth=first.depth + level,
                last_depth=first.last_depth,
                bound_by=first.bound_by,
            )
            if here.is_final(self._calls.last_depth):
                continue
            visit = LoopVisit(replace(call, carnet=here), out, self._calls, call.ask.capabilities)
            try:
                for target in self._mentioned(before, speaker, asked):
                    asked.add((speaker, target.name))
                    # Without the sign of a mention: who repeats it asks nobody.
                    text, code = await _ask(visit, target.name, f"{speaker} says: {before}")
                    if code in _NOT_ASKED:
                        continue
                    await out.write(Extension(RELAYED, {"author": target.name, "code": code}))
                    if text:
                        await out.write(Text(text))
                        waiting.append((target.name, text, level + 1))
            finally:
                visit.close()

    def _mentioned(self, text: str, speaker: str, asked: set[tuple[str, str]]) -> list[Target]:
        """Who is to be asked, of those in a text; each of them is somebody."""
        found: dict[str, Target] = {}  # by name: a name and an address may be one agent's
        for handle in mentions(text):
            try:
                target = self._router.find(named(handle))
            except CarnetError:  # a word that begins with @
                continue
            is_new = target.name not in {speaker, *found} and (speaker, target.name) not in asked
            may = self._call.caller.may(target.needs)
            if is_new and may and len(asked) + len(found) < MOST_RELAYS:
                found[target.name] = target
        return list(found.values())


async def _ask(visit: LoopVisit, name: str, text: str) -> tuple[str, str | None]:
    """What somebody answers; else why nothing."""
    ask = AgentAsk(to=name, messages=(Message.user(text),), call=name)
    try:
        return await visit.ask_agent(ask), None
    except CalleeWaits:
        return "", ApprovalRequired.code
    except CarnetError as error:
        return "", error.code


class TextOutput:
    """Passes on what an agent says, and keeps its words."""

    def __init__(self, out: Output) -> None:
        """Where it is passed on to."""
        self._out = out
        self._texts: list[str] = []
        self._marks: dict[int, int] = {}
        self.usage = out.usage
        self.called = out.called

    @property
    def text(self) -> str:
        """All that was said."""
        return "".join(self._texts)

    async def write(self, event: Event, /) -> None:
        """Take an event that is no end."""
        if isinstance(event, Text):
            self._texts.append(event.text)
        await self._out.write(event)

    def mark(self) -> int:
        """How far it is, for `back`."""
        mark = self._out.mark()
        self._marks[mark] = len(self._texts)
        return mark

    def back(self, mark: int, /) -> bool:
        """Take back the events since then, if nobody has seen any."""
        is_back = self._out.back(mark)
        if is_back:
            del self._texts[self._marks.get(mark, 0) :]
        return is_back
