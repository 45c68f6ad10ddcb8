"""A gateway that sleeps, dies or is cut off from the database, and the others beside it (F26, F27).

A lease is ended by hand, so that nobody has to wait half a minute for a gateway that is gone.
"""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from carnet.testing.toxic import Toxic, ToxicProxy, hang
from carnet.testing.wait import until, until_so
from tests.replicas.scene import (
    PATIENCE,
    PRICE,
    Answer,
    Callers,
    House,
    Replica,
    a_house,
    callers,
    far_side,
    through,
)
from tests.stores.support import servers
from tests.support.commands import USUAL


class Pair:
    """One gateway that is near the database, and one behind a wire that can be cut."""

    def __init__(self, house: House, proxy: ToxicProxy) -> None:
        self.house = house
        self.proxy = proxy
        (self.near,) = house.open(1)
        far = {"CARNET__STORE__URL": through(proxy, house.database), USUAL: "1"}
        (self.far,) = house.open(1, far)

    @contextmanager
    def asleep(self) -> Iterator[None]:
        self.far.signal(signal.SIGSTOP)
        yield
        self.far.signal(signal.SIGCONT)

    @contextmanager
    def cut_off(self) -> Iterator[None]:
        self.proxy.down()
        yield
        self.proxy.up()

    @contextmanager
    def in_silence(self) -> Iterator[None]:
        """Nothing comes through any more, and no end of it."""
        self.proxy.toxic = hang()
        yield
        self.proxy.toxic = Toxic()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, server: servers.Server) -> Iterator[Pair]:
    with (
        a_house(tmp_path_factory.mktemp("lost"), server) as house,
        ToxicProxy(far_side(house.database)) as proxy,
    ):
        yield Pair(house, proxy)
        house.close()


@pytest.fixture
async def people(pair: Pair) -> AsyncIterator[Callers]:
    async with callers(pair.house.token) as people:
        yield people


async def answered(people: Callers, replica: Replica, run: str, *, stream: bool) -> Answer:
    """Ask for a turn again and again, as a caller does who was told that it may."""
    last = Answer(0, b"")

    async def is_done() -> bool:
        nonlocal last
        last = await people.ask(replica, run, "stepwise", "go", stream=stream)
        assert last.status in {200, 409, 503}, last
        return last.is_whole if stream else last.status == 200

    await until_so(is_done)
    return last


@pytest.mark.parametrize("how", [Pair.asleep, Pair.in_silence])
async def test_turns_are_taken_over_and_their_late_writer_is_refused(
    pair: Pair, people: Callers, how: Callable[[Pair], AbstractContextManager[None]]
) -> None:
    house = pair.house
    streams = {f"conv_{how.__name__}_{kind}": kind == "stream" for kind in ("stream", "whole")}
    until(lambda: pair.far.is_ready)
    asking = [
        asyncio.create_task(people.ask(pair.far, run, "stepwise", "go", stream=stream))
        for run, stream in streams.items()
    ]
    await until_so(lambda: _have_begun(house, streams, 1))
    with how(pair):
        house.end_lease(next(iter(streams)))  # of both: they run at one gateway
        waiting = [
            asyncio.create_task(answered(people, pair.near, run, stream=stream))
            for run, stream in streams.items()
        ]
        await until_so(lambda: _have_begun(house, streams, 2))
    until(lambda: pair.far.is_ready)
    for run in streams:  # both agents of each turn say it; what the first one says comes too late
        house.allow(run, "0")
    assert b'"error"' in (await asyncio.wait_for(asking[0], PATIENCE)).body
    assert "done" not in {house.turns(run)[0][0] for run in streams}
    for run in streams:
        house.allow(run, "1", "end")
    answers = await asyncio.gather(*waiting)
    assert (await asking[1]).status == 503
    for (run, stream), answer in zip(streams.items(), answers, strict=True):
        assert await people.ask(pair.far, run, "stepwise", "go", stream=stream) == answer
        assert answer.body.count(b'"0 ') == 1
        assert house.turns(run)[0][0] == "done"
        assert house.billed(run) == [PRICE]
    until(
        lambda: all(
            f'"turn taken over","run":"{run}"' in pair.far.log.read_text() for run in streams
        )
    )
    assert house.rows("SELECT name FROM purse WHERE reserved <> 0") == []


async def _have_begun(house: House, runs: Iterable[str], times: int) -> bool:
    return all(house.ran(run) >= times for run in runs)


@pytest.mark.parametrize("how", [Pair.cut_off, Pair.in_silence])
async def test_a_gateway_without_its_database_refuses_and_heals(
    pair: Pair, people: Callers, how: Callable[[Pair], AbstractContextManager[None]]
) -> None:
    house, name = pair.house, how.__name__
    until(lambda: pair.far.is_ready)
    known = await people.ask(pair.far, f"known_{name}", "words", "a b")
    with how(pair):
        until(lambda: not pair.far.is_ready)  # nobody has asked it for anything meanwhile
        new = await people.ask(pair.far, f"new_{name}", "words", "a b")
        old = await people.ask(pair.far, f"known_{name}", "words", "a b")
        for refused in (new, old):
            assert refused.status == 503, refused
            assert json.loads(refused.body)["code"] in {"storage_unavailable", "overloaded"}
        assert house.ran(f"new_{name}") == 0
        near = await people.ask(pair.near, f"known_{name}", "words", "a b")
        assert near == known
        assert pair.near.is_ready
    until(lambda: pair.far.is_ready)
    both = await asyncio.gather(
        *[people.ask(to, f"new_{name}", "words", "a b") for to in (pair.far, pair.near)]
    )
    assert both[0] == both[1]
    assert both[0].status == 200
    assert (house.ran(f"new_{name}"), house.billed(f"new_{name}")) == (1, [PRICE])
    assert await people.ask(pair.far, f"known_{name}", "words", "a b") == known


async def test_the_turns_of_a_killed_gateway_are_released_and_run_again_elsewhere(
    pair: Pair, people: Callers
) -> None:
    house, run = pair.house, "conv_killed"
    (victim,) = house.open(1)
    house.allow(run, "0")
    asking = asyncio.create_task(people.ask(victim, run, "stepwise", "go", stream=True))
    await until_so(lambda: _have_begun(house, [run], 1))
    async with people.reading(pair.near, run) as attached:
        await attached.until(b'"0 "')
        victim.kill()
        house.end_lease(run)
        house.allow(run, "end")
        body = await attached.rest()
    assert b"outcome_unknown" in body
    assert b"[DONE]" not in body
    assert not (await asking).is_whole
    assert (await answered(people, pair.near, run, stream=True)).is_whole
    assert (house.ran(run), house.billed(run)) == (2, [PRICE])
    assert house.turns(run) == [("done", None, 2)]
