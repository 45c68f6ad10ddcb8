"""An agent that speaks as it thinks: each yield reaches the caller at once."""

import asyncio
from collections.abc import AsyncIterator

import carnet


@carnet.agent("countdown")
async def countdown(visit: carnet.Visit) -> AsyncIterator[str]:
    """Count down from the number in the message."""
    for number in range(int(visit.text), 0, -1):
        yield f"{number} "
        await asyncio.sleep(0.01)
    yield "go"
