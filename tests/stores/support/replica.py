"""A gateway's store in a process of its own, by the real clock; it says what came of its calls.

python -m tests.stores.support.replica FOLDER DOING, where DOING is one of

contend SEED    claims 64 keys at once, when told
hold KEY        claims a key, and finishes it when told
take COUNT      leases tasks, when told, until there are none

It is told by a line on its standard input.
"""

import asyncio
import random
import sys
from pathlib import Path

from carnet.ports.calls.turns import Fenced
from carnet.runtime.system import SystemClock, SystemIds
from carnet.stores.open import Store, open_store
from carnet.stores.postgres import writer
from tests.stores.support.scenes import Place, a_claim, a_finish, claimed
from tests.stores.support.victim import say
from tests.support.commands import CONNECT_SECONDS

KEYS = 64


async def next_line() -> None:
    await asyncio.to_thread(sys.stdin.readline)


async def contend(store: Store, seed: str) -> None:
    names = [f"r{i}" for i in range(KEYS)]
    random.Random(seed).shuffle(names)  # noqa: S311
    say("ready")
    await next_line()
    verdicts = await asyncio.gather(*[store.turns.claim(a_claim(name)) for name in names])
    for name, verdict in zip(names, verdicts, strict=True):
        say(type(verdict).__name__, name)
    say("told")
    await next_line()  # who closes its store lets go of its turns


async def hold(store: Store, name: str) -> None:
    turn = claimed(await store.turns.claim(a_claim(name)))
    say("claimed")
    await next_line()
    for act in (store.turns.append(turn, 0, 0, b"[]"), store.turns.finish(a_finish(turn))):
        try:
            await act
            say("written")
        except Fenced:
            say("fenced")


async def take(store: Store, count: str) -> None:
    say("ready")
    await next_line()
    while found := await store.tasks.lease([("echo", int(count))]):
        for task in found:
            say(task.id, task.turn.worker == store.worker, task.call_bytes.decode())
    say("told")
    await next_line()  # who closes its store lets go of its turns


async def main(folder: str, what: str, argument: str) -> None:
    vars(writer)["CONNECT_SECONDS"] = CONNECT_SECONDS
    place = Place(Path(folder))
    store = await open_store(
        place.postgres,
        base=place.folder,
        secrets=place.secrets,
        clock=SystemClock(),
        ids=SystemIds(),
        exclusive=True,
    )
    await store.start()
    await {"contend": contend, "hold": hold, "take": take}[what](store, argument)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
