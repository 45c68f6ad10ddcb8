"""Pruning by itself: in its times, by one gateway at a time, in steps that calls go between."""

from itertools import count

import pytest

from carnet.stores.open import Store
from carnet.stores.upkeep.pruner import BUSY_SECONDS, PruneRule
from carnet.stores.upkeep.retention import AT_A_TIME, Pruned
from carnet.testing.clock import FakeClock
from tests.stores.support.scenes import NOW, Place, a_claim, a_finish, claimed

HOUR = 3600
DAY = 24 * HOUR
RULE = PruneRule(turn_days=2, event_days=1, every_seconds=HOUR)


async def pruning(place: Place, rule: PruneRule | None = RULE) -> Store:
    """A gateway that prunes by itself; its upkeep is asked for by the test alone."""
    store = await place.open()
    store.pruner.rule = rule
    return store


async def done(store: Store, name: str, now: int) -> None:
    turn = claimed(await store.turns.claim(a_claim(name, now=now)))
    await store.turns.finish(a_finish(turn, now=now))


def turns(place: Place) -> list[str]:
    return [
        run
        for (run,) in place.rows("SELECT r.id FROM turn t JOIN run r ON r.n = t.run ORDER BY t.n")
    ]


async def test_what_is_old_is_forgotten_by_the_upkeep_each_time_it_is_due(place: Place) -> None:
    store = await pruning(place)
    counts: list[Pruned] = []
    store.pruner.teller = counts.append
    await done(store, "old", place.clock.wall_us())
    await done(store, "newer", place.clock.wall_us() + 2_000_000)
    await store.upkeep()
    assert turns(place) == ["old", "newer"]
    place.clock.advance(2 * DAY + 1)
    await done(store, "new", place.clock.wall_us())
    await store.upkeep()
    assert turns(place) == ["newer", "new"]  # it was old a second later
    assert sum(gone.turns for gone in counts) == 1
    assert sum(gone.events for gone in counts) == 4  # the day of both their events has passed
    place.clock.advance(HOUR - 1)
    await store.upkeep()
    assert turns(place) == ["newer", "new"]  # it is not due yet
    place.clock.advance(61)
    await store.upkeep()
    assert turns(place) == ["new"]
    await store.close()


async def test_without_a_rule_nothing_is_forgotten(place: Place) -> None:
    store = await pruning(place, None)
    for name in ("old", "new"):
        await done(store, name, place.clock.wall_us())
    place.clock.advance(9 * DAY)
    await store.upkeep()
    assert turns(place) == ["old", "new"]
    await store.close()


async def test_a_gateway_that_is_started_anew_goes_by_what_the_last_one_wrote(place: Place) -> None:
    store = await pruning(place)
    await store.upkeep()
    await done(store, "old", place.clock.wall_us() - 9 * DAY * 1_000_000)
    await done(store, "new", place.clock.wall_us())
    await store.close()
    place.clock.advance(HOUR - 10)
    store = await pruning(place)
    await store.upkeep()
    assert turns(place) == ["old", "new"]
    place.clock.advance(61)
    await store.upkeep()
    assert turns(place) == ["new"]
    await store.close()


async def test_a_clock_that_was_set_back_does_not_keep_it_waiting(place: Place) -> None:
    store = await pruning(place)
    await store.upkeep()
    place.rows("UPDATE meta SET value = ? WHERE name = 'pruned'", str(NOW + 99 * DAY * 1_000_000))
    await done(store, "old", place.clock.wall_us() - 9 * DAY * 1_000_000)
    await done(store, "new", place.clock.wall_us())
    place.clock.advance(61)
    await store.upkeep()
    assert turns(place) == ["new"]
    await store.close()


class Hurrying(FakeClock):
    """A clock on which a look is over after one step."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self._clock = clock
        self._looks = count()

    def wall_us(self) -> int:
        return self._clock.wall_us()

    def monotonic(self) -> float:
        return self._clock.monotonic() + next(self._looks) * BUSY_SECONDS


@pytest.fixture
async def many(place: Place) -> Place:
    """A store with three steps of old turns."""
    store = await pruning(place, None)
    for i in range(2 * AT_A_TIME + 10):
        turn = claimed(
            await store.turns.claim(a_claim("old", turn=f"t{i}", now=0, most_run_calls=999))
        )
        await store.turns.finish(a_finish(turn, now=0))
    await done(store, "new", place.clock.wall_us())
    await store.close()
    return place


def left(place: Place) -> int:
    return int(place.rows("SELECT COUNT(*) FROM turn")[0][0])


async def test_a_look_ends_after_its_time_and_the_next_one_goes_on(many: Place) -> None:
    many.clock = Hurrying(many.clock)
    store = await pruning(many)
    await store.pruner.keep()
    assert left(many) == AT_A_TIME + 11  # calls go between this step and the next
    await done(store, "between", many.clock.wall_us())
    await store.pruner.keep()
    assert left(many) == 12
    await store.close()  # in the middle of it
    store = await pruning(many)
    assert left(many) == 12
    await store.close()


async def test_one_of_several_postgres_gateways_prunes_at_a_time(many: Place) -> None:
    still = many.clock
    many.clock = Hurrying(still)
    first, second = await pruning(many), await pruning(many)
    await first.pruner.keep()
    assert left(many) == AT_A_TIME + 11
    await second.pruner.keep()
    assert left(many) == AT_A_TIME + 11  # the first one has begun
    still.advance(HOUR)  # and is silent for longer than it may be
    await second.pruner.keep()
    assert left(many) == 11
    await first.pruner.keep()
    assert left(many) == 11  # it sees that another has taken over
    await second.pruner.keep()
    assert left(many) == 1
    await first.close()
    await second.close()
