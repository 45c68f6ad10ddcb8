"""What callers bring of the words of others.

Law. What a signature covers may be long, and whoever sends it need not be who is said to have
     signed it: it is found after everything that is cheap, and beside the loop (A73).
"""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from carnet.wire.grammar import json

T = TypeVar("T")

SHORT_BYTES: Final = 4096  # that are gone through at once


async def covered(find: Callable[[], T], item: object) -> T:
    """What the signature of an item covers."""
    return find() if len(json.write(item)) <= SHORT_BYTES else await asyncio.to_thread(find)
