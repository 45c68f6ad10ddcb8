"""Whom tools are used for in one turn, and which of them may be used in it at all.

Law 1. What may not be used is told in words of ours; why a policy denies is for our log.
Law 2. A policy is asked about a call before anybody is asked to approve it.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from carnet.core.messages.interrupt import Resolution
from carnet.errors import PolicyDenied
from carnet.ports.engine.calls import AgentCalls
from carnet.ports.engine.tools import (
    AskPolicy,
    Begins,
    HiddenSeal,
    LoopTool,
    Once,
    TurnTriggers,
    unnoted,
)
from carnet.ports.memory.memory import TurnMemory
from carnet.ports.memory.past import TurnPast
from carnet.wire.dialects.engine_chat.actor import EngineActor

NOT_ALLOWED: Final = "This tool may not be used here."
NO_TRIGGERS: Final = "Schedules and hooks are made for people, and not from here."
NO_CALLS: Final = "Other agents cannot be called from here."
NO_HOP: Final = "Other agents cannot be called from here: this is the last hop of its chain."
NO_MEMORY: Final = "Memory is kept for people, and this call is made for none."
NO_PAST: Final = "Only the agent that a person has asked herself may search her conversations."


def may_use(actor: EngineActor, tool: LoopTool) -> bool:
    """Whether who acts may use a tool: if not, no model is told of it, and none has it used."""
    return tool.permission is None or actor.may(tool.permission)


class ToolTurn(Struct, frozen=True, kw_only=True):
    """Whom tools are used for in one turn, and what was answered where somebody was asked."""

    actor: EngineActor
    correlation: str
    name: str = ""  # of the turn, as our log has it
    resolved: Mapping[str, Resolution]  # by the ids of calls
    once: Once
    begins: Begins = unnoted
    seal: HiddenSeal | None = None  # for what is hidden in calls that come back
    calls: AgentCalls | None = None
    is_final: bool = False
    conversation: str | None = None
    client_context: Mapping[str, Any] = {}
    triggers: TurnTriggers | None = None
    memory: TurnMemory | None = None
    past: TurnPast | None = None
    ask_policy: AskPolicy | None = None  # raises PolicyDenied
    asks: bool = False  # a call that a budget of the agent has nothing left for may go on later

    def denied(self, tool: LoopTool) -> str:
        """Why a tool may not be used, whatever it is given; empty where it may."""
        if not may_use(self.actor, tool):
            return NOT_ALLOWED
        if tool.needs_triggers and self.triggers is None:
            return NO_TRIGGERS
        if tool.needs_memory and self.memory is None:
            return NO_MEMORY
        if tool.needs_past and self.past is None:
            return NO_PAST
        return self._calls_denied() if tool.calls_agent else ""

    def _calls_denied(self) -> str:
        if self.is_final:
            return NO_HOP
        return NO_CALLS if self.calls is None else ""

    @property
    def logged(self) -> dict[str, object]:
        """What our log is told of every line about it."""
        return {"correlation_id": self.correlation, "turn": self.name or None}

    async def is_denied_by_policy(self, name: str) -> bool:
        """Whether the operator's policy denies the tool of that name."""
        if self.ask_policy is None:
            return False
        try:
            await self.ask_policy(name)
        except PolicyDenied:  # who denies says in the log why
            return True
        return False
