"""Where a participant writes during one attempt at its turn.

Law 1. An attempt that has ended takes nothing more: who was let go speaks to nobody.
Law 2. What it costs is what it says, what those whom it called say, or what its tokens cost; and
       unknown where nobody says anything.
Law 3. What is said is bounded: an answer that never ends is a failure.
"""

import asyncio
from typing import Any, Final

from carnet.core.call import Price
from carnet.core.messages.events import CHILD, RESULT, Data, Event, Extension, Text, Usage
from carnet.core.messages.outbound_call import OutboundCall
from carnet.errors import Cancelled, ProviderError
from carnet.wire.grammar import json

MOST_CHARACTERS: Final = 4_000_000  # of one turn


class AttemptOutput:
    """What one attempt says and uses."""

    def __init__(self, *, price: Price | None = None, currency: str = "credits") -> None:
        """`price` is that of tokens whose cost nobody says; other currencies are unknown costs."""
        self.changed = asyncio.Event()
        self.tokens_in: int | None = None
        self.tokens_out: int | None = None
        self._price = price
        self._currency = currency
        self._cost: int | None = None
        self._children: int | None = None
        self._texts: list[str] = []
        self._values: list[Any] = []
        self._size = 0
        self._shown = 0
        self._is_over = False

    async def write(self, event: Event, /) -> None:
        """Take an event that is no end."""
        if self._is_over:
            raise Cancelled("the turn has ended")
        match event:
            case Text(text=text):
                self._size += len(text)
                if self._size > MOST_CHARACTERS:
                    raise ProviderError(f"more than {MOST_CHARACTERS} characters in one turn")
                self._texts.append(spelled(text))
                self.changed.set()
            case Data(value=value):
                self._values.append(value)
            case Extension():
                self._note(event)
            case _:
                pass

    def _note(self, event: Extension) -> None:
        """Take what is beside the text: a result, and what a call has cost that was made."""
        if event.name == RESULT:
            self._values.append(event.payload)
        elif event.name == CHILD and isinstance(event.payload, dict):
            self._children = (self._children or 0) + int(event.payload.get("cost") or 0)

    def usage(self, usage: Usage, /) -> None:
        """Take what was used; several of them add up."""
        if self._is_over:
            return
        if usage.tokens_in is not None:
            self.tokens_in = (self.tokens_in or 0) + _counted(usage.tokens_in, "tokens_in")
        if usage.tokens_out is not None:
            self.tokens_out = (self.tokens_out or 0) + _counted(usage.tokens_out, "tokens_out")
        if usage.cost is not None and usage.currency in {None, self._currency}:
            self._cost = (self._cost or 0) + _counted(usage.cost, "cost")

    def called(self, call: OutboundCall, /) -> None:
        """Take note of a call to another organisation; one that never left has cost nothing."""
        if call.cost == 0 and self._cost is None:
            self._cost = 0

    def mark(self) -> int:
        """How far it is."""
        return len(self._texts)

    def back(self, mark: int, /) -> bool:
        """Take back what was said since then, unless somebody has seen it."""
        if self._shown > mark:
            return False
        del self._texts[mark:]
        return True

    def close(self) -> None:
        """Take nothing more."""
        self._is_over = True

    def take(self) -> str:
        """What was said since the last time."""
        text = "".join(self._texts[self._shown :])
        self._shown = len(self._texts)
        return text

    @property
    def text(self) -> str:
        """All that was said; where there was no text, the values that were given."""
        text = "".join(self._texts).strip()
        return text or "\n".join([json.write_text(value) for value in self._values])

    @property
    def cost(self) -> int | None:
        """What it has cost, in micro-units; None where nobody says."""
        if self._cost is None and self._price is not None and self._has_tokens:
            return self._price.of(self.tokens_in or 0, self.tokens_out or 0) + (self._children or 0)
        if self._cost is None:
            return self._children
        return self._cost + (self._children or 0)

    @property
    def _has_tokens(self) -> bool:
        return self.tokens_in is not None or self.tokens_out is not None


def _counted(number: object, what: str) -> int:
    """A number that adds up; nobody lowers a bill, and nothing is rounded."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise TypeError(f"the {what} of a Usage is a whole number from 0, money in micro-units")
    return number


def spelled(text: str) -> str:
    """Text that can be written down: what no encoding has is a question mark."""
    return text if text.isascii() else text.encode(errors="replace").decode()
