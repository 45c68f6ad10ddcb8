"""Where a participant writes during one attempt at its turn.

Law 1. An attempt that has ended takes nothing more: who was let go speaks to nobody.
Law 2. What it costs is what it says, what those whom it called say, or what its tokens cost; and
       unknown where nobody says anything.
Law 3. What an earlier attempt has counted, and a record answers for now, is not counted again: a
       call under its place, a conversation by what it has come to in all.
Law 4. What is said is bounded: an answer that never ends is a failure.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from carnet.core.call import Agent, Call, Price
from carnet.core.dialogue.halt import Halt
from carnet.core.messages.events import (
    AGAIN,
    CHILD,
    RESULT,
    Data,
    Done,
    End,
    Event,
    Extension,
    Failed,
    Text,
    Usage,
)
from carnet.core.messages.outbound_call import OutboundCall
from carnet.core.messages.output import Output
from carnet.errors import Cancelled, CarnetError, CircuitOpen, ProviderError, ProviderTimeout
from carnet.runtime.wrappers.timed import BY_CALLER
from carnet.wire.grammar import json

MOST_CHARACTERS: Final = 4_000_000  # of one turn
_NOTHING: Final[Mapping[str, int]] = {}


class AttemptOutput:
    """What one attempt says and uses."""

    def __init__(
        self,
        *,
        price: Price | None = None,
        currency: str = "credits",
        before: Mapping[str, int] = _NOTHING,
        left: int | None = None,
    ) -> None:
        """Take what one attempt says.

        Args:
            price: That of tokens whose cost nobody says.
            currency: Costs in another one are unknown.
            before: What earlier attempts at the turn have counted, of what a record answers for.
            left: Of the money, in micro-units, for what it has others do.
        """
        self.changed = asyncio.Event()
        self.counted: dict[str, int] = {}  # as `before`, by this one
        self._before = before
        self._left = left
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
            self._count_call(event.payload)

    def _count_call(self, payload: Mapping[str, Any]) -> None:
        name, cost = (
            f"call:{payload.get('index')}:{payload.get('to')}",
            int(payload.get("cost") or 0),
        )
        if payload.get(AGAIN) and (name in self._before or name in self.counted):
            return
        self.counted[name] = self.counted.get(name, 0) + cost
        self._children = (self._children or 0) + cost

    def most_of(self, conversation: str) -> int | None:
        """What a conversation within may come to in all; None: nothing bounds it."""
        if self._left is None:
            return None
        return max(0, self._left - (self.cost or 0) + self._before.get(conversation, 0))

    def converse(self, conversation: str, usage: Usage, *, is_kept: bool) -> None:
        """Take what a conversation within has come to; `is_kept`: with what it was before."""
        if usage.cost is not None and not self._is_over:
            before = self._before.get(conversation, 0) if is_kept else 0
            usage = replace(usage, cost=max(0, usage.cost - before))
            self.counted[conversation] = usage.cost or 0
        self.usage(usage)

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


def conversation_name(ordinal: int) -> str:
    """What is counted of a conversation within a turn is counted under this."""
    return f"conversation:{ordinal}"


def attempt_of(out: Output) -> AttemptOutput:
    """Where a participant writes: turns of dialogues call it, and nobody else."""
    if not isinstance(out, AttemptOutput):
        raise TypeError("it takes part in a conversation")
    return out


async def answered(agent: Agent, call: Call, out: AttemptOutput) -> End:
    """What an agent gives; called here, so that one that is stopped first is not called at all."""
    return await agent(call, out)


def never_left(error: CarnetError) -> bool:
    """Whether nobody was called at all."""
    return isinstance(error, CircuitOpen) or bool(error.facts.get("leaving"))


def check_end(end: End, out: AttemptOutput) -> None:
    """Raise what an answer stands for that is none."""
    if not isinstance(end, Done):
        raise end.error()
    if not out.text:
        raise ProviderError("it completed without text")


def check_halt(halted: Halt, *, is_late: bool) -> None:
    """The same of a conversation: it failed, or the turn that it speaks has to stop."""
    if halted.kind == "participant_error":
        raise Failed(halted.code or "").error()
    if halted.kind == "abort":
        raise Cancelled("the run was aborted")
    if halted.kind == "deadline" and is_late:
        raise ProviderTimeout("the time of the turn is over", by=BY_CALLER)
