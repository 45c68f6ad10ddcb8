"""A process that calls, appends and finishes until it is killed; it prints what was acknowledged.

python -m tests.stores.victim FOLDER work NAME     claims and finishes, eight at a time
python -m tests.stores.victim FOLDER sign NAME     the same with a nonce for each claim, its name
python -m tests.stores.victim FOLDER rotate        replaces the signing key
python -m tests.stores.victim FOLDER start         opens, recovers and closes
python -m tests.stores.victim FOLDER prune         forgets all that is old
"""

import asyncio
import os
import sys
from itertools import count
from pathlib import Path

from carnet.core.events import Text, write_events
from carnet.ports.turns import Nonce
from carnet.runtime.system import SystemIds
from carnet.stores.opening import Store
from tests.stores.scenes import LIMITED, NOW, Place, a_claim, a_finish, a_nonce, claimed

CALLERS = 8


def say(*words: object) -> None:
    """One line, written at once: what the parent reads was acknowledged before."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def call(store: Store, name: str, nonce: Nonce | None) -> None:
    claim = a_claim(name, payer=LIMITED, reserve=500, nonce=nonce)
    turn = claimed(await store.turns.claim(claim))
    say("claimed", name)
    await store.turns.append(turn, 0, 0, write_events([Text(name)]))
    say("appended", name)
    await store.turns.finish(a_finish(turn, payer=LIMITED, first=1, last=2, reserve=500))
    say("done", name)


async def work(store: Store, prefix: str, *, signed: bool = False) -> None:
    names = (f"{prefix}-{i}" for i in count())

    async def caller() -> None:
        for name in names:
            await call(store, name, a_nonce(name) if signed else None)

    await asyncio.gather(*[caller() for _ in range(CALLERS)])


async def main(folder: str, what: str, *rest: str) -> None:
    store = await Place(Path(folder)).open(ids=SystemIds())  # every life is a worker of its own
    say("opened")
    await store.start()
    say("started")
    if what == "work":
        await work(store, *rest)
    if what == "sign":
        await work(store, *rest, signed=True)
    if what == "rotate":
        await store.keys.rotate(NOW, overlap_seconds=60, lead_seconds=60)
    if what == "prune":
        await store.prune(turn_days=1, event_days=1)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
