"""Calls one after the other, by one client in a process of its own: how many it makes.

    python -m bench.client_loop carnet|samvad URL SECONDS FOLDER

The server is the upstream of the hops, which answers at once: what is measured is the client.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from bench.bodies import text

WARM_UP_CALLS = 3
_PAYLOAD = {"text": text(1800)}  # 2 KB with its envelope

Call = Callable[[], Awaitable[Any]]


async def loop(call: Call, seconds: float) -> dict[str, float]:
    """Call until the time is over."""
    for _ in range(WARM_UP_CALLS):
        await call()
    begun, before = time.perf_counter(), time.process_time()
    calls = 0
    while time.perf_counter() - begun < seconds:
        await call()
        calls += 1
    return {
        "calls": calls,
        "seconds": time.perf_counter() - begun,
        "cpu_seconds": time.process_time() - before,
    }


async def by_samvad(url: str, seconds: float, folder: Path) -> dict[str, float]:
    """The client of the package, as its README uses it."""
    from samvad import AgentClient  # noqa: PLC0415  only where it is measured

    client = await AgentClient.from_url(url, keys_dir=str(folder))
    return await loop(lambda: client.call("chat", _PAYLOAD), seconds)


async def by_carnet(url: str, seconds: float, folder: Path) -> dict[str, float]:
    """`carnet.connect`, which keeps its connection."""
    import carnet  # noqa: PLC0415

    async with carnet.connect(url, key=folder / "client.key") as agent:
        return await loop(lambda: agent.call("chat", **_PAYLOAD), seconds)


CLIENTS = {"carnet": by_carnet, "samvad": by_samvad}


if __name__ == "__main__":
    name, where, how_long, keys = sys.argv[1:]
    print(json.dumps(asyncio.run(CLIENTS[name](where, float(how_long), Path(keys)))))
