"""What may still deny a call or a tool that everything else lets pass."""

from typing import Protocol

from carnet.core.call import Admitted


class OperatorPolicy(Protocol):
    """The operator's own rules: they may deny, and can grant nothing."""

    async def ask_call(self, admitted: Admitted, /) -> None:
        """Raise PolicyDenied where a call may not be made."""

    async def ask_tool(self, admitted: Admitted, tool: str, /) -> None:
        """Raise PolicyDenied where a tool may not be used in answering a call."""
