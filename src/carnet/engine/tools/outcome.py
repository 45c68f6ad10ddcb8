"""What came of one tool call: its status and its words, or that it waits, or what ends the turn."""

from collections.abc import Awaitable
from typing import Any, Literal

from msgspec import Struct

from carnet.errors import CarnetError
from carnet.ports.engine.calls import CalleeWaits

Status = Literal["ok", "error", "denied"]


class ToolOutcome(Struct, frozen=True):
    """What is shown of it, and told to the model."""

    status: Status
    output: str
    is_outside: bool = False  # its words are the tool's, not ours

    @property
    def kept(self) -> list[Any]:
        """As a step of the turn keeps it."""
        return [self.status, self.output, self.is_outside]


class ApprovalAwaited(Exception):
    """A call waits for somebody's approval."""


async def read_outcome(kept: Awaitable[Any]) -> ToolOutcome:
    """What a step has kept."""
    return ToolOutcome(*await kept)


async def ended(act: Awaitable[ToolOutcome]) -> ToolOutcome | CarnetError | None:
    """An outcome, or what ends the turn: it ends it when the others have ended. None: it waits."""
    try:
        return await act
    except CarnetError as error:
        return error
    except (ApprovalAwaited, CalleeWaits):
        return None
