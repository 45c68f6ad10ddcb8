"""What is good once."""

from typing import Protocol

from carnet.ports.calls.turns import Nonce


class SingleUses(Protocol):
    """What was used, on all replicas together."""

    async def use(self, nonce: Nonce, by: str, now: int, /) -> bool:
        """Use it; False if somebody else has. `by` may use it again, unless it is empty."""
