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
Law 7. A call has its place in the turn whatever comes of it, and what is kept of it too: one that
       waits now is found there when it has been answered.
Law 8. A tool that asks another agent is used where a hop is left for it. Where who was asked waits
       for somebody, so does the call; the others of its answer end first.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.messages.events import ToolCall, ToolResult
from carnet.core.messages.interrupt import Resolution
from carnet.core.messages.output import Sink
from carnet.core.messages.parameters import Tool
from carnet.errors import Cancelled, CarnetError, Ours, ShuttingDown, ToolUnusable
from carnet.ports.engine.calls import AgentCalls, CalleeWaits
from carnet.ports.engine.tools import LoopTool, Once, ToolFailed, ToolUse
from carnet.wire.dialects.engine_chat.actor import EngineActor
from carnet.wire.dialects.engine_chat.request import arguments_of, is_name
from carnet.wire.dialects.engine_chat.writer import words_of
from carnet.wire.grammar import json

logger = logging.getLogger("carnet.engine")

MOST_OUTPUT: Final = 40_000  # characters, so that a result is one frame for every reader
MOST_ARGUMENTS: Final = 120_000  # bytes, so that a call is one frame as well
MOST_REPEATED: Final = 2  # identical calls in one answer
MOST_AT_ONCE: Final = 8
MOST_STEP_NAME: Final = 200  # characters of the name that a step is kept under

UNKNOWN: Final = "There is no tool of this name."
NOT_AN_OBJECT: Final = "The arguments are not a JSON object."
TOO_LONG: Final = "The arguments are too long."
REPEATED: Final = "This call was made before, with the same arguments. Its result is the same."
NOT_ALLOWED: Final = "This tool may not be used here."
DENIED: Final = "This was asked for and denied."
NO_CALLS: Final = "Other agents cannot be called from here."
NO_HOP: Final = "Other agents cannot be called from here: this is the last hop of its chain."
TOO_SLOW: Final = "The tool did not answer in time."
FAILED: Final = "The tool failed."
CUT: Final = "\n[cut here: the output was too long]"

# Whatever a tool may raise that is about itself. What else unwinds a turn passes.
_RAISED: Final = (Exception, SystemExit, KeyboardInterrupt, asyncio.CancelledError)

Status = Literal["ok", "error", "denied"]


class ToolTurn(Struct, frozen=True, kw_only=True):
    """Whom tools are used for in one turn, and what was answered where somebody was asked."""

    actor: EngineActor
    correlation: str
    resolved: Mapping[str, Resolution]  # by the ids of calls
    once: Once
    calls: AgentCalls | None = None
    is_final: bool = False

    @property
    def closed(self) -> str:
        """Why no other agent can be called; empty where one can."""
        if self.is_final:
            return NO_HOP
        return NO_CALLS if self.calls is None else ""


class Outcomes(Struct, frozen=True):
    """What came of the calls of one answer."""

    results: dict[str, str]  # what the model is told, by the ids of calls
    waiting: tuple[ToolCall, ...]  # for an approval, or for an answer that a callee waits for


class Toolbox:
    """The tools of a loop, by their names."""

    def __init__(self, tools: Sequence[LoopTool]) -> None:
        """Two tools of one name are refused: a model could not tell them apart."""
        self._tools = {tool.definition.name: tool for tool in tools}
        if len(self._tools) < len(tools):
            raise ValueError("two tools have the same name")
        for name in self._tools:
            if not is_name(name):
                raise ValueError(f"{name!r} is no name of a tool")

    def offered(self, turn: ToolTurn) -> tuple[Tool, ...]:
        """Those that a model is told of: what the actor may use, and can."""
        tools = [tool for tool in self._tools.values() if not (tool.calls_agent and turn.closed)]
        return tuple([tool.definition for tool in tools if _may(turn.actor, tool)])

    def find(self, name: str) -> LoopTool | None:
        """The tool of that name."""
        return self._tools.get(name)


