"""What of a conversation a model is shown that can read only so much.

Law 1. Whole exchanges are left out, the oldest first: what somebody said, and all that came of it.
       Of the newest one, the oldest rounds of tools are. A call and its results stay together.
Law 2. What instructs the model, what was said last and the newest of what came of it are always
       kept. Where that is too long its provider says so, which is an end of its own.
Law 3. Whoever reads the answer, and the log, are told when a conversation is nearly as long as it
       may be, and when something was left out: by `context_window`, once for each.
Law 4. What is left out may be summed up first (`engine.summary`), and has room for that.
Law 5. Lengths are estimates: a quarter of the characters, and some for every message.
"""

import logging
from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.messages.events import CONTEXT_WINDOW, Done, Extension, Message
from carnet.core.messages.output import Sink
from carnet.core.messages.parameters import Tool
from carnet.engine.history import exchanges
from carnet.engine.summary import MOST_SUMMARY, SYSTEM, shown, sum_up
from carnet.ports.engine.model import LanguageModel, ModelAsk
from carnet.wire.grammar import json

logger = logging.getLogger("carnet.engine")

THRESHOLD: Final = 0.8  # of what a model can read, from which on it is told
CHARACTERS: Final = 4  # of a token
MESSAGE_TOKENS: Final = 6  # beside its words
PART_TOKENS: Final = 1500  # of an image or a file
RESERVED_TOKENS: Final = 8000  # for an answer whose greatest length is not known
RESERVED_SHARE: Final = 4  # and never more than this part of all

Unit = list[Message]


class FittedMessages(Struct, frozen=True, kw_only=True):
    """What is shown of a conversation, and how long it was."""

    messages: tuple[Message, ...]
    before: int  # tokens, of all of it
    after: int  # tokens, of what is shown
    budget: int  # tokens that fit
    gone: tuple[Message, ...] = ()

    @property
    def left_out(self) -> int:
        """How many messages are not shown."""
        return len(self.gone)

    @property
    def is_near(self) -> bool:
        """Whether somebody is to be told."""
        return self.before >= THRESHOLD * self.budget

    def written(self) -> dict[str, Any]:
        """What is told."""
        return {
            "estimated_tokens": self.before,
            "shown_tokens": self.after,
            "budget_tokens": self.budget,
            "ratio": round(self.before / self.budget, 3),
            "threshold": THRESHOLD,
            "managed": self.left_out > 0,
            "left_out": self.left_out,
        }


class WindowedModel:
    """A model that is shown no more than it can read."""

    def __init__(
        self,
        model: LanguageModel,
        *,
        name: str,
        window: int,
        max_output: int | None = None,
        sums_up: bool = False,
    ) -> None:
        """`window` is what it can read and write together, in tokens.

        `sums_up`: it is asked for a summary of what it cannot read.
        """
        self._model = model
        self._name = name
        self._budget = max(1, window - reserved(window, max_output))
        self._sums_up = sums_up

    async def __call__(self, ask: ModelAsk, sink: Sink, /) -> Done:
        """Ask it; what did not fit was left out."""
        fixed = tokens_of_tools(ask.tools)
        fitted = fit(ask.messages, fixed, self._budget)
        if fitted.left_out and self._sums_up:  # the summary is to fit in as well
            room = fixed + MOST_SUMMARY // CHARACTERS
            fitted = replace(fit(ask.messages, room, self._budget), before=fitted.before)
        if fitted.is_near:
            self._note(fitted, ask.correlation)
            await sink.write(Extension(CONTEXT_WINDOW, fitted.written()))
        if fitted.left_out:
            # What was kept of answers belongs to what stood before them.
            plain = tuple([replace(each, metadata=None) for each in fitted.messages])
            summary = await self._summary(fitted, ask, sink)
            ask = replace(ask, messages=shown(plain, summary) if summary else plain)
        return await self._model(ask, sink)

    async def _summary(self, fitted: FittedMessages, ask: ModelAsk, sink: Sink) -> str:
        if not self._sums_up:
            return ""
        most = max(CHARACTERS, self._budget * CHARACTERS // 2)
        return await sum_up(self._model, fitted.gone, ask, sink, most=most)

    def _note(self, fitted: FittedMessages, correlation: str) -> None:
        words = f"{fitted.before} of {fitted.budget} tokens"
        if fitted.left_out:
            words = f"{words}; {fitted.left_out} messages left out, {fitted.after} tokens shown"
        logger.warning(
            "conversation fills the window of its model",
            extra={"correlation_id": correlation, "model": self._name, "detail": words},
        )


def fit(messages: Sequence[Message], fixed: int, budget: int) -> FittedMessages:
    """As much of a conversation as fits; `fixed` is what else a model is shown."""
    units = [unit for unit, _ in exchanges(messages) if unit]
    lengths = [sum(map(tokens_of, unit)) for unit in units]
    before = after = fixed + sum(lengths)
    left_out: set[int] = set()
    for group in _droppable(units):
        if after <= budget:
            break
        left_out.update(group)
        after -= sum(lengths[place] for place in group)
    kept = [m for place, unit in enumerate(units) if place not in left_out for m in unit]
    gone = [m for place in sorted(left_out) for m in units[place]]
    return FittedMessages(
        messages=tuple(kept),
        before=before,
        after=after,
        budget=budget,
        gone=tuple(gone),
    )


def tokens_of(message: Message) -> int:
    """How long a message is, about."""
    characters, others = 0, 0
    for part in message.parts:
        if isinstance(part, str):
            characters += len(part)
        else:
            others += PART_TOKENS
    for call in message.tool_calls:
        characters += len(call.name) + len(call.arguments)
    return -(-characters // CHARACTERS) + MESSAGE_TOKENS + others


def tokens_of_tools(tools: Sequence[Tool]) -> int:
    """How long the tools are that a model is told of, about."""
    return sum(-(-len(json.write(tool.written())) // CHARACTERS) for tool in tools)


def reserved(window: int, max_output: int | None) -> int:
    """What is left for the answer."""
    most = window // RESERVED_SHARE
    return min(RESERVED_TOKENS, most) if max_output is None else min(max_output, most)


def _droppable(units: Sequence[Unit]) -> Iterator[list[int]]:
    """What may be left out, by the places of units, in the order in which it is."""
    places = [place for place, unit in enumerate(units) if unit[0].role not in SYSTEM]
    asked = [place for place in places if units[place][0].role == "user"]
    last = asked[-1] if asked else -1
    exchange: list[int] = []
    for place in places:
        if place in asked:
            if exchange:
                yield exchange
            exchange = []
        if place >= last:
            break
        exchange.append(place)
    yield from ([place] for place in places if last < place < places[-1])
