"""kill -9 while turns wait for answers: none is lost, answered twice, or keeps what it held."""

import pytest

from carnet.ports.calls.turns import Known
from tests.crash.test_kill import KILLED, Acknowledged, run_victim
from tests.stores.support.scenes import LIMITED, Place, a_claim, a_finish, an_answer, claimed

WAITING = ("wait.kept", "resolve.used", "expire.each_turn")
ALSO = ("t3.before_commit", "t1.before_commit:3", "t3.after_commit:3")


@pytest.mark.parametrize("point", [*WAITING, *ALSO])
async def test_turns_that_wait_survive_a_kill_at(point: str, place: Place) -> None:
    acknowledged, code = run_victim(place, "waits", "a", crash_at=point)
    assert code == KILLED
    await check(place, acknowledged)


async def check(place: Place, acknowledged: Acknowledged) -> None:
    """Everything that was acknowledged is there; what is left over is driven to its end."""
    if place.postgres:
        place.end_leases()
    store = await place.start()
    for name in acknowledged["done"]:
        (turn,) = await store.records.run(name, reader=None)
        assert (turn.state, turn.attempt, turn.fence) == ("done", 1, 2)
    for name in acknowledged["late"]:
        (turn,) = await store.records.run(name, reader=None)
        assert (turn.state, turn.code) == ("failed", "interrupt_expired")
    over = {*acknowledged["done"], *acknowledged["late"], *acknowledged["answered"]}
    for name in [name for name in acknowledged["waits"] if name not in over]:
        asked = a_claim(name, payer=LIMITED, reserve=500)
        known = await store.turns.claim(asked)
        if isinstance(known, Known) and known.turn.state == "waiting":
            (one,) = await store.turns.interrupts(known.turn)
            assert one.status == "open"
            answer = a_claim(name, payer=LIMITED, reserve=500, resolution=an_answer())
            turn = claimed(await store.turns.claim(answer))
        elif isinstance(known, Known):
            continue  # it expired, and nobody was told
        else:  # it was answered, and nobody was told
            turn = claimed(known)
        await store.turns.finish(a_finish(turn, payer=LIMITED))
    for name in set(acknowledged["answered"]) - set(acknowledged["done"]):
        (turn,) = await store.records.run(name, reader=None)
        (one,) = await store.turns.interrupts(turn)
        assert one.status == "resolved"  # the answer was used, and is kept
    place.clock.advance(3601)
    await store.upkeep()
    assert place.rows("SELECT COALESCE(SUM(reserved), 0) FROM purse") == [(0,)]
    assert place.rows("SELECT COUNT(*) FROM turn WHERE state = 'waiting'") == [(0,)]
    await store.close()
