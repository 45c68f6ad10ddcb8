"""What the tests of this folder share."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvloop

from carnet.runtime.egress.addresses import EgressRoute
from carnet.runtime.egress.connection import Connection
from carnet.runtime.egress.dialler import Dialler
from tests.runtime.peer import LONG

USUAL_SECONDS = 3  # that a connection has; a test that is about its time gives it less


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection has the time that it takes where both its ends are on a busy machine."""
    dial = Dialler.dial

    async def dial_in_time(dialler: Dialler, route: EgressRoute, seconds: float) -> Connection:
        return await dial(dialler, route, LONG if seconds >= USUAL_SECONDS else seconds)

    monkeypatch.setattr(Dialler, "dial", dial_in_time)


@pytest.fixture(params=["asyncio", "uvloop"])
def played(request: pytest.FixtureRequest) -> Any:
    """Plays a scene in a loop of each kind, in a thread of its own."""
    run: Any = asyncio.run if request.param == "asyncio" else uvloop.run

    async def play(scene: Callable[[], Awaitable[None]]) -> None:
        await asyncio.to_thread(run, scene())

    return play
