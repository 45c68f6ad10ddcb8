"""The tools of a loop: which of a model's calls are run, and what comes of them.

Law 1. All calls of one answer are shown first. Those that may be run are, several at once; results
       are shown in the order of the calls.
Law 2. Every call has one result, but for those that wait for somebody's approval: these end the
       answer, and are run or denied when it has been given.
Law 3. What a model gets wrong (a name, arguments, the same call again and again), what the actor
       may not use and what a tool cannot do are results that say so. The model decides what to do.
Law 4. A tool that cannot be used at all ends the answer, when the others have ended.
Law 5. What a tool raises is for our log. The model and whoever reads the stream are told in words
       of ours, unless the tool has words for them.
Law 6. An output has a greatest length; what is beyond it is left out, and that is said.
Law 7. Every call has its place among the steps of its turn, whatever comes of it. What came of it
       is decided once: a turn that runs again finds the same, also where by then the actor, the
       tools or a server are others. Of a call of another agent the record of that is what is kept.
       What somebody has approved is begun once: if its end was not kept, a model is told so.
Law 8. What a tool gave is marked as data when a model is told of it; what we say is not.
Law 9. A tool that asks another agent is used where a hop is left for it. Where who was asked waits
       for somebody, so does the call; the others of its answer end first.
Law 10. A call that a named budget has nothing left for is denied, not begun; so is any after it.
Law 11. Where who pays may give a budget more, such a call is left open in a stream, to go on later.
Law 12. What the actor may not use a model is not told of; our log says what is missing.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.messages.events import ToolCall, ToolResult
from carnet.core.messages.output import Sink
from carnet.core.messages.parameters import Tool
from carnet.engine.budgets import AGENT, LoopBudgets
from carnet.engine.history import marked
from carnet.engine.tools.display import CANNOT_OPEN, Cover, approved, is_long, previewed, shown
from carnet.engine.tools.outcome import ApprovalAwaited, ToolOutcome, ended, read_outcome
from carnet.engine.tools.search import (
    DEFINITION,
    FIND_TOOLS,
    MOST_LOOKED,
    matching,
    words_of_found,
)
from carnet.engine.tools.turn import ToolTurn, may_use
from carnet.errors import (
    Cancelled,
    CarnetError,
    Ours,
    ShuttingDown,
    ToolUnusable,
)
from carnet.ports.engine.calls import CalleeWaits
from carnet.ports.engine.tools import (
    LoopTool,
    ToolFailed,
    ToolSource,
    ToolUse,
)
from carnet.wire.dialects.engine_chat.actor import EngineActor
from carnet.wire.dialects.engine_chat.request import arguments_of, is_name
from carnet.wire.dialects.engine_chat.writer import words_of
from carnet.wire.grammar import json

logger = logging.getLogger("carnet.engine")

MOST_OUTPUT: Final = 40_000  # characters, so that a result is one frame for every reader
MOST_REPEATED: Final = 2  # identical calls in one answer
MOST_AT_ONCE: Final = 8
MOST_STEP_NAME: Final = 200  # characters of the name that a step is kept under

UNKNOWN: Final = "There is no tool of this name."
NOT_AN_OBJECT: Final = "The arguments are not a JSON object."
TOO_LONG: Final = "The arguments are too long."
REPEATED: Final = "This call was made before, with the same arguments. Its result is the same."
USED_UP: Final = "The budget for this is used up."
NOT_BY_POLICY: Final = "The policy of this gateway denies this tool."
UNSURE: Final = "This was begun, and then interrupted. Whether it was done is not known."
DENIED: Final = "This was asked for and denied."
TOO_SLOW: Final = "The tool did not answer in time."
FAILED: Final = "The tool failed."
CUT: Final = "\n[cut here: the output was too long]"

# Whatever a tool may raise that is about itself. What else unwinds a turn passes.
_RAISED: Final = (Exception, SystemExit, KeyboardInterrupt, asyncio.CancelledError)


class Outcomes(Struct, frozen=True):
    """What came of the calls of one answer."""

    results: dict[str, str]  # what the model is told, by the ids of calls
    waiting: tuple[ToolCall, ...]  # for an approval, or for who was asked; as they are shown


_USED_UP: Final = ToolOutcome("denied", USED_UP)


class Toolbox:
    """The tools of a loop, by their names."""

    def __init__(self, tools: Sequence[LoopTool], sources: Sequence[ToolSource] = ()) -> None:
        """Two tools of one name are refused: a model could not tell them apart.

        `sources` have more of them, which are asked for in each turn (`now`).
        """
        self._tools = {tool.definition.name: tool for tool in tools}
        if len(self._tools) < len(tools):
            raise ValueError("two tools have the same name")
        for name in self._tools:
            if not is_name(name) or name == FIND_TOOLS:
                raise ValueError(f"{name!r} is no name of a tool")
        self._sources = sources
        self._find = LoopTool(definition=DEFINITION, use=self._found)

    async def now(self) -> "Toolbox":
        """With the tools of the sources, as they are at present."""
        if not self._sources:
            return self
        tools = dict(self._tools)
        for listed in await asyncio.gather(*[_listed(source) for source in self._sources]):
            tools |= {each.definition.name: each for each in listed} | tools  # ours come first
        return Toolbox(tuple(tools.values()))

    def offered(self, turn: ToolTurn, found: Collection[str] = ()) -> tuple[Tool, ...]:
        """Those that a model is told of: what can be used, and of the rest what was found."""
        usable = [tool for tool in self.tools if not turn.denied(tool)]
        sent = [tool for tool in usable if tool.is_always_sent or tool.definition.name in found]
        if any(not tool.is_always_sent for tool in usable):
            sent.append(self._find)
        return tuple([tool.definition for tool in sent])

    @property
    def tools(self) -> tuple[LoopTool, ...]:
        """All of them."""
        return tuple(self._tools.values())

    def find(self, name: str) -> LoopTool | None:
        """The tool of that name."""
        return self._find if name == FIND_TOOLS else self._tools.get(name)

    def search(self, arguments: Mapping[str, Any], actor: EngineActor) -> list[LoopTool]:
        """Of the tools that are not always sent those that fit, and that the actor may use."""
        more = [tool for tool in self.tools if not tool.is_always_sent]
        return matching([tool for tool in more if may_use(actor, tool)], arguments)

    async def _found(self, use: ToolUse, /) -> object:
        return words_of_found(self.search(use.arguments, use.actor))


class ToolRun:
    """The calls of one turn."""

    def __init__(
        self, toolbox: Toolbox, turn: ToolTurn, sink: Sink, budgets: LoopBudgets | None = None
    ) -> None:
        """Results are written to `sink`; `budgets` count what is used."""
        self._budgets = LoopBudgets((), ()) if budgets is None else budgets
        self._toolbox = toolbox
        self._turn = turn
        self._sink = sink
        self._made: Counter[bytes] = Counter()
        self._next = 0  # the place of the next call
        self._places = asyncio.Semaphore(MOST_AT_ONCE)
        self._found: set[str] = set()  # names of tools that the model has looked for
        self._cover = Cover(turn.actor.id, turn.seal)
        self._lost: set[str] = set()  # calls in which something is hidden for good
        needed = [tool.permission for tool in toolbox.tools if not may_use(turn.actor, tool)]
        if needed:
            words = f"{turn.actor.id} acts without {', '.join(map(str, needed))}"
            logger.info("tools are not offered", extra={**turn.logged, "detail": words})

    @property
    def offered(self) -> tuple[Tool, ...]:
        """What the model is told of now."""
        return self._toolbox.offered(self._turn, self._found)

    def look(self, call: ToolCall) -> None:
        """Offer from now on what a call that was answered has found."""
        if call.name == FIND_TOOLS:
            found = self._toolbox.search(arguments_of(call) or {}, self._turn.actor)
            self._found |= {tool.definition.name for tool in found}

    def look_again(self, calls: Iterable[ToolCall]) -> None:
        """The same for calls that were sent: for the newest of them, and each question once."""
        asked = {call.arguments: call for call in calls if call.name == FIND_TOOLS}
        for call in list(asked.values())[-MOST_LOOKED:]:
            self.look(call)

    async def go_on(self, calls: Sequence[ToolCall]) -> Outcomes:
        """Run calls that came back, since somebody has approved them."""
        return await self.use([self._opened(call) for call in calls])

    def _opened(self, call: ToolCall) -> ToolCall:
        """A call with what was hidden in it; without any where that cannot be opened."""
        try:
            arguments = self._cover.find(call, arguments_of(call) or {})
        except ValueError:
            self._lost.add(call.id)
            return call
        return replace(call, arguments=json.write_text(arguments))

    async def use(self, calls: Sequence[ToolCall]) -> Outcomes:
        """Run the calls of one answer; raises what ends the turn."""
        seen = {call.id: await self._seen(call) for call in calls}
        for call in seen.values():
            await self._sink.write(call)
        begun = [(call, self._begin(call)) for call in calls]
        results: dict[str, str] = {}
        waiting: list[ToolCall] = []
        held: list[ToolCall] = []
        broken: CarnetError | None = None
        async with asyncio.TaskGroup() as group:
            tasks = [(call, group.create_task(ended(act))) for call, act in begun]
            for call, task in tasks:
                outcome = await task
                if isinstance(outcome, CarnetError):
                    broken = broken or outcome
                elif outcome is None:
                    waiting.append(seen[call.id])
                elif outcome == _USED_UP and self._holds_up:
                    held.append(call)
                else:
                    results[call.id] = await self._ended(call, outcome)
        if broken is not None:
            raise broken
        if waiting:  # the end of the answer asks for these, and for nothing else
            results |= {each.id: await self._ended(each, _USED_UP) for each in held}
        return Outcomes(results, tuple(waiting))

    @property
    def _holds_up(self) -> bool:
        """Whether a call beyond a budget is left open: who pays may give that one more."""
        short = self._budgets.short
        return self._turn.asks and short is not None and short.facts.get("budget") == AGENT

    async def _seen(self, call: ToolCall) -> ToolCall:
        """A call as it is shown; one that somebody is to approve with what would come of it."""
        tool, given = self._toolbox.find(call.name), arguments_of(call)
        seen = shown(call, tool, self._cover)
        if tool is None or given is None or call.id in self._turn.resolved:
            return seen
        is_asked = tool.needs_approval and not self._turn.denied(tool)
        return await previewed(seen, tool, self._use(call, given)) if is_asked else seen

    async def _ended(self, call: ToolCall, outcome: ToolOutcome) -> str:
        """Show what came of a call; what the model is told of it."""
        await self._sink.write(ToolResult(call.id, outcome.status, outcome.output))
        self.look(call)
        return marked(outcome.output, call.name) if outcome.is_outside else outcome.output

    def _begin(self, call: ToolCall) -> Awaitable[ToolOutcome]:
        """What gives the outcome of a call; ApprovalAwaited where somebody must approve it.

        It is called in the order of the calls, and fixes the place of what is kept of each.
        """
        place, self._next = self._next, self._next + 1
        tool, arguments = self._toolbox.find(call.name), arguments_of(call)
        refusal = self._refusal(call, tool, arguments)

        async def act() -> list[Any]:
            if refusal is not None or tool is None or arguments is None:
                return (refusal or ToolOutcome("error", UNKNOWN)).kept
            if await self._turn.is_denied_by_policy(call.name):
                return ToolOutcome("denied", NOT_BY_POLICY).kept
            given = self._approved(call, tool, arguments)
            if given is None:
                return ToolOutcome("denied", DENIED).kept
            if tool.is_never_repeated and not await self._turn.begins(place, call.name):
                return ToolOutcome("error", UNSURE).kept
            async with self._places:
                return (await self._run(tool, call, given, place)).kept

        # The call of an agent has a record, which answers a repeat; a budget may be given more.
        is_kept = tool is None or not tool.calls_agent
        if not is_kept or refusal == _USED_UP:
            return read_outcome(act())
        return read_outcome(self._turn.once(f"tool {call.name}"[:MOST_STEP_NAME], act))

    def _approved(
        self, call: ToolCall, tool: LoopTool, arguments: dict[str, Any]
    ) -> dict[str, Any] | None:
        """The arguments that it may be run with; None where that was denied."""
        if not tool.needs_approval:
            return arguments
        answer = self._turn.resolved.get(call.id)
        if answer is None:
            raise ApprovalAwaited
        if not answer.accepted:
            return None
        if isinstance(answer.value, dict):  # R45: whoever approves may change them
            return approved(answer.value, arguments, tool)
        return arguments

    def _refusal(
        self, call: ToolCall, tool: LoopTool | None, arguments: dict[str, Any] | None
    ) -> ToolOutcome | None:
        if tool is None:
            return ToolOutcome("error", UNKNOWN)
        denied = self._turn.denied(tool)
        if denied:
            return ToolOutcome("denied", denied)
        if arguments is None:
            return ToolOutcome("error", NOT_AN_OBJECT)
        if is_long(call) or call.id in self._lost:
            return ToolOutcome("error", TOO_LONG if is_long(call) else CANNOT_OPEN)
        return self._one_too_many(call, arguments)

    def _one_too_many(self, call: ToolCall, arguments: dict[str, Any]) -> ToolOutcome | None:
        name = json.canonical([call.name, arguments])
        self._made[name] += 1
        if self._made[name] > MOST_REPEATED:
            return ToolOutcome("error", REPEATED)
        return None if self._budgets.use(call) else _USED_UP

    async def _run(
        self, tool: LoopTool, call: ToolCall, arguments: dict[str, Any], place: int
    ) -> ToolOutcome:
        try:
            async with asyncio.timeout(tool.seconds):
                output = await tool.use(self._use(call, arguments, place))
            return ToolOutcome("ok", _bounded(words_of(output)), tool.definition is not DEFINITION)
        except CalleeWaits:
            raise
        except ToolFailed as failed:
            words = str(failed)
            return ToolOutcome("error", _bounded(words or FAILED), bool(words))
        except TimeoutError:
            return ToolOutcome("error", TOO_SLOW)
        except CarnetError as error:
            if isinstance(error, ToolUnusable | Ours | Cancelled | ShuttingDown):
                raise
            return ToolOutcome("error", error.safe_text)
        except _RAISED as error:
            return self._blamed(error, call)

    def _use(self, call: ToolCall, arguments: dict[str, Any], place: int = 0) -> ToolUse:
        turn = self._turn
        return ToolUse(
            arguments=arguments,
            call=call.id,
            actor=turn.actor,
            correlation=turn.correlation,
            place=place,
            calls=turn.calls,
            conversation=turn.conversation,
            client_context=turn.client_context,
            triggers=turn.triggers,
            memory=turn.memory,
            past=turn.past,
        )

    def _blamed(self, error: BaseException, call: ToolCall) -> ToolOutcome:
        """What is told of a tool that raised; who is really being cancelled is."""
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling()):
            raise error
        logger.error(
            "tool raised %s",
            type(error).__name__,
            exc_info=error,
            extra={**self._turn.logged, "tool": call.name},
        )
        return ToolOutcome("error", FAILED)


async def _listed(source: ToolSource) -> Sequence[LoopTool]:
    """The tools of a source; one that cannot be asked has none, and the others are used."""
    try:
        return await source.tools()
    except ToolUnusable as error:
        logger.warning("tools are missing", extra={"code": error.code, "detail": str(error)})
        return ()


def _bounded(text: str) -> str:
    return text if len(text) <= MOST_OUTPUT else text[: MOST_OUTPUT - len(CUT)] + CUT
