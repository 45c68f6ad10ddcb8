"""What all dialogues of one driver share."""

import asyncio

from msgspec import Struct

from carnet.ports.calls.dialogues import Dialogues
from carnet.ports.world.clock import Clock, Ids
from carnet.runtime.dialogue.callees import Speakers
from carnet.runtime.threads import Threads


class DialogueParts(Struct, frozen=True, kw_only=True, eq=False):
    """The clock, the journal and the rest that a run is driven with."""

    clock: Clock
    ids: Ids
    callees: Speakers
    journal: Dialogues | None = None
    abort: asyncio.Event | None = None
    streams: bool = True  # somebody reads the text as it comes
    allow_changes: bool = False  # a run may go on under another definition
    currency: str = "credits"
    threads: Threads | None = None  # where plain functions decide; None: here, as they are called

    def steady(self) -> float:
        """Seconds of the clock that deadlines are told by."""
        return self.clock.steady_us() / 1_000_000


def is_over(deadline: float | None, parts: DialogueParts) -> bool:
    """Whether a time is over."""
    return deadline is not None and parts.steady() >= deadline
