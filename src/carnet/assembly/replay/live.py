"""Somebody who is asked anew in the place of a participant of a recorded run.

Law 1. It is asked as a driver without a gateway asks: by an address, with the client's own key. No
       credential of the recorded run leaves, and its payer is nobody's business there.
Law 2. It is a run of its own, at the depth of the turn that it stands for: nothing that the other
       side has kept of the recorded one answers it.
"""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from carnet.core.call import Ask, Call
from carnet.core.chain.turn_id import OUR_RUNS
from carnet.core.messages.events import Event, Failed
from carnet.core.people.identity import Secret
from carnet.errors import CarnetError
from carnet.runtime.dialogue.callees import Callees
from carnet.runtime.dialogue.definition import name_of
from carnet.runtime.dialogue.place import CalledTurn, DialoguePlace
from carnet.runtime.replay.offline import live
from carnet.runtime.replay.substitutes import ReplayOutput
from carnet.runtime.system import SystemClock, SystemIds


class LiveParticipant:
    """An agent at an address. An asynchronous context."""

    def __init__(self, address: str, *, token: Secret | None, currency: str) -> None:
        """`token` is what it knows us by; amounts are told in `currency`."""
        self._address = address
        self._token = token
        self._clock, self._ids = SystemClock(), SystemIds()
        self._callees = Callees(clock=self._clock, ids=self._ids, currency=currency)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._callees.close()

    async def ask(self, call: Call, ask: Ask) -> Sequence[Event]:
        """What it says to what a recorded turn was asked."""
        name, depth = name_of(self._address) or "live", max(0, call.carnet.depth - 1)
        place = DialoguePlace(
            run_id=f"{OUR_RUNS}{self._ids.ordered_uuid()}",
            depth=depth,
            last_depth=max(depth + 1, call.carnet.bound(depth + 1)),
        )
        turn = CalledTurn(
            index=0,
            speaker=name,
            turn_id=place.turn_id(0, name),
            attempt=1,
            ask=ask,
            forwards=False,
            deadline=None,
            at=self._clock.wall_us(),
        )
        out = ReplayOutput()
        with live():
            try:
                agent = self._callees.elsewhere(self._address, token=self._token)
                end = await agent(place.call(agent, turn), out)
            except CarnetError as error:
                return [*out.events, Failed.of(error)]
        return [*out.events, end]
