"""Organisations that are no peers, and the keys that they showed when we first met them (R42)."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

KEY_BYTES = 32


class Stranger(Struct, frozen=True, kw_only=True):
    """What is remembered of one."""

    domain: str
    keys: frozenset[bytes]  # that it published; none where it published none
    first_seen: int  # microseconds since the epoch
    offered: frozenset[bytes] | None = None  # others, which nobody has confirmed yet
    confirmed_by: int | None = None  # the person who has confirmed a change; 0: at this machine


class Strangers(Protocol):
    """Those of one store."""

    async def find(self, domain: str) -> Stranger | None:
        """One that we have met."""

    async def meet(
        self, domain: str, keys: frozenset[bytes], *, by: str, most: int
    ) -> Stranger | None:
        """Remember one at first use; who was faster has it. None where `by` has met `most`."""

    async def follow(self, domain: str, before: frozenset[bytes], now: frozenset[bytes]) -> None:
        """Remember what it publishes now, if what was remembered is still so."""

    async def note_offer(self, domain: str, keys: frozenset[bytes]) -> None:
        """Note other keys that it showed, for a person to confirm."""

    async def confirm(self, domain: str, person: int) -> Stranger | None:
        """Take over the keys that were offered; None where none were."""

    async def list(self) -> Sequence[Stranger]:
        """All that we have met."""
