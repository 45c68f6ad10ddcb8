"""The clock, the dice and the name lookup of a running gateway.

This is the only module that reads a clock or draws a number. Everything else is handed a Clock or
an Ids, so that a test can hand it one of its own.
"""

import asyncio
import secrets
import socket
import time
import uuid

_dice = secrets.SystemRandom()


class SystemClock:
    """The machine's time."""

    __slots__ = ()

    def wall_us(self) -> int:
        return time.time_ns() // 1000

    def monotonic(self) -> float:
        return time.monotonic()


class SystemIds:
    """Names and chances from the operating system's randomness."""

    __slots__ = ()

    def uuid(self) -> str:
        return str(uuid.uuid4())

    def token(self) -> str:
        return secrets.token_urlsafe(32)

    def fraction(self) -> float:
        return _dice.random()


async def system_lookup(host: str, port: int) -> list[str]:
    """The addresses of a name, as the system's resolver gives them; OSError if there is none."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(where[0]) for _, _, _, _, where in found))
