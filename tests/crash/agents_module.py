"""The agent whose tasks are killed; the text of this module becomes a gateway's agents.py.

A task takes two steps, each of which leaves a line in a file, also if its process dies just then. A
test holds it between them, or has it fail at its end.
"""

import asyncio
import os
from pathlib import Path

import carnet

HERE = Path(__file__).parent
HELD = HERE / "held"


async def echo(visit: carnet.Visit) -> str:
    return visit.text


async def job(visit: carnet.Visit) -> str:
    run = visit.carnet.run
    first = await visit.step("first", leave, visit, "first")
    visit.progress(0.5)
    while (HELD / run).exists():  # noqa: ASYNC110  another process lets it go
        await asyncio.sleep(0.02)
    if visit.text == "nap":
        await asyncio.sleep(0.05)
    second = await visit.step("second", leave_later, visit, "second")
    if visit.text == "fail":
        raise RuntimeError("after both steps")
    return f"{first} {second}"


def leave(visit: carnet.Visit, step: str) -> str:
    """Leave a line, as what is done elsewhere would."""
    with (HERE / "steps.txt").open("a") as trace:
        trace.write(f"{visit.carnet.run} {step} {visit.idempotency_key(step)} {os.getpid()}\n")
    return step


async def leave_later(visit: carnet.Visit, step: str) -> str:
    await asyncio.sleep(0)
    return leave(visit, step)
