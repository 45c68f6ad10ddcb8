"""The scheduler: ticks over a change of clocks, dead leaders, and what cannot be begun."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Literal

import pytest

from carnet.core.people.proof import SECOND_US
from carnet.errors import AgentNotFound, StorageUnavailable
from carnet.ports.calls.triggers import Firing, FiringEnd, NewSchedule, NoteBegun
from carnet.runtime.triggers.ends import TokensAtEnd
from carnet.runtime.triggers.notices import TriggerNotices
from carnet.runtime.triggers.scheduler import EACH, MOST_ATTEMPTS, WAIT_SECONDS, Scheduler
from carnet.runtime.triggers.zones import find_zone
from carnet.stores.open import Store
from carnet.testing.clock import FakeClock
from tests.stores.support import servers
from tests.stores.support.scenes import Place
from tests.stores.triggers.scene import a_hook, a_person, receive

CHANGE = datetime.fromisoformat("2026-10-25T02:00:00+02:00")  # an hour before clocks go back


NOTIFIED = "https://ops.acme.example/notices"


class Starting:
    """Notes what it is to begin; what is under `broken` it raises, or never ends."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.ticks: list[int] = []
        self.broken: Exception | None = None
        self.hangs = False
        self.state: Literal["done", "failed", "waiting"] = "done"
        self._changed = asyncio.Condition()

    async def until_begun(self, most: int) -> None:
        async with asyncio.timeout(30), self._changed:
            await self._changed.wait_for(lambda: len(self.keys) >= most)

    async def __call__(self, firing: Firing, note: NoteBegun, /) -> FiringEnd:
        if self.broken is not None:
            raise self.broken
        if firing.key not in self.keys:  # as a conversation: the same key is the same one
            self.keys.append(firing.key)
            self.ticks.append(firing.tick // SECOND_US)
        assert await note(f"conv_{len(self.keys)}")
        async with self._changed:
            self._changed.notify_all()
        if self.hangs:
            await asyncio.Event().wait()
        return FiringEnd(state=self.state, conversation=f"conv_{len(self.keys)}")


@pytest.fixture(params=("sqlite", "postgres"))
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    if request.param == "sqlite":
        return Place(tmp_path)
    server: servers.Server = request.getfixturevalue("server")
    return Place(tmp_path, server.fresh())


@pytest.fixture
async def store(place: Place) -> AsyncIterator[Store]:
    opened = await place.start()
    yield opened
    await opened.close()


def scheduler(store: Store, clock: FakeClock, starts: Starting, worker: str = "w1") -> Scheduler:
    made = Scheduler(
        schedules=store.triggers.schedules,
        firings=store.triggers.firings,
        find_zone=find_zone,
        clock=clock,
        worker=worker,
        most=100,
        notices=TriggerNotices(store.people, lambda: [NOTIFIED]),
        ends=TokensAtEnd(store.tokens, store.look_again, clock),
    )
    made.take(starts, most=100)
    return made


async def a_schedule(store: Store, cron: str, zone: str, first: int) -> NewSchedule:
    person, token = await a_person(store, "alice")
    new = NewSchedule(
        name="digest",
        person=person,
        token=token,
        agent="echo",
        content="Write it.",
        cron=cron,
        zone=zone,
        missed="all",
        next=first,
    )
    return await store.triggers.schedules.add(new, most=9, now=first)


async def look(each: Scheduler) -> None:
    await each.look()
    await each.settled()


async def test_fifty_ticks_are_fifty_at_two_replicas_when_clocks_change_and_a_leader_dies(
    store: Store, place: Place
) -> None:
    first = int(CHANGE.timestamp()) * SECOND_US
    clock, starts = place.clock, Starting()
    clock.jump((first - clock.wall_us()) / SECOND_US)
    await a_schedule(store, "*/3 * * * *", "Europe/Berlin", first)
    # On PostgreSQL each has connections of its own, as two gateways have.
    elsewhere = await place.start() if place.postgres else store
    leader, other = scheduler(store, clock, starts), scheduler(elsewhere, clock, starts, "w2")
    for n in range(50):
        if n == 20:  # it has begun one, and dies before that is noted
            starts.hangs = True
            await leader.look()
            await starts.until_begun(n + 1)
            await leader.close()
            starts.hangs, leader = False, scheduler(store, clock, starts, "w3")
        await asyncio.gather(look(leader), look(other))
        clock.advance(180)
    expected = [first // SECOND_US + n * 180 for n in range(50)]
    assert sorted(starts.ticks) == expected
    shown = [
        f"{datetime.fromtimestamp(tick, find_zone('Europe/Berlin')):%H:%M}" for tick in expected
    ]
    assert shown.count("02:30") == 2  # clocks went back meanwhile
    states = {row[0] for row in place.rows("SELECT state FROM firing")}
    assert states == {"fired"}
    if elsewhere is not store:
        await elsewhere.close()


async def test_what_is_missed_is_made_up_for_as_the_schedule_says(
    store: Store, place: Place
) -> None:
    first = place.clock.wall_us() // SECOND_US // 60 * 60 * SECOND_US
    await a_schedule(store, "* * * * *", "UTC", first)
    starts = Starting()
    place.clock.advance(5 * 60)
    for _ in range(3):
        await look(scheduler(store, place.clock, starts))
    assert len(starts.ticks) == 6 == len(set(starts.ticks))


async def test_what_fails_for_a_while_is_tried_again_and_given_up_in_the_end(
    store: Store, place: Place
) -> None:
    hook, starts = await a_hook(store, await a_person(store, "alice")), Starting()
    each = scheduler(store, place.clock, starts)
    starts.broken = StorageUnavailable("away")
    await receive(store, hook, "e", "k", now=place.clock.wall_us())
    for _ in range(MOST_ATTEMPTS):
        place.clock.advance(3600)
        await look(each)
    (ended,) = await store.triggers.firings.recent("webhook", hook.person, hook.name, 9)
    assert (ended.state, ended.code) == ("failed", "storage_unavailable")
    starts.broken = AgentNotFound()
    await receive(store, hook, "f", "l", now=place.clock.wall_us())
    await look(each)
    newest, _ = await store.triggers.firings.recent("webhook", hook.person, hook.name, 9)
    assert newest.code == "agent_not_found"  # nothing is gained by trying again
    starts.broken = ZeroDivisionError()
    await receive(store, hook, "g", "m", now=place.clock.wall_us())
    await look(each)
    newest, *_ = await store.triggers.firings.recent("webhook", hook.person, hook.name, 9)
    assert newest.code == "internal"


async def test_who_has_much_to_begin_holds_up_nobody(store: Store, place: Place) -> None:
    starts = Starting()
    starts.hangs = True
    hers = await a_hook(store, await a_person(store, "alice"))
    his = await a_hook(store, await a_person(store, "bob"))
    now = place.clock.wall_us()
    for n in range(3 * EACH):
        await receive(store, hers, f"e{n}", f"k{n}", now=now, most=99)
    each = scheduler(store, place.clock, starts)
    await receive(store, his, "e", "his", now=now)
    assert await each.look() == EACH + 1
    assert await each.look() == 0
    await starts.until_begun(EACH + 1)
    assert "his" in starts.keys
    await each.close()


async def test_a_schedule_that_cannot_be_understood_harms_no_other(
    store: Store, place: Place
) -> None:
    now, starts = place.clock.wall_us(), Starting()
    schedule = await a_schedule(store, "* * * * *", "UTC", now)
    place.rows("UPDATE schedule SET zone = 'Nowhere/Land'")
    await look(scheduler(store, place.clock, starts))
    found = await store.triggers.schedules.own.find(schedule.person, "digest")
    assert found is not None
    assert found.paused == now
    assert starts.keys == []


async def test_it_looks_by_itself_until_it_is_drained(store: Store, place: Place) -> None:
    hook, starts = await a_hook(store, await a_person(store, "alice")), Starting()
    each = scheduler(store, place.clock, starts)
    each.start()
    await receive(store, hook, "e", "k", now=place.clock.wall_us())
    each.wake()
    await starts.until_begun(1)
    await each.drain()
    await each.close()


async def test_the_owner_is_told_once_when_it_waits_and_once_when_it_ends(
    store: Store, place: Place
) -> None:
    hook, starts = await a_hook(store, await a_person(store, "alice")), Starting()
    each = scheduler(store, place.clock, starts)
    await receive(store, hook, "e", "k", now=place.clock.wall_us())
    starts.state = "waiting"
    for _ in range(3):
        await look(each)
        place.clock.advance(WAIT_SECONDS)
    starts.state = "failed"
    await look(each)
    await look(each)
    bodies = [json.loads(bytes(row[0])) for row in place.rows("SELECT body FROM outbox ORDER BY n")]
    assert [body["type"] for body in bodies] == ["conversation.waits", "conversation.failed"]
    assert bodies[1]["data"] == {
        "conversation": "conv_1",
        "trigger": "webhook",
        "name": "orders",
        "agent": "echo",
        "owner": "alice",
        "code": None,
    }
    assert {row[0] for row in place.rows("SELECT url FROM outbox")} == {NOTIFIED}


async def test_what_a_token_was_to_begin_that_has_ended_is_given_up_and_told_once(
    store: Store, place: Place
) -> None:
    hook, starts = await a_hook(store, await a_person(store, "alice")), Starting()
    each, now = scheduler(store, place.clock, starts), place.clock.wall_us()
    for n in range(5):
        await receive(store, hook, f"e{n}", f"k{n}", now=now)
    await store.tokens.revoke("alice", now)
    for _ in range(5):  # no more than some of a person's at a time
        await look(each)
    assert starts.keys == []
    firings = place.rows("SELECT state, code, conversation, content FROM firing")
    assert firings == [("failed", "token_revoked", None, "")] * 5
    assert len(place.rows("SELECT 1 FROM hook WHERE paused IS NOT NULL")) == 1
    (notice,) = [json.loads(bytes(row[0])) for row in place.rows("SELECT body FROM outbox")]
    assert notice["type"] == "trigger.paused"
    assert (notice["data"]["name"], notice["data"]["code"]) == ("orders", "token_revoked")


async def test_what_has_begun_goes_to_its_end_though_its_token_has_ended(
    store: Store, place: Place
) -> None:
    """What becomes of the conversation is for who runs it: its turn is cancelled."""
    hook, starts = await a_hook(store, await a_person(store, "alice")), Starting()
    each = scheduler(store, place.clock, starts)
    await receive(store, hook, "e", "k", now=place.clock.wall_us())
    starts.state = "waiting"
    await look(each)
    await store.tokens.revoke("alice", place.clock.wall_us())
    place.clock.advance(WAIT_SECONDS)
    starts.state = "failed"
    await look(each)
    assert place.rows("SELECT state, conversation FROM firing") == [("failed", "conv_1")]
