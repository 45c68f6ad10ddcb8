"""What `test_a_column` runs over a program that has one column more.

It prints what a claim, an end and a repeat have written there, and what a copy has carried over.
"""
# ruff: noqa: T201  what is printed is what the test compares

import asyncio
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from carnet.core.chain.turn import Turn
from carnet.stores.copy import SqliteLanding, copy_all
from carnet.stores.open import Store, is_postgres, migrate_store
from carnet.stores.secrets import secrets_file
from carnet.stores.sqlite import driver as sqlite
from carnet.stores.turn.finish_rules import Seals
from carnet.testing.clock import FakeClock
from tests.stores.support.scenes import NOW, Place, a_claim, a_finish, claimed


def mood(place: Place, turn: Turn) -> object:
    ((found,),) = place.rows("SELECT mood FROM turn WHERE n = ?", turn.n)
    return found


async def copied(place: Place, store: Store) -> object:
    """What stands in a copy of the whole store."""
    draft = place.folder / "copy.db"
    seals = Seals(secrets_file.load(place.secrets).names)
    with closing(sqlite.create(draft, now=NOW)) as target:
        async with store.snapshot() as source:
            await copy_all(source, SqliteLanding(target), seals)
    with closing(sqlite3.connect(draft)) as connection:
        ((found,),) = connection.execute("SELECT mood FROM turn").fetchall()
    return found


async def main(folder: Path) -> None:
    place = Place(folder)
    if is_postgres(place.postgres):
        await migrate_store(place.postgres, clock=FakeClock())
    store = await place.start()
    turn = claimed(await store.turns.claim(a_claim()))
    print("begun:", mood(place, turn))
    await store.turns.finish(a_finish(turn, state="failed", code="internal", retryable=True))
    print("ended:", mood(place, turn))
    print("copied:", await copied(place, store))
    again = claimed(await store.turns.claim(a_claim()))
    print("again:", mood(place, again))
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
