"""A model of the configuration, as the agent that answers a turn may ask it.

Law 1. It is asked as another agent is: text or a whole conversation, a system message, parameters,
       tools that it may want called. What is asked is judged before it leaves.
Law 2. What it used is counted in the turn that asked, as it is said, however the answer ends.
Law 3. A turn that is over, or was taken from whoever it was for, asks nobody any more.
Law 4. Whoever stops reading ends the answer. It is no step: who runs again asks again, unless it
       is made one with `visit.step`.
"""

from collections.abc import AsyncIterator, Mapping
from difflib import get_close_matches
from typing import Any, Protocol, Unpack

from msgspec.structs import replace

from carnet.core.messages.events import Done, Event, Text, ToolCall, Usage, joined_text
from carnet.core.messages.output import Sink
from carnet.core.messages.parameters import Parameters, Tool
from carnet.ports.engine.model import LanguageModel, ModelAsk
from carnet.runtime.stream import closing
from carnet.runtime.visit.callee import Prompt, asked
from carnet.runtime.visit.pulled import pulled

NONE = "there are no models: write a section [models.NAME] into carnet.toml"


class AsksModels(Protocol):
    """The turn that a model is asked out of."""

    def check(self) -> None:
        """Raise Cancelled if nothing may be done for it any more."""

    def usage(self, *, tokens_in: int = 0, tokens_out: int = 0) -> None:
        """Count tokens."""


class VisitModel:
    """A model, as this turn may ask it."""

    def __init__(self, visit: AsksModels, model: LanguageModel, correlation: str) -> None:
        """Made by `Visit.model`; `correlation` is the name of the request that it is asked for."""
        self._visit = visit
        self._model = model
        self._correlation = correlation

    def __call__(
        self, prompt: Prompt, *, system: str | None = None, **parameters: Unpack[Parameters]
    ) -> AsyncIterator[Event]:
        """Ask it; gives text as it comes, and `ToolCall`s when they are whole.

        Raises a CarnetError when its provider fails or refuses.

        Args:
            prompt: What is said: text, or the whole conversation as `carnet.Message`s or as
                objects of OpenAI's interface.
            system: What it is instructed with, before the conversation.
            parameters: How it is to answer: `temperature`, `tools`, `response_format` and so on.
        """
        return self._events(self._asked(prompt, system, parameters))

    async def ask(
        self, prompt: Prompt, *, system: str | None = None, **parameters: Unpack[Parameters]
    ) -> str:
        """Ask it and wait for the whole text of its answer. Takes what a call of it takes."""
        found = self._events(self._asked(prompt, system, parameters))
        return joined_text([event async for event in found])

    def _asked(self, prompt: Prompt, system: str | None, parameters: Mapping[str, Any]) -> ModelAsk:
        ask = asked(prompt, system, parameters)
        members = {name: value for name, value in (ask.body or {}).items() if name != "messages"}
        tools = members.pop("tools", ())
        return ModelAsk(
            # What others wrote beside a message is theirs, and nothing that a model is given.
            messages=tuple([replace(message, metadata=None) for message in ask.messages]),
            tools=tuple([Tool.of(tool) for tool in tools]),
            parameters=members,
            correlation=self._correlation,
        )

    async def _events(self, ask: ModelAsk) -> AsyncIterator[Event]:
        self._visit.check()

        async def say(sink: Sink) -> Done:
            return await self._model(ask, _CountedSink(sink, self._visit))

        async with closing(pulled(say)) as coming:
            async for event in coming:
                if isinstance(event, Text | ToolCall):
                    yield event


class _CountedSink:
    """Passes on what a model says; what it used is counted in the turn, and not passed on."""

    __slots__ = ("_visit", "write")

    def __init__(self, sink: Sink, visit: AsksModels) -> None:
        self._visit = visit
        self.write = sink.write

    def usage(self, usage: Usage, /) -> None:
        self._visit.usage(tokens_in=usage.tokens_in or 0, tokens_out=usage.tokens_out or 0)


def model_named(name: str | None, models: Mapping[str, LanguageModel]) -> LanguageModel:
    """One of the models; ValueError, in words for whoever wrote the agent."""
    if not models:
        raise ValueError(NONE)
    if name is None:
        if len(models) > 1:
            raise ValueError(f"which model? Name one of {', '.join(models)}")
        return models[next(iter(models))]
    if name not in models:
        near = get_close_matches(name, models, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(models)}."
        raise ValueError(f"there is no model {name!r}. {hint}")
    return models[name]
