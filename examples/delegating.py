"""An agent that asks another agent. Its address may be a name here or `@critic@globex.example`."""

from collections.abc import AsyncIterator

import carnet

CRITIC = "critic"


@carnet.agent("researcher")
async def researcher(visit: carnet.Visit) -> AsyncIterator[str | carnet.Event]:
    """State the claim, then pass on what the critic says about it."""
    yield f"Claim: {visit.text}\nCritic: "
    async for event in visit.peer(CRITIC)(f"Is this true? {visit.text}"):
        yield event


@carnet.agent("critic")
async def critic(visit: carnet.Visit) -> str:
    """Doubt everything."""
    return f"I doubt it ({visit.text})"
