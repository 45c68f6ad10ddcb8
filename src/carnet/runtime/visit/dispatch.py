"""How an agent calls another agent: the gate, then the journal.

Law. A child is admitted like any call, under its own turn id; if that turn has run before, its
recorded answer is given and nothing runs again.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from carnet.core.call import Ask, Call, Target, quote
from carnet.core.chain.allowance import Aside
from carnet.core.messages.events import (
    OUTBOUND_CALL,
    RECORDED,
    Event,
    Extension,
    Usage,
    is_terminal,
)
from carnet.core.messages.outbound_call import read_outbound_event
from carnet.guards.admission.child_request import child_request
from carnet.ports.calls.admission import Admission, ClientCallee, ClientLeave
from carnet.ports.calls.agent import Journal
from carnet.ports.money.budgets import CALL
from carnet.runtime.receipts.outbound_calls import tally, used_of
from carnet.runtime.stream import closing

_SETTLED: Final = frozenset({Extension, Usage})
_RECORDED: Final = Extension(RECORDED, None)  # said before the answer


class Dispatching:
    """Admits children and runs them. Its parts are given later: agents need it to be built."""

    def __init__(self) -> None:
        """Wait for `connect`."""
        self._parts: tuple[Admission, Journal] | None = None
        self._find: Callable[[str], Target] | None = None

    def connect(
        self,
        admission: Admission,
        journal: Journal,
        find: Callable[[str], Target] | None = None,
    ) -> None:
        """Give the gate and the journal behind it, and what finds where a name leads."""
        self._parts = (admission, journal)
        self._find = find

    async def __call__(
        self, parent: Call, name: str, ask: Ask, *, index: int, auth: str
    ) -> AsyncIterator[Event]:
        """Admit the child and give its events as they come."""
        admission, journal = self._connected()
        call = await admission.admit_child(parent, name, ask, index=index, auth=auth)
        if call.known:
            yield _RECORDED
        noted: list[Event] = []
        async with closing(journal.batches(call)) as batches:
            async for batch in batches:
                if call.allowance is not None:
                    noted += [event for event in batch if type(event) in _SETTLED]
                    noted += batch[-1:]
                    _settle(call, noted)
                for event in batch:
                    yield event

    async def whole(
        self, parent: Call, name: str, ask: Ask, *, index: int, auth: str
    ) -> Sequence[Event]:
        """Admit the child and wait for all of its events."""
        admission, journal = self._connected()
        call = await admission.admit_child(parent, name, ask, index=index, auth=auth)
        events = await journal.whole(call)
        _settle(call, events)
        return [_RECORDED, *events] if call.known else events

    def check(self, call: Call) -> None:
        """Raise Cancelled if nothing may be done for the call any more."""
        if self._parts is not None:
            self._parts[0].check(call)

    def most_cost(self, name: str, ask: Ask) -> int:
        """The most that such a call may cost; nothing where that cannot be found."""
        if self._find is None:
            return 0
        return quote(self._find(name), ask, len(child_request(ask)))

    def let_out(self, parent: Call, callee: ClientCallee, *, auth: str | None) -> ClientLeave:
        """What a call past the gateway may carry; the operator says who is listed."""
        del auth
        return self._connected()[0].let_out(parent, callee)

    def _connected(self) -> tuple[Admission, Journal]:
        if self._parts is None:
            raise RuntimeError("dispatching was used before it was connected")
        return self._parts


def _settle(call: Call, events: Sequence[Event]) -> None:
    """Give back to the allowance what the child did not spend; an unknown cost is all of it."""
    allowance = call.allowance
    if allowance is None or not events or not is_terminal(events[-1]):
        return
    usage = next((event for event in events if type(event) is Usage), None)
    outbound = [
        read_outbound_event(event.payload, 0)
        for event in events
        if type(event) is Extension and event.name == OUTBOUND_CALL
    ]
    counted = 0 if usage is None else (usage.tokens_in or 0) + (usage.tokens_out or 0)
    calls, tokens = used_of(call, outbound, counted)
    if call.known:  # what was used then is counted here for the first time
        calls = max(calls, tally(call.carnet.depth, events).calls)
        allowance.use(counted)
    money = 0
    if usage is not None and usage.cost is not None:
        money = call.set_aside - usage.cost
        money = money if call.known else max(0, money)
    most_calls, most_tokens = call.granted
    below = max(0, tokens - counted)  # by those that the callee has called
    allowance.tokens_used += below
    allowance.note(below)
    allowance.give_back(Aside(money, most_calls - calls, most_tokens - below))
    if allowance.name == CALL + call.record.key.hex():
        allowance.close()
