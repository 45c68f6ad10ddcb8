"""A model as a loop asks it, whatever its provider's interface is called.

Law 1. A model says what it says, and ends, or raises an `Upstream` error that tells the cause. What
       comes of that is for whoever asks it.
Law 2. How it is to answer has the names of chat completions (`core.messages.parameters`), whatever
       its provider calls them. What a provider has no word for is left out.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct, field

from carnet.core.messages.events import Done, Message
from carnet.core.messages.output import Sink
from carnet.core.messages.parameters import Tool


class Recall(Struct):
    """What a turn knows of what its model could no longer read: kept from one ask to the next."""

    count: int = 0  # messages that are summed up
    text: str = ""  # in which words


class ModelAsk(Struct, frozen=True, kw_only=True):
    """What a model is asked: all that was said, and the tools it may want."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    schema: dict[str, Any] | None = None  # of the JSON that the answer is to be
    parameters: Mapping[str, Any] = {}  # how to answer: temperature, tool_choice and so on
    correlation: str = ""  # the name of the request that it is asked for
    most_tokens: int | None = None  # of the answer, where who pays has no more of them left
    recall: Recall = field(default_factory=Recall)  # of the turn that it is asked in


class LanguageModel(Protocol):
    """One model."""

    async def __call__(self, ask: ModelAsk, sink: Sink, /) -> Done:
        """Ask it: text as it comes, tool calls when they are whole, and what was used."""
