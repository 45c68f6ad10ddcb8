"""A tool as a loop uses it.

Law 1. A tool that cannot do what it was asked raises `ToolFailed`, with words for the model, which
       decides what to do. Whatever else it raises is told to the model in words of ours.
Law 2. `ToolUnusable` is for what runs it: a server that is gone, a program that is not there. That
       ends the answer.
Law 3. A tool is told for whom it is used. What that one may not use, it is not used for.
Law 4. Arguments that are hidden reach the tool and the model, and nobody else.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol

from msgspec import Struct

from carnet.core.messages.parameters import Tool
from carnet.ports.engine.calls import AgentCalls
from carnet.ports.memory.memory import TurnMemory
from carnet.ports.memory.past import TurnPast
from carnet.wire.dialects.engine_chat.actor import EngineActor

Approval = Literal["never", "always", "write"]

DEFAULT_SECONDS: Final = 30.0

AskPolicy = Callable[[str], Awaitable[None]]  # of a tool, by its name; raises PolicyDenied


class ToolFailed(Exception):
    """A tool could not do what it was asked; its words are for the model, and shown."""


class TurnOwned(Protocol):
    """The schedules, or the hooks, of the person whom a turn is for."""

    async def add(self, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        """Make one; what it is, without its secret."""

    async def list(self) -> Mapping[str, Any]:
        """All of hers."""

    async def delete(self, name: str) -> Mapping[str, Any]:
        """Forget one of hers."""


class TurnTriggers(Struct, frozen=True, kw_only=True, eq=False):
    """What the person whom a turn is for has begun while she is away."""

    schedules: TurnOwned
    hooks: TurnOwned


class ToolUse(Struct, frozen=True, kw_only=True):
    """One use of a tool."""

    arguments: dict[str, Any]
    call: str  # the id of the call, the same in the stream
    actor: EngineActor  # for whom
    correlation: str  # the name of the request
    place: int = 0  # of the call among all of its turn
    calls: AgentCalls | None = None  # other agents, for a tool that asks one
    conversation: str | None = None  # of the person, that it is used in
    client_context: Mapping[str, Any] = {}  # what tools are given of what her client says
    triggers: TurnTriggers | None = None  # hers; None where there can be none
    memory: TurnMemory | None = None  # of whom it is used for, for a tool that needs it
    past: TurnPast | None = None  # what that one has said before


class UseTool(Protocol):
    """Does what a tool does."""

    async def __call__(self, use: ToolUse, /) -> object:
        """What it gives: text, or what is written as JSON."""


class LoopTool(Struct, frozen=True, kw_only=True, eq=False):
    """A tool, and the rules for its use."""

    definition: Tool  # as models are told
    use: UseTool
    permission: str | None = None  # that the actor must have
    approval: Approval = "never"
    writes: bool = False  # it changes something
    seconds: float = DEFAULT_SECONDS
    label: str = ""  # what people are shown of a use, with {name} where an argument stands
    hidden: frozenset[str] = frozenset()  # arguments that are shown to nobody
    is_always_sent: bool = True  # else a model finds it when it looks for it
    calls_agent: bool = False  # it asks another agent: not where no hop is left
    needs_triggers: bool = False  # it makes or shows schedules and hooks
    needs_memory: bool = False  # that of a person: not where a machine calls
    needs_past: bool = False  # her conversations: not where another agent calls either
    preview: UseTool | None = None  # what would come of a use, as text for whoever approves it

    @property
    def needs_approval(self) -> bool:
        """Whether somebody has to say yes before each use."""
        return self.approval == "always" or (self.approval == "write" and self.writes)

    @property
    def is_never_repeated(self) -> bool:
        """Whether a use that was begun and not ended is not begun again: one was approved.

        A call of an agent has a record that answers a repeat, and memory knows the same write.
        """
        return self.needs_approval and not self.calls_agent and not self.needs_memory


class HiddenSeal(Protocol):
    """Seals what is hidden where it must pass through other hands."""

    def seal(self, word: str, /, *, label: str) -> str:
        """The sealed form of a word."""

    def open(self, sealed: str, /, *, label: str) -> str:
        """The word again; ValueError for what was not sealed by us for this label."""


class ToolSource(Protocol):
    """Has tools that are known only when it is asked: a server."""

    async def tools(self) -> Sequence[LoopTool]:
        """Those that it has now; ToolUnusable where it cannot be asked and never could."""


class Once(Protocol):
    """Does something once, however often its turn runs; `visit.step` is one."""

    def __call__(self, name: str, act: Callable[[], Awaitable[Any]], /) -> Awaitable[Any]:
        """What it gives, as JSON, done now or before; its place is fixed when it is asked for."""


class Begins(Protocol):
    """Notes that something begins which must not be done twice."""

    def __call__(self, place: int, name: str, /) -> Awaitable[bool]:
        """Whether it begins for the first time, which is kept by then.

        False if its turn has run before and begun it: whether it was done nobody can tell.
        """


async def unnoted(place: int, name: str, /) -> bool:
    """Let it begin, and keep nothing."""
    del place, name
    return True


def at_once(name: str, act: Callable[[], Awaitable[Any]], /) -> Awaitable[Any]:
    """Do it now, and keep nothing."""
    del name
    return act()
