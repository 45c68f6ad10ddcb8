"""An agent loop as whoever hands it a request sees it: ours, or any other in its place.

It is the contract as a function. Behind it may be a loop in this process, or one that is asked over
HTTP; neither side knows more of the other.
"""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from carnet.core.call import Call
from carnet.core.messages.events import Done, Waiting
from carnet.core.messages.interrupt import Resolution
from carnet.core.messages.output import Sink
from carnet.core.money.budget import Ceilings
from carnet.errors import BudgetExceeded
from carnet.ports.engine.calls import AgentCalls
from carnet.ports.engine.tools import AskPolicy, Begins, Once, TurnTriggers, at_once, unnoted
from carnet.ports.memory.memory import TurnMemory
from carnet.ports.memory.past import TurnPast
from carnet.wire.dialects.engine_chat.actor import EngineActor
from carnet.wire.dialects.engine_chat.request import EngineRequest


class LoopTokens(Protocol):
    """What of its tokens a turn has left, where something bounds them."""

    @property
    def short(self) -> BudgetExceeded | None:
        """The refusal to ask a model again, once there was one."""

    @property
    def known(self) -> int:
        """How many the turn has used, as far as it was noted."""

    def count(self, tokens: int) -> None:
        """So many more were noted."""

    async def left(self, used: int, /) -> int | None:
        """How many the next answer of a model may take; None: as many as it likes.

        `used` is what the loop knows to be used of the turn. BudgetExceeded where none is left.
        """


class FindTokens(Protocol):
    """Finds what turns have left."""

    def of(self, call: Call) -> LoopTokens | None:
        """That of a call; None where nothing bounds its tokens."""


class LoopTurn(Struct, frozen=True, kw_only=True):
    """One request, and for whom."""

    request: EngineRequest
    actor: EngineActor
    name: str = ""  # of the turn, for who must name it elsewhere
    resolved: Mapping[str, Resolution] = {}  # what was answered, by the ids of calls
    once: Once = at_once
    begins: Begins = unnoted  # what somebody has approved, and is done once at the most
    agent: str = ""  # the one that is asked, by its name; none: as the loop is by itself
    calls: AgentCalls | None = None  # other agents; None where none can be called
    triggers: TurnTriggers | None = None  # of the person, where she can have any from here
    is_final: bool = False  # the last hop of its chain: it answers, and calls nobody
    memory: TurnMemory | None = None  # of the person it acts for; None where that is a machine
    past: TurnPast | None = None  # what she has said before; None where it may not be searched
    ask_policy: AskPolicy | None = None  # before a tool is used; None where nobody is asked
    budgets: Ceilings = ()  # of the token that asks, by their names
    granted: Ceilings = ()  # what who pays has given beyond those of the agent
    counted: Ceilings = ()  # what other loops of the turn have counted of named budgets
    asks: bool = False  # who pays may be asked for more of the budgets of the agent
    tells: bool = False  # who asked this loop goes on by other requests, and is told the counts
    held: frozenset[str] = frozenset()  # the ids of such calls, which go on now
    tokens: LoopTokens | None = None  # what is left of them; None where nothing bounds them


class OpenLoops(Protocol):
    """The turns whose loops are asked elsewhere at this moment, by the ids of their bearers."""

    def turn(self, id: str, turn: str, agent: str, /) -> LoopTurn | None:
        """Such a turn; None where it has ended, or never was."""


class Engine(Protocol):
    """Answers requests of the contract."""

    async def __call__(self, turn: LoopTurn, sink: Sink, /) -> Done | Waiting:
        """Write what happens, and return how it ended; a failure is raised."""
