"""A driver without a gateway that is there to be killed: six turns, every other one of two.

Run as a module with a folder it drives the run that is kept there, and writes what it came to.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec

import carnet

RUN = "conv_killed"
COSTS = {"a": 3, "x": 5, "y": 7, "swarm": 0}
RESULT = "result.json"
SPOKEN = "spoken.txt"


def speaker(name: str, folder: Path) -> Any:
    """Says what follows from what it was given, and notes in a file that it did."""

    async def speak(visit: carnet.Visit) -> Any:
        yield carnet.Usage(cost=COSTS[name])
        yield f"{name} after {len(visit.messages)}"
        with (folder / SPOKEN).open("a") as file:
            file.write(f"{visit.carnet.turn}\n")

    speak.__name__ = speak.__qualname__ = name
    return speak


def conversation(folder: Path) -> carnet.Conversation:
    """The same in every process."""
    swarm = carnet.Conversation("swarm", [speaker("x", folder), speaker("y", folder)], max_turns=2)
    return carnet.Conversation("panel", [speaker("a", folder), swarm], max_turns=6)


async def drive(folder: Path) -> None:
    """Begin the run, or go on with it; what it came to is written."""
    result = await carnet.run_conversation(
        conversation(folder), seed="Go.", run_id=RUN, journal=f"sqlite:{folder / 'j.db'}"
    )
    (folder / RESULT).write_bytes(msgspec.json.encode(result))


if __name__ == "__main__":
    asyncio.run(drive(Path(sys.argv[1])))
