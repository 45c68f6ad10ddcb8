"""What the tests of this folder share."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvloop


@pytest.fixture(params=["asyncio", "uvloop"])
def played(request: pytest.FixtureRequest) -> Any:
    """Plays a scene in a loop of each kind, in a thread of its own."""
    run: Any = asyncio.run if request.param == "asyncio" else uvloop.run

    async def play(scene: Callable[[], Awaitable[None]]) -> None:
        await asyncio.to_thread(run, scene())

    return play
