"""The agents that test gateways serve; the text of this module becomes their agents.py."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import carnet

RAN = Path(__file__).parent / "ran.txt"


def note(visit: carnet.Visit) -> None:
    """Leave a trace of every execution, so that tests can count them."""
    with RAN.open("a") as trace:
        trace.write(f"{visit.call.agent} {visit.carnet.turn} {visit.carnet.depth}\n")


async def echo(visit: carnet.Visit) -> str:
    note(visit)
    return visit.text


async def words(visit: carnet.Visit) -> AsyncIterator[str]:
    note(visit)
    for word in visit.text.split():
        yield word + " "
        await asyncio.sleep(0)


async def slow(visit: carnet.Visit) -> AsyncIterator[str]:
    """One word each tenth of a second, as many as the text asks for."""
    note(visit)
    for number in range(int(visit.text)):
        yield f"{number} "
        await asyncio.sleep(0.1)


async def broken(visit: carnet.Visit) -> str:
    note(visit)
    raise RuntimeError("canary-in-an-exception at /etc/passwd")


async def half(visit: carnet.Visit) -> AsyncIterator[str]:
    """Say something, then fail."""
    note(visit)
    yield "so far "
    await asyncio.sleep(0.05)
    raise RuntimeError("canary-in-an-exception")


async def relay(visit: carnet.Visit) -> AsyncIterator[carnet.Event]:
    """Pass the text on to the agent its first word names."""
    note(visit)
    address, _, text = visit.text.partition(" ")
    async for event in visit.peer(address)(text):
        yield event


async def careful(visit: carnet.Visit) -> str:
    """Call on as deep as the chain allows, and answer from what there is when it does not."""
    note(visit)
    address = visit.text
    try:
        below = await visit.peer(address).ask(address)
    except carnet.DepthExceeded as refused:
        return f"stopped at {refused.facts['observed']} of {refused.facts['limit']}"
    return f"{visit.carnet.depth} > {below}"


async def twice(visit: carnet.Visit) -> str:
    """Call the same agent two times in one turn."""
    note(visit)
    first = await visit.peer("echo").ask("one")
    second = await visit.peer("echo").ask("two")
    return f"{first} {second}"


async def own_pocket(visit: carnet.Visit) -> str:
    """Pay for a call from the agent's own account."""
    note(visit)
    return await visit.peer(visit.text, auth="agent-owned").ask("mine")


async def onward(visit: carnet.Visit) -> str:
    """Call the first address of the text with the rest of it; answer from what there is."""
    note(visit)
    address, _, rest = visit.text.partition(" ")
    if not address:
        return "end"
    try:
        below = await visit.peer(address).ask(rest)
    except carnet.DepthExceeded as refused:
        return f"stopped at {refused.facts['observed']} of {refused.facts['limit']}"
    return f"{visit.carnet.depth} > {below}"


async def spends(visit: carnet.Visit) -> str:
    """Have another agent paid, then fail."""
    note(visit)
    await visit.peer("paid").ask("x")
    raise RuntimeError("after the money was spent")


async def cautious(visit: carnet.Visit) -> str:
    """Ask for leave before it answers."""
    note(visit)
    answer = await visit.interrupt(approval="May I?")
    return answer.outcome
