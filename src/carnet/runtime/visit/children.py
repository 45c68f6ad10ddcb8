"""The calls that are made out of one turn: their places and their names.

Law 1. The ordinal of a call out is fixed when it is made, so that a turn which runs again makes the
       same calls under the same ids.
Law 2. There is one allocator of them a turn, whoever makes the calls: no two share an id.
"""

from copy import copy
from hashlib import blake2b
from itertools import count
from typing import Final

from msgspec import Struct

from carnet.core.chain.carnet import Carnet
from carnet.core.messages.events import CHILD, Event, Extension, Usage
from carnet.core.messages.outbound_call import OutboundCall
from carnet.core.people.address import speaker_of
from carnet.errors import CarnetError
from carnet.runtime.receipts.outbound_calls import again, noted_receipts, tally

COUNTED: Final = 1_000_000  # places of tool calls are below
_ORDINALS: Final = 999_000_000  # so that an ordinal has nine digits at the most


class ChildCall(Struct, frozen=True, kw_only=True):
    """One call out of a turn."""

    ordinal: int
    to: str  # the name or address that it goes to
    made_in: Carnet  # the document of the turn that makes it
    key: bytes  # of that turn

    @property
    def depth(self) -> int:
        """How deep it stands."""
        return self.made_in.depth + 1

    def cost(self, usage: Usage, noted: list[Event], *, is_ours: bool) -> Extension:
        """What it has cost whoever pays for this turn, and how many calls it took.

        `noted` is what its own turn notes of calls; `is_ours` says that this turn's payer pays.
        """
        counted = tally(self.depth, noted)
        payload = {
            "to": self.to,
            "index": self.ordinal,
            "cost": (usage.cost or 0) if is_ours else 0,
            "calls": counted.calls,
            "deepest": counted.deepest,
            **noted_receipts(counted),
            **again(noted),
        }
        return Extension(CHILD, payload)

    def refusal(self, refused: CarnetError) -> OutboundCall:
        """The record of a call that was refused before it left."""
        return OutboundCall(
            ordinal=0,
            child_turn=self.made_in.child_turn(self.ordinal, speaker_of(self.to), self.key),
            to=self.to,
            depth=self.depth,
            state="refused",
            code=refused.code,
        )


class ChildCalls:
    """Gives the calls out of one turn their places: there is one a turn, whoever makes them."""

    __slots__ = ("_carnet", "_conversations", "_key", "_next", "fixed")

    def __init__(self, carnet: Carnet, key: bytes) -> None:
        """`carnet` is the document of the turn that makes them, `key` that of its record."""
        self._carnet = carnet
        self._key = key
        self._next = count()  # threads may take some too
        self._conversations = count(1)
        self.fixed: int | None = None  # the place of a call that is made again

    def take(self, to: str) -> ChildCall:
        """The next call, to an agent by its name or address."""
        ordinal = next(self._next) if self.fixed is None else self.fixed
        return ChildCall(ordinal=ordinal, to=to, made_in=self._carnet, key=self._key)

    def take_ordinal(self) -> int:
        """The place of the next call, for whoever makes it past us."""
        return next(self._next)

    def skip_to(self, ordinal: int) -> None:
        """Give the next call this place, which whoever makes it has fixed."""
        self._next = count(ordinal)

    def begin(self, ordinal: int) -> None:
        """Count calls and conversations from here."""
        self._next, self._conversations = count(ordinal), count(ordinal + 1)

    def take_conversation(self) -> int:
        """The place of the next conversation, from 1."""
        return next(self._conversations)

    def scoped(self, part: str) -> "ChildCalls":
        """Places of their own for a part of the turn, above all that are counted in it."""
        other = copy(self)
        other.begin(scoped_ordinal(part.encode()))
        return other


def scoped_ordinal(part: bytes) -> int:
    """A place among the calls out of a turn that is above all that are counted."""
    return COUNTED + int.from_bytes(blake2b(part, digest_size=8).digest()) % _ORDINALS
