"""How an agent calls another agent: the gate, then the journal.

Law. A child is admitted like any call, under its own turn id; if that turn has run before, its
recorded answer is given and nothing runs again.
"""

from collections.abc import AsyncIterator

from carnet.core.call import Ask, Call
from carnet.core.events import Event, Usage
from carnet.ports.admission import Admission
from carnet.ports.agent import Agent
from carnet.runtime.closing import closing


class Dispatching:
    """Admits children and runs them. Its parts are given later: agents need it to be built."""

    def __init__(self) -> None:
        """Wait for `connect`."""
        self._parts: tuple[Admission, Agent] | None = None

    def connect(self, admission: Admission, agent: Agent) -> None:
        """Give the gate and the journaled agent behind it."""
        self._parts = (admission, agent)

    async def __call__(
        self, parent: Call, name: str, ask: Ask, *, index: int, auth: str
    ) -> AsyncIterator[Event]:
        """Admit the child and answer with its events."""
        if self._parts is None:
            raise RuntimeError("dispatching was used before it was connected")
        admission, agent = self._parts
        call = await admission.admit_child(parent, name, ask, index=index, auth=auth)
        async with closing(agent(call)) as events:
            async for event in events:
                if type(event) is Usage:
                    _settle(call, event)
                yield event


def _settle(call: Call, usage: Usage) -> None:
    """Give back to the allowance what the child did not cost; an unknown cost is all of it."""
    if call.allowance is not None and usage.cost is not None:
        call.allowance.give_back(max(0, call.set_aside - usage.cost))
