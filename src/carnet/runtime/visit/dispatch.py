"""How an agent calls another agent: the gate, then the journal.

Law. A child is admitted like any call, under its own turn id; if that turn has run before, its
recorded answer is given and nothing runs again.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Final

from carnet.core.call import Ask, Call
from carnet.core.messages.events import RECORDED, Event, Extension, Usage
from carnet.ports.calls.admission import Admission, ClientCallee, ClientLeave
from carnet.ports.calls.agent import Journal
from carnet.runtime.stream import closing

_RECORDED: Final = Extension(RECORDED, None)  # said before the answer


class Dispatching:
    """Admits children and runs them. Its parts are given later: agents need it to be built."""

    def __init__(self) -> None:
        """Wait for `connect`."""
        self._parts: tuple[Admission, Journal] | None = None

    def connect(self, admission: Admission, journal: Journal) -> None:
        """Give the gate and the journal behind it."""
        self._parts = (admission, journal)

    async def __call__(
        self, parent: Call, name: str, ask: Ask, *, index: int, auth: str
    ) -> AsyncIterator[Event]:
        """Admit the child and give its events as they come."""
        admission, journal = self._connected()
        call = await admission.admit_child(parent, name, ask, index=index, auth=auth)
        if call.known:
            yield _RECORDED
        async with closing(journal.batches(call)) as batches:
            async for batch in batches:
                _settle(call, batch)
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

    def let_out(self, parent: Call, callee: ClientCallee, *, auth: str | None) -> ClientLeave:
        """What a call past the gateway may carry; the operator says who is listed."""
        del auth
        return self._connected()[0].let_out(parent, callee)

    def _connected(self) -> tuple[Admission, Journal]:
        if self._parts is None:
            raise RuntimeError("dispatching was used before it was connected")
        return self._parts


def _settle(call: Call, events: Sequence[Event]) -> None:
    """Give back to the allowance what the child did not cost; an unknown cost is all of it."""
    if call.allowance is None:
        return
    for event in events:
        if type(event) is Usage and event.cost is not None:
            call.allowance.give_back(max(0, call.set_aside - event.cost))
