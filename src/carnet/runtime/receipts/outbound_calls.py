"""The record of a call that this gateway made to another organisation."""

import asyncio
from collections.abc import Callable
from typing import Any, Final, TypeVar

from carnet.core.call import Call
from carnet.core.messages.events import Usage
from carnet.core.messages.outbound_call import OutboundCall, OutboundState
from carnet.core.messages.output import Output
from carnet.errors import (
    CarnetError,
    Malformed,
    PeerBusy,
    PeerRefused,
    ProviderTimeout,
    Refused,
)
from carnet.runtime.receipts.verification import Slip

T = TypeVar("T")
Ending = tuple[OutboundState, str | None, dict[str, Any]]

_DONE: Final[Ending] = ("done", None, {})


class Calling:
    """One call out while it is made: a Sink for its answer, which knows what it costs."""

    __slots__ = ("_bound", "_call", "_dialect", "_out", "cost", "slip", "write")

    def __init__(
        self,
        call: Call,
        out: Output,
        *,
        dialect: str,
        bound: Callable[[Usage, Call], Usage],
        cost: int | None = None,
    ) -> None:
        """`bound` gives what counts of a usage; `cost` is what it costs unless somebody says."""
        self._call = call
        self._out = out
        self._dialect = dialect
        self._bound = bound
        self.write = out.write
        self.cost = cost
        self.slip = Slip()  # what its answer brings along as its receipt

    def usage(self, usage: Usage, /) -> None:
        """Pass on what it used, and remember what that costs."""
        bounded = self._bound(usage, self._call)
        self.cost = bounded.cost
        self._out.usage(bounded)

    def ended(self, error: BaseException | None = None) -> None:
        """Leave the record of the call, however it ended."""
        state, code, facts = _DONE if error is None else _ending(error)
        call = self._call
        carnet = call.carnet
        self._out.called(
            OutboundCall(
                ordinal=0,
                child_turn=carnet.turn,
                to=call.agent,
                depth=carnet.depth,
                state=state,
                dialect=self._dialect,
                cost=self.cost,
                code=code,
                peer_status=_fact(facts, "peer_status", int) if facts else None,
                peer_code=_fact(facts, "peer_code", str) if facts else None,
                receipt=self.slip.proved,
            )
        )


def _ending(error: BaseException) -> Ending:
    """How a call has ended that failed, by which code, and what the other side said of it."""
    if isinstance(error, CarnetError):
        refused = isinstance(error, Refused | Malformed | PeerRefused | PeerBusy)
        return "refused" if refused else "failed", error.code, error.facts
    late = isinstance(error, asyncio.CancelledError)  # by whoever waited for it
    return "failed", ProviderTimeout.code if late else None, {}


def _fact(facts: dict[str, Any], name: str, kind: type[T]) -> T | None:
    value = facts.get(name)
    return value if isinstance(value, kind) else None
