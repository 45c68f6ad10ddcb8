"""The agents of a former store; what waits, waits for a file beside this one."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import carnet

OPEN = Path(__file__).parent / "open"
LOOK_SECONDS = 0.01


async def opened() -> None:
    while not OPEN.exists():  # noqa: ASYNC110  another process makes it
        await asyncio.sleep(LOOK_SECONDS)


async def echo(visit: carnet.Visit) -> str:
    return visit.text


async def words(visit: carnet.Visit) -> AsyncIterator[str]:
    for word in visit.text.split():
        yield word + " "


async def broken(_: carnet.Visit) -> str:
    raise RuntimeError("it fails")


async def twice(visit: carnet.Visit) -> str:
    return await visit.peer("echo").ask("one") + await visit.peer("paid").ask("two")


async def gated(visit: carnet.Visit) -> AsyncIterator[str]:
    (OPEN.parent / f"{visit.text}.begun").touch()
    yield "begun "
    await opened()
    yield "ended"


async def works(visit: carnet.Visit) -> str:
    first = await visit.step("first", lambda: visit.carnet.turn)
    visit.progress(0.5, "half of it")
    visit.usage(tokens_in=10, tokens_out=3)
    (OPEN.parent / f"{visit.text}.begun").touch()
    await opened()
    return f"worked {first == visit.carnet.turn}"
