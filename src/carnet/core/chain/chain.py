"""Where a call stands in its chain, in the words of whoever answers it."""

from msgspec import Struct


class Chain(Struct, frozen=True, kw_only=True):
    """Which hop of how many this is. Hop 0 was called by a person or a front end, and no agent."""

    hop: int
    cap: int  # the last hop that is still answered

    @property
    def hops_left(self) -> int:
        """How many may still follow."""
        return max(0, self.cap - self.hop)

    @property
    def is_final(self) -> bool:
        """Whether it may answer but not call on."""
        return self.hop >= self.cap
