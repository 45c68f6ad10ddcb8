"""The agents of the recorded exchanges; the text of this module becomes their agents.py.

Nothing here depends on how fast the machine is: what waits, waits for a file.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

import carnet

FOLDER = Path(__file__).parent
LOOK_SECONDS = 0.005


async def opened(gate: str) -> None:
    """Wait until somebody has opened a gate."""
    while not (FOLDER / f"{gate}.open").exists():  # noqa: ASYNC110  another process makes it
        await asyncio.sleep(LOOK_SECONDS)


async def echo(visit: carnet.Visit) -> str:
    return visit.text


async def words(visit: carnet.Visit) -> AsyncIterator[str]:
    for word in visit.text.split():
        yield word + " "


async def gated(visit: carnet.Visit) -> AsyncIterator[str]:
    """Say that it has begun, wait for the gate that the text names, and end."""
    (FOLDER / f"{visit.text}.begun").touch()
    yield "begun "
    await opened(visit.text)
    yield "ended"


async def broken(_: carnet.Visit) -> str:
    raise RuntimeError("nobody outside may read this")


async def half(_: carnet.Visit) -> AsyncIterator[str]:
    yield "so far "
    raise RuntimeError("nobody outside may read this")


async def relay(visit: carnet.Visit) -> AsyncIterator[carnet.Event]:
    """Pass the text on to the agent its first word names."""
    address, _, text = visit.text.partition(" ")
    async for event in visit.peer(address)(text):
        yield event


async def onward(visit: carnet.Visit) -> str:
    """Call the first address of the text with the rest of it; answer from what there is."""
    address, _, rest = visit.text.partition(" ")
    if not address:
        return f"end at {visit.carnet.depth}"
    try:
        below = await visit.peer(address).ask(rest)
    except carnet.CarnetError as refused:
        return f"{visit.carnet.depth} stopped by {refused.code}"
    return f"{visit.carnet.depth} > {below}"


async def twice(visit: carnet.Visit) -> str:
    """Call the same agent two times in one turn."""
    first = await visit.peer("echo").ask("one")
    second = await visit.peer("echo").ask("two")
    return f"{first} {second}"


async def own_pocket(visit: carnet.Visit) -> str:
    """Pay for a call from the agent's own account."""
    return await visit.peer(visit.text, auth="agent-owned").ask("mine")


async def spends(visit: carnet.Visit) -> str:
    """Have another agent paid, then fail."""
    await visit.peer("paid").ask("x")
    raise RuntimeError("after the money was spent")


async def works(visit: carnet.Visit) -> str:
    """A task: steps, tokens, and how far it is; it waits for the gate that its text names."""
    first = await visit.step("first", lambda: {"n": 1})
    visit.progress(0.5, "half of it")
    visit.usage(tokens_in=10, tokens_out=3)
    (FOLDER / f"{visit.text}.begun").touch()
    await opened(visit.text)
    return f"worked {first['n']}"


async def position(visit: carnet.Visit) -> str:
    """Where this call stands and who makes it, as its agent sees it."""
    carnet_ = visit.carnet
    return (
        f"{carnet_.run} {carnet_.turn} {carnet_.parent_turn} {carnet_.depth} {carnet_.last_depth}"
        f" {carnet_.speaker} {visit.caller.actor.name} {visit.principal}"
        f" {list(carnet_.on_behalf_of)}"
    )


clerk = carnet.agent("clerk")


@clerk
async def talk(visit: carnet.Visit) -> str:
    return visit.text.upper()


@clerk.skill("add")
async def add(a: int, b: int) -> dict[str, Any]:
    """Add two numbers."""
    return {"total": a + b}


@clerk.skill("count")
async def count(to: int) -> AsyncIterator[int]:
    for number in range(to):
        yield number


@clerk.skill("recite")
async def recite(lines: list[str]) -> AsyncIterator[Any]:
    for line in lines:
        yield line
    yield carnet.Result({"count": len(lines)})


@dataclass
class Note:
    """What is noted."""

    text: Annotated[str, msgspec.Meta(max_length=10)]
    stars: Annotated[int, msgspec.Meta(ge=1, le=5)] = 3


@clerk.skill("note")
async def note(given: Note) -> Note:
    return given


@clerk.skill("wrong")
async def wrong() -> Note:
    return {"text": "far too long for a note"}  # type: ignore[return-value]  # refused, as it says


@clerk.skill("whoami", trust="authenticated", modes=["sync"])
async def whoami(visit: carnet.Visit) -> dict[str, Any]:
    return {"caller": visit.caller.actor.name, "principal": visit.principal}


@clerk.skill("secret", trust="trusted-peers")
async def secret() -> dict[str, Any]:
    return {"told": "to peers"}


@clerk.skill("report", modes=["async"])
async def report(gate: str, visit: carnet.Visit) -> dict[str, Any]:
    visit.progress(0.25, "begun")
    visit.usage(tokens_in=7, tokens_out=5)
    (FOLDER / f"{gate}.begun").touch()
    await opened(gate)
    return {"month": 11, "task": visit.task is not None}


@clerk.skill("fails", modes=["async"])
async def fails() -> dict[str, Any]:
    raise RuntimeError("nobody outside may read this")


@clerk.skill("tell")
async def tell(visit: carnet.Visit) -> dict[str, Any]:
    found = visit.delegation
    links = [] if found is None else found.chain()
    return {
        "links": [[link.issuer, link.subject, link.hops, link.is_ours] for link in links],
        "behalf": list(visit.carnet.on_behalf_of),
        "last_depth": visit.carnet.last_depth,
        "depth": visit.carnet.depth,
    }


@clerk.skill("pass")
async def passed(to: str, skill: str, visit: carnet.Visit) -> dict[str, Any]:
    return await visit.peer(to).skill(skill, {})


solo = carnet.agent("solo")


@solo.skill("shout")
async def shout(text: str) -> dict[str, Any]:
    return {"shouted": text.upper()}
