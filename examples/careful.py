"""An agent that calls on while it may, and answers from what it has when it may not.

It calls itself, which `reentry = true` in its section of carnet.toml allows.
"""

import carnet


@carnet.agent("recursive")
async def recursive(visit: carnet.Visit) -> str:
    """Ask itself; the gateway's depth limit ends the chain before anything is sent."""
    try:
        below = await visit.peer("recursive").ask(visit.text)
    except carnet.DepthExceeded as refused:
        return f"depth {visit.carnet.depth}: {refused.safe_text}"
    return f"depth {visit.carnet.depth}, below: {below}"
