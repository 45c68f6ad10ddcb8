"""Has this address sent too many wrong tokens?

What is bounded is the work and the log that guessing costs us. A token has 256 bits: it is not the
number of guesses that keeps it.

Law 1. Only failures are refused. A valid token passes from every address at any time, so that
       whoever shares an address with a guesser, or forges one, locks nobody out.
Law 2. The table is bounded: the address that failed least recently is forgotten first.
"""

import ipaddress
import math
from typing import Final

from carnet.core.memo import Memo
from carnet.errors import TooManyFailures

WINDOW_SECONDS: Final = 60.0
MOST_SOURCES: Final = 10_000
HOME_BITS: Final = 64  # of an IPv6 address: who has one has all of its network


class Failures:
    """The wrong tokens of the last minute, by source address."""

    def __init__(self, limit: int) -> None:
        """`limit` is how many an address may send within a minute."""
        self.limit = limit
        # When the count began, and the count.
        self._since: Memo[str, tuple[float, int]] = Memo(MOST_SOURCES)
        self._over_until = 0.0
        self.any = False  # whether any address is over its limit, or was when it was last checked

    def check(self, address: str, now: float) -> None:
        """Refuse if this address is over its limit."""
        began, count = self._since.get(source(address), (now, 0))
        left = began + WINDOW_SECONDS - now
        if count >= self.limit and left > 0:
            raise TooManyFailures(limit=self.limit, retry_after=math.ceil(left))
        self.any = now < self._over_until

    def note(self, address: str, now: float) -> None:
        """Count a failure; refuse if there were too many before it."""
        self.check(address, now)
        key = source(address)
        began, count = self._since.get(key, (now, 0))
        if now - began >= WINDOW_SECONDS:
            began, count = now, 0
        self._since.keep(key, (began, count + 1))
        if count + 1 >= self.limit:
            self.any = True
            self._over_until = max(self._over_until, began + WINDOW_SECONDS)

    def __len__(self) -> int:
        return len(self._since)


def source(address: str) -> str:
    """What an address is counted as."""
    if ":" not in address:
        return address
    network = ipaddress.ip_network((address.partition("%")[0], HOME_BITS), strict=False)
    return str(network.network_address)
