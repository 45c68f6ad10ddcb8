"""The clock, the dice and the name lookup of a running gateway.

This is the only module that reads a clock or draws a number. Everything else is handed a Clock or
an Ids, so that a test can hand it one of its own.
"""

import os
import secrets
import socket
import time

from carnet.runtime.threads import Threads

_dice = secrets.SystemRandom()
_EPOCH_US = (time.time_ns() - time.monotonic_ns()) // 1000  # on the monotonic clock, at the start


class SystemClock:
    """The machine's time."""

    __slots__ = ()

    def wall_us(self) -> int:
        return time.time_ns() // 1000

    monotonic = staticmethod(time.monotonic)  # read often: a call less than a method of ours

    def steady_us(self) -> int:
        return _EPOCH_US + time.monotonic_ns() // 1000


class SystemIds:
    """Names and chances from the operating system's randomness."""

    __slots__ = ()

    def uuid(self) -> str:
        # RFC 9562, version 4, by hand: the module of that name takes twice as long.
        dice = os.urandom(16).hex()
        variant = "89ab"[int(dice[16], 16) & 3]
        return f"{dice[:8]}-{dice[8:12]}-4{dice[13:16]}-{variant}{dice[17:20]}-{dice[20:]}"

    def ordered_uuid(self) -> str:
        # RFC 9562, version 7: 48 bits of milliseconds, then 74 random ones.
        time_ms = f"{time.time_ns() // 1_000_000:012x}"
        dice = os.urandom(10).hex()
        variant = "89ab"[int(dice[3], 16) & 3]
        return f"{time_ms[:8]}-{time_ms[8:]}-7{dice[:3]}-{variant}{dice[4:7]}-{dice[7:19]}"

    def token(self) -> str:
        return secrets.token_urlsafe(32)

    def fraction(self) -> float:
        return _dice.random()


class SystemLookup:
    """The system's resolver, in threads of its own.

    A name whose server never answers holds its thread for as long as the resolver pleases, also
    when nobody waits any more. So what strangers name is not looked up in the threads that our own
    calls need, nor in those of the event loop, which everybody shares.
    """

    __slots__ = ("_threads",)

    def __init__(self, at_once: int) -> None:
        self._threads = Threads(most=at_once)

    async def __call__(self, host: str, port: int, /) -> list[str]:
        """The addresses of a name; OSError if there is none."""
        look = self._threads.run
        found = await look(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(where[0]) for _, _, _, _, where in found))


def new_seed() -> bytes:
    """Thirty-two bytes that nobody can guess: the private half of a key."""
    return os.urandom(32)
