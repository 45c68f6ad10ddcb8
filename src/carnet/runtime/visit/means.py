"""What an agent does its work with, the same for all its visits."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from carnet.ports.calls.steps import Progress, Steps
from carnet.ports.engine.model import LanguageModel
from carnet.runtime.threads import Threads


class VisitMeans(Struct, frozen=True, kw_only=True, eq=False):
    """Where it keeps its steps and tells its progress, its threads, and whom it may ask."""

    steps: Steps | None = None
    progress: Progress | None = None
    threads: Threads | None = None
    models: Mapping[str, LanguageModel] = {}


NO_MEANS: Final = VisitMeans()
