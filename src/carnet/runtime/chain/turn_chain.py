"""The chain of a turn, for what the code of its agent calls by itself with `carnet.connect`.

Such a call passes the gateway by: it is signed by the client, and is no turn here. All the same it
is a call out of the turn.

Law 1. It has a place among the calls out of its turn, and is noted there with its end.
Law 2. It is refused where a call through the gateway would be: at the last hop, back into its own
       chain, after the agent has ended, and where what its turn was admitted by has.
Law 3. The payer's credential leaves to those whom the operator has listed, where the agent's calls
       are the payer's.
"""

import asyncio
from copy import copy
from typing import Final, Protocol

from carnet.core.call import AGENT_OWNED, Call
from carnet.core.messages.outbound_call import OutboundCall
from carnet.core.messages.output import Output
from carnet.errors import Cancelled
from carnet.ports.calls.admission import ClientCallee, ClientLeave, Dispatch
from carnet.runtime.chain.call_chain import CallChain
from carnet.runtime.receipts.outbound_calls import ended_call
from carnet.runtime.system import SystemClock

DIALECT: Final = "samvad"  # that clients speak
_CLOCK: Final = SystemClock()


class CallPlaces(Protocol):
    """Gives the calls out of one turn their places."""

    def take_ordinal(self) -> int:
        """The place of the next call."""

    def take_conversation(self) -> int:
        """The place of the next conversation."""

    def scoped(self, part: str) -> "CallPlaces":
        """Places of their own for a part of the turn."""


class ChainedTurn(Protocol):
    """The turn whose agent runs."""

    @property
    def call(self) -> Call:
        """The admitted call."""

    @property
    def cancelled(self) -> bool:
        """Whether its agent has ended."""


class TurnChain(CallChain):
    """That of a turn while its agent runs."""

    __slots__ = ("_dispatch", "_out", "_places", "_turn")

    def __init__(
        self,
        turn: ChainedTurn,
        places: CallPlaces,
        dispatch: Dispatch,
        out: "ThreadedOutput",
        *,
        last_depth: int,
        auth_source: str,
    ) -> None:
        """`dispatch` judges what may leave; `out` takes what is noted."""
        call = turn.call
        super().__init__(
            call.carnet,
            None if auth_source == AGENT_OWNED else call.credential,
            key=call.record.key,
            caller=call.record.key.hex(),
            last_depth=last_depth,
            clock=_CLOCK,
        )
        self._turn = turn
        self._places = places
        self._dispatch = dispatch
        self._out = out

    def take(self, callee: ClientCallee) -> int:
        """The place of the next call, unless none may be made any more."""
        del callee
        self._check()
        return self._places.take_ordinal()

    def take_conversation(self) -> int:
        """The place of the next conversation, unless none may be begun any more."""
        self._check()
        return self._places.take_conversation()

    def let_out(self, callee: ClientCallee, auth: str | None) -> ClientLeave:
        """As whoever answers for calls out of the turn says."""
        self._check()
        return self._dispatch.let_out(self._turn.call, callee, auth=auth)

    def note(self, turn: str, callee: ClientCallee, error: BaseException | None) -> None:
        """Note a call in the record of the turn."""
        to = min(callee.identities, default=callee.url)
        depth = self.carnet.depth + 1
        call = ended_call(turn, to, depth=depth, dialect=DIALECT, error=error)
        self._out.called(call)

    def scoped(self, part: str) -> "TurnChain":
        """The same for a part of the turn whose calls are counted by themselves."""
        other = copy(self)
        other._places = self._places.scoped(part)  # noqa: SLF001  our own
        return other

    def _check(self) -> None:
        if self._turn.cancelled:
            raise Cancelled("the agent has ended")


class ThreadedOutput:
    """Takes note of calls that may be made in a thread, on the event loop of their turn."""

    def __init__(self, out: Output, loop: asyncio.AbstractEventLoop) -> None:
        """`out` is that of the turn."""
        self._out = out
        self._loop = loop

    def called(self, call: OutboundCall) -> None:
        """Note one before whatever comes after it in its thread."""
        if _is_running(self._loop):
            self._out.called(call)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._out.called, call)


def _is_running(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether this is its thread."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
