"""A loop by itself: a scripted model, tools that are plain functions, and what came out."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from carnet.core.messages.events import Done, Event, Message, ToolCall, Usage, Waiting
from carnet.core.messages.interrupt import Resolution
from carnet.core.messages.parameters import Tool
from carnet.core.people.identity import Ceiling
from carnet.engine.loop import UNBOUNDED, AgentLoop, LoopBounds
from carnet.engine.stop import LoopStop
from carnet.errors import CarnetError
from carnet.ports.engine.loop import LoopTurn
from carnet.ports.engine.tools import HiddenSeal, LoopTool, Once, ToolUse, at_once
from carnet.ports.memory.memory import TurnMemory
from carnet.ports.memory.past import TurnPast
from carnet.testing.model import ScriptedModel
from carnet.wire.dialects.engine_chat.actor import EngineActor
from carnet.wire.dialects.engine_chat.request import EngineRequest

ALICE = EngineActor("alice", Ceiling(allow=frozenset({"tool:*"})))
USED = Usage(10, 5)
YES = Resolution(outcome="accepted")
NO = Resolution(outcome="rejected")


class Written:
    """Takes what a loop says."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.used: list[Usage] = []

    async def write(self, event: Event, /) -> None:
        self.events.append(event)

    def usage(self, usage: Usage, /) -> None:
        self.used.append(usage)


class Kept:
    """Keeps what was done, as a store would, and gives it when a turn runs again."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, Any]] = []
        self.done = 0  # steps that were really done
        self._place = 0

    def again(self) -> None:
        """Begin the turn once more."""
        self._place = 0

    def __call__(self, name: str, act: Callable[[], Awaitable[Any]], /) -> Awaitable[Any]:
        place, self._place = self._place, self._place + 1
        return self._do(place, name, act)

    async def _do(self, place: int, name: str, act: Callable[[], Awaitable[Any]]) -> Any:
        for kept, result in self.steps:
            if kept == f"{place} {name}":
                return result
        result = await act()
        self.done += 1
        self.steps.append((f"{place} {name}", result))
        return result


async def nothing(_: ToolUse, /) -> str:
    return "nothing"


def tool(name: str = "look", use: Callable[..., Any] = nothing, **rules: Any) -> LoopTool:
    return LoopTool(definition=Tool(name, "Looks."), use=use, **rules)


def call(id: str = "c1", name: str = "look", arguments: str = "{}", index: int = 0) -> ToolCall:
    return ToolCall(id, name, arguments, index, is_own=True)


class Scene:
    """What one turn of a loop came to."""

    def __init__(
        self,
        *answers: Sequence[Any],
        tools: Sequence[LoopTool] = (),
        seal: HiddenSeal | None = None,
    ) -> None:
        self.seal = seal
        self.model = ScriptedModel(*answers)
        self.tools = tools
        self.written = Written()
        self.stop = LoopStop()

    @property
    def events(self) -> list[Event]:
        return self.written.events

    async def run(
        self,
        *messages: Message,
        bounds: LoopBounds = UNBOUNDED,
        actor: EngineActor = ALICE,
        resolved: dict[str, Resolution] | None = None,
        once: Once = at_once,
        memory: TurnMemory | None = None,
        past: TurnPast | None = None,
    ) -> Done | Waiting:
        request = EngineRequest(messages=messages or (Message.user("Hi"),), correlation="req_1")
        turn = LoopTurn(
            request=request,
            actor=actor,
            name="turn_1",
            resolved=resolved or {},
            once=once,
            memory=memory,
            past=past,
        )
        loop = AgentLoop(self.model, self.tools, bounds=bounds, seal=self.seal)
        return await self.stop.run(loop(turn, self.written))

    async def failed(self, **more: Any) -> CarnetError:
        try:
            end = await self.run(**more)
        except CarnetError as error:
            return error
        raise AssertionError(f"it ended with {end}")
