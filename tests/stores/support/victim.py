"""A process that calls, appends and finishes until it is killed; it prints what was acknowledged.

python -m tests.stores.support.victim FOLDER DOING, where DOING is one of

work NAME     claims and finishes, eight at a time
sign NAME     the same with a nonce for each claim, its name
tasks NAME    accepts tasks and runs them; each second time it puts one back first
waits NAME    lets turns wait; answers one, lets one expire
rotate        replaces the signing key
start         opens, recovers and closes
prune         forgets all that is old
"""

import asyncio
import os
import sys
from itertools import count
from pathlib import Path

from carnet.core.messages.events import Text, write_events
from carnet.ports.calls.steps import Step
from carnet.ports.calls.tasks import StoredTask
from carnet.ports.calls.turns import Nonce, Quota, TurnClaim, TurnFinish, Use
from carnet.runtime.system import SystemIds
from carnet.stores.open import Store
from tests.stores.support.scenes import (
    LIMITED,
    NOW,
    Place,
    a_claim,
    a_delivery,
    a_finish,
    a_nonce,
    a_task,
    a_wait,
    an_answer,
    claimed,
    leased,
)

CALLERS = 8
UNFINISHED = Quota(name="tasks/echo/b", limit=1000, take=1)


def say(*words: object) -> None:
    """One line, written at once: what the parent reads was acknowledged before."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def a_waiting(name: str) -> TurnClaim:
    """A task that holds something, and counts as unfinished."""
    return a_task(name, payer=LIMITED, reserve=500, quotas=(UNFINISHED,))


def an_end(task: StoredTask) -> TurnFinish:
    """Its end, told to its sender."""
    return a_finish(
        task.turn,
        payer=LIMITED,
        reserve=500,
        is_task=True,
        uses=(Use(UNFINISHED.name, -1),),
        deliveries=(a_delivery(task.turn.run),),
    )


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


async def run_tasks(store: Store, prefix: str) -> None:
    for i in count():
        name = f"{prefix}-{i}"
        claimed(await store.turns.claim(a_waiting(name)))
        say("accepted", name)
        for task in await leased(store):
            if i % 2 and await store.tasks.release(task.turn, NOW):
                say("released", task.turn.run)
                continue
            await store.steps.keep(task.turn, Step(0, "only", b"1"))
            await store.turns.finish(an_end(task))
            say("done", task.turn.run)


async def wait(store: Store, place: Place, prefix: str) -> None:
    for i in count():
        for name in (f"{prefix}-{i}-answered", f"{prefix}-{i}-late"):
            turn = claimed(await store.turns.claim(a_claim(name, payer=LIMITED, reserve=500)))
            await store.turns.finish(a_wait(turn, payer=LIMITED))
            say("waits", name)
        name = f"{prefix}-{i}-answered"
        answer = a_claim(name, payer=LIMITED, reserve=500, resolution=an_answer())
        turn = claimed(await store.turns.claim(answer))
        say("answered", name)
        await store.turns.finish(a_finish(turn, payer=LIMITED))
        say("done", name)
        place.clock.advance(3601)
        await store.upkeep()
        say("late", f"{prefix}-{i}-late")
        place.clock.advance(-3601)


async def main(folder: str, what: str, *rest: str) -> None:
    place = Place(Path(folder))
    store = await place.open(ids=SystemIds())  # every life is a worker of its own
    say("opened")
    await store.start()
    say("started")
    if what == "work":
        await work(store, *rest)
    if what == "sign":
        await work(store, *rest, signed=True)
    if what == "tasks":
        await run_tasks(store, *rest)
    if what == "waits":
        await wait(store, place, *rest)
    if what == "rotate":
        await store.keys.rotate(NOW, overlap_seconds=60, lead_seconds=60)
    if what == "prune":
        await store.prune(turn_days=1, event_days=1)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
