"""Conversations as durable steps of another package, in a process of its own: what they take.

    python -m bench.step_peer URL SECONDS

A workflow is one conversation: each of its turns is a step, which is given all that was spoken and
whose result is in the database before the next one begins. It is used as its documentation does,
asynchronously, many workflows at once, with as many connections as it likes.
"""

import asyncio
import json
import sys
import time

from dbos import DBOS, DBOSConfig

from bench.step_words import AT_ONCE, SEED, TURNS, spoken

WARM_UP = 1  # conversations of each that runs at once


@DBOS.step()
async def speak(speaker: str, messages: list[str]) -> str:
    """One turn."""
    return spoken(speaker, len(messages))


@DBOS.workflow()
async def converse(seed: str) -> list[str]:
    """One conversation."""
    messages = [seed]
    for index in range(TURNS):
        speaker = "ab"[index % 2]
        messages.append(f"[{speaker}] {await speak(speaker, messages)}")
    return messages


async def measure(seconds: float) -> dict[str, float]:
    """Many at once, until the time is over."""

    async def one() -> None:
        messages = await converse(SEED)
        if len(messages) != TURNS + 1:
            raise ValueError(f"a conversation came to {len(messages)} messages")

    await asyncio.gather(*(one() for _ in range(AT_ONCE * WARM_UP)))
    count, begun, before = 0, time.perf_counter(), time.process_time()

    async def until_over() -> None:
        nonlocal count
        while time.perf_counter() - begun < seconds:
            await one()
            count += 1

    await asyncio.gather(*(until_over() for _ in range(AT_ONCE)))
    return {
        "steps": count * TURNS,
        "seconds": time.perf_counter() - begun,
        "cpu_seconds": time.process_time() - before,
    }


if __name__ == "__main__":
    where, how_long = sys.argv[1:]
    DBOS(config=DBOSConfig(name="bench", system_database_url=where, log_level="ERROR"))
    DBOS.launch()
    try:
        print(json.dumps(asyncio.run(measure(float(how_long)))))
    finally:
        DBOS.destroy()
