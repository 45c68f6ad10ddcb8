"""What a server of tools writes, in whole lines: how much of it is read at once.

A reader of JSON holds the event loop until it has read all of a message, and so does one that looks
what is wrong with it. Both take their time by the number of values, not of bytes.

Law 1. A message has no more than `MOST_MEMBERS` values.
Law 2. A line that is too long, or has too many of them, is passed over: who waits for it waits in
       vain, and nobody else. One that seems to have no end is the last that is read.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Final

from carnet.wire.grammar.json import members_in

logger = logging.getLogger("carnet.engine")

MOST_MEMBERS: Final = 16_384  # values of one message, about
MOST_PASSED_OVER: Final = 64 * 1024 * 1024  # bytes of a line that is too long


class TooMuch(ValueError):
    """A message has more values than are read."""


async def lines_of(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The lines of a stream that can be read; what they may be long is the limit of the stream."""
    passed = 0  # bytes of the line that comes
    while passed <= MOST_PASSED_OVER:
        try:
            line = await stream.readuntil()
        except asyncio.LimitOverrunError as over:
            passed += len(await stream.readexactly(over.consumed))
            continue
        except asyncio.IncompleteReadError as ended:
            line = ended.partial
        if not line:
            return
        if passed or members_in(line, MOST_MEMBERS) > MOST_MEMBERS:
            logger.warning("server writes too much at once", extra={"detail": "passed over"})
        else:
            yield line
        passed = 0
    logger.warning("server writes too much at once", extra={"detail": "a line without an end"})


class WholeLines:
    """The body of an answer: whole lines are given on when they have been counted."""

    def __init__(self, *, are_events: bool) -> None:
        """Events are messages of their own; else the whole of it is one."""
        self._are_events = are_events
        self._waiting: list[bytes] = []  # of a line that has not ended
        self._members = 0  # of this message

    def feed(self, chunk: bytes) -> bytes:
        """What can be read by now; TooMuch where there is more than may be."""
        at = chunk.rfind(b"\n") + 1
        if not at:
            self._waiting.append(chunk)
            return b""
        whole = b"".join((*self._waiting, chunk[:at]))
        self._waiting = [chunk[at:]]
        self._count(whole)
        return whole

    def close(self) -> bytes:
        """The rest."""
        rest, self._waiting = b"".join(self._waiting), []
        self._count(rest)
        return rest

    def _count(self, whole: bytes) -> None:
        # No string of JSON goes past the end of a line, so each is counted from its beginning.
        for line in whole.splitlines():
            if self._are_events and not line:
                self._members = 0
            self._members += 1 + members_in(line, MOST_MEMBERS)
            if self._members > MOST_MEMBERS:
                raise TooMuch
