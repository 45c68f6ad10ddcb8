"""What an agent does its work with, the same for all its visits."""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from msgspec import Struct

from carnet.core.call import Call
from carnet.core.dialogue.events import ConversationResult
from carnet.core.messages.events import Waiting
from carnet.core.messages.output import Output
from carnet.ports.calls.questions import Surface
from carnet.ports.calls.steps import Progress, Steps
from carnet.ports.engine.model import LanguageModel
from carnet.ports.trust.people import People
from carnet.runtime.threads import Threads


class Converses(Protocol):
    """Has a conversation speak within a turn."""

    async def __call__(
        self, call: Call, out: Output, participants: Any, options: Mapping[str, Any], ordinal: int
    ) -> ConversationResult | Waiting:
        """What it came to, or what somebody in it asks for; `ordinal` counts them, from 1."""


class VisitMeans(Struct, frozen=True, kw_only=True, eq=False):
    """Where it keeps its steps and tells its progress, its threads, and whom it may ask."""

    steps: Steps | None = None
    progress: Progress | None = None
    threads: Threads | None = None
    models: Mapping[str, LanguageModel] = {}
    converses: Converses | None = None
    surface: Surface | None = None  # None: questions are shown when its turn waits
    domain: str = ""  # ours; empty: agents have names alone
    people: People | None = None  # whose addresses it is told


NO_MEANS: Final = VisitMeans()
