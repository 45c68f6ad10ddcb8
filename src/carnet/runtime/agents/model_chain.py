"""Several models, asked one after the other until one of them answers.

Law 1. The next one is asked for a failure of the provider alone: it is not there, too busy, or has
       no proper answer. What refuses the question itself (its length, a parameter, what it says,
       our key for it) is final: nobody else is asked what one of them would not answer.
Law 2. Once something of an answer was passed on, it is the answer: nothing visible is said twice.
Law 3. What every one of them has used is told, also of those that failed. Which was asked in the
       place of which, and why, is in the log under the name of the request.
"""

import logging
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from carnet.core.messages.events import Done, Event, Extension, Usage
from carnet.core.messages.output import Sink
from carnet.errors import (
    CarnetError,
    CircuitOpen,
    ModelQuotaExceeded,
    ModelRateLimited,
    ProviderError,
    ProviderTimeout,
    ProviderUnavailable,
)
from carnet.ports.engine.model import LanguageModel, ModelAsk

logger = logging.getLogger("carnet.runtime")

OF_PROVIDER: Final = (
    *(ProviderUnavailable, ProviderTimeout, ProviderError),
    *(ModelRateLimited, ModelQuotaExceeded, CircuitOpen),
)


class NamedModel(Struct, frozen=True, eq=False):
    """A model, and what the configuration calls it."""

    name: str
    model: LanguageModel


class ModelChain:
    """A model, and those that are asked in its place."""

    def __init__(self, models: Sequence[NamedModel]) -> None:
        """In the order in which they are asked; there is at least one."""
        self._models = tuple(models)

    async def __call__(self, ask: ModelAsk, sink: Sink, /) -> Done:
        """The answer of the first that gives one."""
        for here, after in zip(self._models, (*self._models[1:], None), strict=True):
            passing = _WatchedSink(sink)
            try:
                return await here.model(ask, passing)
            except OF_PROVIDER as error:
                if after is None or passing.has_passed:
                    raise
                _note(ask, here, after, error)
        raise AssertionError("the last one returns or raises")


class _WatchedSink:
    """Passes everything on, and knows whether an answer has begun."""

    __slots__ = ("_sink", "has_passed", "usage")

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.usage = sink.usage
        self.has_passed = False

    async def write(self, event: Event, /) -> None:
        self.has_passed = self.has_passed or not isinstance(event, Extension | Usage)
        await self._sink.write(event)


def _note(ask: ModelAsk, here: NamedModel, after: NamedModel, error: CarnetError) -> None:
    logger.warning(
        "model failed, another one is asked",
        extra={
            "correlation_id": ask.correlation,
            "model": here.name,
            "code": error.code,
            "detail": f"{after.name} is asked instead: {error}",
        },
    )