class ToolRun:
    """The calls of one turn."""

    def __init__(self, toolbox: Toolbox, turn: ToolTurn, sink: Sink) -> None:
        """Results are written to `sink`."""
        self._toolbox = toolbox
        self._turn = turn
        self._sink = sink
        self._made: Counter[bytes] = Counter()
        self._next = 0  # the place of the next call
        self._places = asyncio.Semaphore(MOST_AT_ONCE)

    async def use(self, calls: Sequence[ToolCall]) -> Outcomes:
        """Run the calls of one answer; raises what ends the turn."""
        for call in calls:
            await self._sink.write(_shown(call))
        begun = {call.id: self._begin(call) for call in calls}
        results: dict[str, str] = {}
        broken: CarnetError | None = None
        async with asyncio.TaskGroup() as group:
            tasks = {id: group.create_task(_outcome(act)) for id, act in begun.items() if act}
            for id, task in tasks.items():
                outcome = await task
                if isinstance(outcome, CarnetError):
                    broken = broken or outcome
                elif isinstance(outcome, _Outcome):
                    results[id] = words_of(outcome.output)
                    await self._sink.write(ToolResult(id, outcome.status, outcome.output))
        if broken is not None:
            raise broken
        return Outcomes(results, tuple([call for call in calls if call.id not in results]))

    def _begin(self, call: ToolCall) -> "Awaitable[_Outcome] | None":
        """What gives the outcome of a call; None where it waits for an approval.

        It is called in the order of the calls, and fixes the place of what is kept of each.
        """
        place, self._next = self._next, self._next + 1
        tool, arguments = self._toolbox.find(call.name), arguments_of(call)
        refusal = self._refusal(call, tool, arguments)
        if refusal is not None or tool is None or arguments is None:
            return _given(refusal or _Outcome("error", UNKNOWN))
        if tool.needs_approval:
            answer = self._turn.resolved.get(call.id)
            if answer is None or not answer.accepted:
                _leave(self._kept(tool, call, arguments, place))
                return None if answer is None else _given(_Outcome("denied", DENIED))
            if isinstance(answer.value, dict):  # R45: whoever approves may change them
                arguments = answer.value
        return _read(self._kept(tool, call, arguments, place))

    def _refusal(
        self, call: ToolCall, tool: LoopTool | None, arguments: dict[str, Any] | None
    ) -> "_Outcome | None":
        if tool is None:
            return _Outcome("error", UNKNOWN)
        denied = self._denied(tool)
        if denied:
            return _Outcome("denied", denied)
        if arguments is None:
            return _Outcome("error", NOT_AN_OBJECT)
        if _is_long(call):
            return _Outcome("error", TOO_LONG)
        name = json.canonical([call.name, arguments])
        self._made[name] += 1
        return _Outcome("error", REPEATED) if self._made[name] > MOST_REPEATED else None

    def _denied(self, tool: LoopTool) -> str:
        """Why a tool may not be used, whatever it is given; empty where it may."""
        if not _may(self._turn.actor, tool):
            return NOT_ALLOWED
        return self._turn.closed if tool.calls_agent else ""

    def _kept(
        self, tool: LoopTool, call: ToolCall, arguments: dict[str, Any], place: int
    ) -> Awaitable[Any]:
        turn = self._turn
        use = ToolUse(
            arguments=arguments,
            call=call.id,
            actor=turn.actor,
            correlation=turn.correlation,
            place=place,
            calls=turn.calls,
        )

        async def act() -> list[str]:
            async with self._places:
                outcome = await self._run(tool, call, use)
            return [outcome.status, outcome.output]

        if tool.calls_agent:  # its call has a record of its own, which answers a repeat
            return act()
        return turn.once(f"tool {call.name}"[:MOST_STEP_NAME], act)

    async def _run(self, tool: LoopTool, call: ToolCall, use: ToolUse) -> "_Outcome":
        try:
            async with asyncio.timeout(tool.seconds):
                output = await tool.use(use)
            return _Outcome("ok", _bounded(words_of(output)))
        except CalleeWaits:
            raise
        except ToolFailed as failed:
            return _Outcome("error", _bounded(str(failed) or FAILED))
        except TimeoutError:
            return _Outcome("error", TOO_SLOW)
        except CarnetError as error:
            if isinstance(error, ToolUnusable | Ours | Cancelled | ShuttingDown):
                raise
            return _Outcome("error", error.safe_text)
        except _RAISED as error:
            return self._blamed(error, call)

    def _blamed(self, error: BaseException, call: ToolCall) -> "_Outcome":
        """What is told of a tool that raised; who is really being cancelled is."""
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling()):
            raise error
        logger.error(
            "tool raised %s",
            type(error).__name__,
            exc_info=error,
            extra={"correlation_id": self._turn.correlation, "tool": call.name},
        )
        return _Outcome("error", FAILED)


class _Outcome(Struct, frozen=True):
    status: Status
    output: str


async def _read(kept: Awaitable[Any]) -> _Outcome:
    status, output = await kept
    return _Outcome(status, output)


async def _given(outcome: _Outcome) -> _Outcome:
    return outcome


def _leave(act: Awaitable[Any]) -> None:
    """Keep the place of what is not begun."""
    if isinstance(act, Coroutine):
        act.close()


async def _outcome(act: Awaitable[_Outcome]) -> _Outcome | CarnetError | CalleeWaits:
    """An outcome, or what ends the turn: it ends it when the others have ended."""
    try:
        return await act
    except (CarnetError, CalleeWaits) as raised:
        return raised


def _may(actor: EngineActor, tool: LoopTool) -> bool:
    return tool.permission is None or actor.may(tool.permission)


def _is_long(call: ToolCall) -> bool:
    return len(call.arguments.encode(errors="replace")) > MOST_ARGUMENTS


def _shown(call: ToolCall) -> ToolCall:
    """A call as it is shown: run here, and without arguments that no frame holds."""
    return replace(call, arguments="{}" if _is_long(call) else call.arguments, is_own=True)


def _bounded(text: str) -> str:
    return text if len(text) <= MOST_OUTPUT else text[: MOST_OUTPUT - len(CUT)] + CUT
