"""Conversations as durable steps of another package, in a process of its own: what they take.

    python -m bench.step_peer URL SECONDS

A workflow is one conversation: each of its turns is a step, which is given all that was spoken and
whose result is in the database before the next one begins. It is used as its documentation does,
asynchronously, many workflows at once, with as many connections as it likes.

Law 1. Steps are counted as they end, until the time is over: conversations that are under way then
       count as far as they are, and the time that they take to end does not.
Law 2. A file of SQLite is as durable as ours, and written as ours is: a log ahead of the file, on
       the disk before a commit is acknowledged.
"""

import asyncio
import json
import sqlite3
import sys
import time
from itertools import count

from dbos import DBOS, DBOSConfig
from sqlalchemy import event
from sqlalchemy.engine import Engine

from bench.step_words import AT_ONCE, SEED, TURNS, spoken

WARM_UP = 1  # conversations of each that runs at once

ended = count()  # steps whose end is kept


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
        next(ended)
    return messages


@event.listens_for(Engine, "connect")
def keep_as_ours(connection: object, _: object) -> None:
    """Have SQLite keep what it is given as `carnet.stores.sqlite` does."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")


async def measure(seconds: float) -> dict[str, float]:
    """Many at once, until the time is over."""

    async def one() -> None:
        messages = await converse(SEED)
        if len(messages) != TURNS + 1:
            raise ValueError(f"a conversation came to {len(messages)} messages")

    await asyncio.gather(*(one() for _ in range(AT_ONCE * WARM_UP)))
    is_over = asyncio.Event()

    async def until_over() -> None:
        while not is_over.is_set():
            await one()

    first, begun, before = next(ended), time.perf_counter(), time.process_time()
    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(until_over())
        await asyncio.sleep(seconds)
        found = {
            "steps": next(ended) - first - 1,
            "seconds": time.perf_counter() - begun,
            "cpu_seconds": time.process_time() - before,
        }
        is_over.set()
    return found


if __name__ == "__main__":
    where, how_long = sys.argv[1:]
    DBOS(config=DBOSConfig(name="bench", system_database_url=where, log_level="ERROR"))
    DBOS.launch()
    try:
        print(json.dumps(asyncio.run(measure(float(how_long)))))
    finally:
        DBOS.destroy()
