"""The agents of gateways that share a store; the text of this module becomes their agents.py.

Every execution, in whichever process, leaves a line in one file. `stepwise` says a word for each
step it is allowed to take, so that a test decides when something happens.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import carnet

HERE = Path(__file__).parent


def note(visit: carnet.Visit, what: str = "began") -> None:
    with (HERE / "ran.txt").open("a") as trace:
        trace.write(f"{what} {visit.carnet.run} {visit.call.record.n}\n")


async def echo(visit: carnet.Visit) -> str:
    note(visit)
    return visit.text


async def stepwise(visit: carnet.Visit) -> AsyncIterator[str]:
    """Say the number of each step once it is allowed; the last one says so."""
    note(visit)
    steps = HERE / "steps" / visit.carnet.run
    number = 0
    try:
        while not (steps / "end").exists() or (steps / str(number)).exists():
            if (steps / str(number)).exists():
                yield f"{number} "
                number += 1
            else:
                await asyncio.sleep(0.01)
    finally:
        note(visit, "left")


async def asking(visit: carnet.Visit) -> str:
    """Ask for money, and wait."""
    note(visit)
    return (await visit.interrupt(payment="0.02")).outcome


async def words(visit: carnet.Visit) -> AsyncIterator[str]:
    note(visit)
    for word in visit.text.split():
        yield word
        await asyncio.sleep(0.01)


async def family(visit: carnet.Visit) -> str:
    """Two children, one after the other."""
    note(visit)
    first = await visit.peer("echo").ask(visit.text)
    return first + await visit.peer("words").ask(visit.text)


async def deep(visit: carnet.Visit) -> str:
    """As deep as the chain allows."""
    note(visit)
    try:
        return "> " + await visit.peer("deep").ask(visit.text)
    except carnet.DepthExceeded:
        return "bottom"


async def counted(visit: carnet.Visit) -> AsyncIterator[carnet.Event | str]:
    """Use as many tokens as it was told, read and written; fail then, if it was told to."""
    note(visit)
    number = int(visit.text)
    yield carnet.Usage(tokens_in=abs(number) - 100, tokens_out=100)
    if number < 0:
        raise RuntimeError("it was told to fail")
    yield "done"


async def broken(visit: carnet.Visit) -> str:
    note(visit)
    raise RuntimeError("it always fails")
