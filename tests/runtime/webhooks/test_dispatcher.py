"""The sender of deliveries, over a real store, with the real HTTP client, to real sockets."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from carnet import faults
from carnet.errors import StorageUnavailable
from carnet.ports.world.outbox import Outcome, StoredDelivery
from carnet.runtime.egress.client import EgressClient
from carnet.runtime.system import SystemClock
from carnet.runtime.webhooks.callbacks import CallbackAddresses
from carnet.runtime.webhooks.dispatcher import Dispatcher
from carnet.stores.open import Store
from carnet.testing.wait import until_so
from tests.runtime.loop_clock import LoopClock
from tests.runtime.peer import LONG, Line, Peer, answering, chunk, head, opened, reply
from tests.runtime.webhooks.deliveries import SENDER, MemoryOutbox, delivery, dispatcher
from tests.stores.support.scenes import Place

SHORT = (0, 0.05, 0.05)
WELL = answering(reply())


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await Place(tmp_path).open()
    yield opened
    await opened.close()


@asynccontextmanager
async def running(outbox: Any, http: EgressClient, **more: Any) -> AsyncIterator[Dispatcher]:
    dispatching = dispatcher(outbox, http, SystemClock(), **{"schedule": SHORT, **more})
    dispatching.start()
    try:
        yield dispatching
    finally:
        await dispatching.close()


def named(peer: Peer, name: str = "1", path: str = "/in") -> Any:
    """A delivery to a receiver that the operator wrote down."""
    return delivery(name, f"http://127.0.0.1:{peer.port}{path}", learned=False)


async def ended(outbox: Any, name: str = "msg_1", state: str = "delivered") -> StoredDelivery:
    found: StoredDelivery = await until_so(
        lambda: outbox.find(name), lambda found: found.state == state
    )
    return found


async def put(outbox: Any, *deliveries: Any, wake: Dispatcher | None = None) -> None:
    await outbox.put(deliveries, SystemClock().wall_us())
    if wake is not None:
        wake.wake()


async def test_what_is_written_here_is_sent_when_woken(store: Store) -> None:
    async with Peer(WELL) as peer, opened() as http, running(store.outbox, http) as dispatching:
        await put(store.outbox, named(peer), wake=dispatching)
        assert (await ended(store.outbox)).attempts == 1
        (request,) = peer.requests
        assert request.lines[0] == "POST /in HTTP/1.1"
        assert request.headers["webhook-id"] == "msg_1"


async def test_what_somebody_else_has_written_is_sent_without_being_told(store: Store) -> None:
    async with Peer(WELL) as peer, opened() as http, running(store.outbox, http):
        await put(store.outbox, named(peer))
        await ended(store.outbox)


async def test_a_receiver_with_many_deliveries_gets_two_at_a_time(store: Store) -> None:
    open_now, most = 0, 0
    both = asyncio.Event()

    async def script(line: Line) -> None:
        nonlocal open_now, most
        await line.request()
        open_now += 1
        most = max(most, open_now)
        if open_now > 1:
            both.set()
        await both.wait()
        await asyncio.sleep(0.01)
        open_now -= 1
        await line.say(reply(headers={"connection": "close"}))

    async with Peer(script) as peer, opened() as http, running(store.outbox, http) as dispatching:
        deliveries = [named(peer, str(number)) for number in range(8)]
        await put(store.outbox, *deliveries, wake=dispatching)
        for number in range(8):
            await ended(store.outbox, f"msg_{number}")
    assert most == 2
    assert len(peer.requests) == 8


async def test_a_receiver_that_is_silent_holds_up_nobody_else(store: Store) -> None:
    async def silent(line: Line) -> None:
        await line.request()
        await line.until_gone()

    async with (
        Peer(silent) as mute,
        Peer(WELL) as well,
        opened() as http,
        running(store.outbox, http, timeout=25) as dispatching,
    ):
        quiet = [named(mute, f"quiet{number}") for number in range(20)]
        await put(store.outbox, *quiet, named(well), wake=dispatching)
        await ended(store.outbox)
        await until_so(lambda: len(mute.requests) == 2)


async def test_a_delivery_passes_every_point_of_its_way(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faults, "is_armed", True)
    monkeypatch.setattr(faults, "_passed", {})
    async with Peer(WELL) as peer, opened() as http, running(store.outbox, http) as dispatching:
        await put(store.outbox, named(peer), wake=dispatching)
        await ended(store.outbox)
        await dispatching.settled()
    names = ("leased", "before_send", "after_send", "before_mark", "after_mark")
    assert [faults.passed()[f"outbox.{name}"] for name in names] == [1] * 5


# ------------------------------------------------------------------------- A63: at dispatch


async def test_a63_a_name_that_is_public_when_it_is_named_and_inward_when_dialled(
    store: Store,
) -> None:
    addresses = iter(["8.8.8.8"])

    async def rebinding(host: str, port: int) -> Sequence[str]:
        del host, port
        return [next(addresses, "127.0.0.1")]

    async with Peer(WELL) as peer, opened(lookup=rebinding) as http:
        url = "https://hooks.example:8443/in"
        await CallbackAddresses(http, store.outbox).check(url, SENDER)
        async with running(store.outbox, http) as dispatching:
            await put(store.outbox, delivery(url=url), wake=dispatching)
            dead = await ended(store.outbox, state="dead")
        assert dead.reason == "its address may not be dialled"
        assert (dead.attempts, peer.connections) == (3, 0)


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1:{port}/",
        "http://127.0.0.1:{port}/",
        "https://[::ffff:127.0.0.1]:{port}/",
        "https://localhost:{port}/",
    ],
)
async def test_a63_what_got_into_the_outbox_is_judged_again(store: Store, url: str) -> None:
    async with Peer(WELL) as peer, opened() as http, running(store.outbox, http) as dispatching:
        await put(store.outbox, delivery(url=url.format(port=peer.port)), wake=dispatching)
        assert (await ended(store.outbox, state="dead")).reason == "its address may not be dialled"
        assert peer.connections == 0


async def test_a63_a_redirect_inward_is_not_followed(store: Store) -> None:
    async with Peer(WELL) as inner, opened() as http:
        location = {"location": f"http://127.0.0.1:{inner.port}/", "connection": "close"}
        moved = answering(reply(status=302, headers=location))
        async with Peer(moved) as outer, running(store.outbox, http) as dispatching:
            await put(store.outbox, named(outer), wake=dispatching)
            assert (await ended(store.outbox, state="dead")).status == 302
        assert inner.connections == 0


# ------------------------------------------------------------------------- A64: what is answered


async def test_a64_an_answer_without_end_is_taken_to_64_kib(store: Store) -> None:
    async def endless(line: Line) -> None:
        await line.request()
        await line.say(head(200, {"transfer-encoding": "chunked"}))
        while True:
            await line.say(chunk(bytes(16 * 1024)))

    async with Peer(endless) as peer, opened() as http, running(store.outbox, http) as dispatching:
        await put(store.outbox, named(peer), wake=dispatching)
        assert (await ended(store.outbox)).attempts == 1
        assert peer.connections == 1


async def test_a64_a_bomb_of_an_answer_is_its_status_alone_and_is_not_unpacked(
    store: Store,
) -> None:
    bomb = reply(b"\x1f\x8b", headers={"content-encoding": "gzip", "connection": "close"})
    async with (
        Peer(answering(bomb)) as peer,
        opened() as http,
        running(store.outbox, http) as dispatching,
    ):
        await put(store.outbox, named(peer), wake=dispatching)
        assert (await ended(store.outbox, state="delivered")).status == 200


async def test_a64_a_receiver_that_never_answers_is_given_up_in_time(store: Store) -> None:
    async def silent(line: Line) -> None:
        await line.request()
        await line.until_gone()

    clock = LoopClock()
    async with (
        Peer(silent) as peer,
        opened() as http,
        running(store.outbox, http, schedule=(0,), timeout=20) as dispatching,
    ):
        await put(store.outbox, named(peer), wake=dispatching)
        await asyncio.wait_for(peer.asked.wait(), LONG)
        await clock.sleep(30)
        assert (await ended(store.outbox, state="dead")).reason == "it did not answer in time"


# ------------------------------------------------------------------------- stopping


async def test_a_drain_lets_what_is_on_its_way_arrive_and_begins_nothing(store: Store) -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def script(line: Line) -> None:
        await line.request()
        asked.set()
        await go_on.wait()
        await line.say(reply())

    async with Peer(script) as peer, opened() as http, running(store.outbox, http) as dispatching:
        await put(store.outbox, named(peer), wake=dispatching)
        await asked.wait()
        draining = asyncio.create_task(dispatching.drain(30))
        await asyncio.sleep(0)
        await put(store.outbox, named(peer, "2"), wake=dispatching)
        assert not draining.done()
        go_on.set()
        await draining
        assert (await ended(store.outbox)).attempts == 1
        assert (await ended(store.outbox, "msg_2", "pending")).attempts == 0
        assert len(peer.requests) == 1


async def test_a_drain_without_time_and_a_close_leave_the_delivery_to_the_next(
    store: Store,
) -> None:
    asked = asyncio.Event()

    async def silent(line: Line) -> None:
        await line.request()
        asked.set()
        await line.until_gone()

    async with Peer(silent) as peer, opened() as http:
        async with running(store.outbox, http) as dispatching:
            await put(store.outbox, named(peer), wake=dispatching)
            await asked.wait()
            await dispatching.drain(0)
        await peer.gone.wait()
        left = await store.outbox.find("msg_1")
        assert left is not None
        assert (left.state, left.attempts) == ("pending", 0)
        assert left.due > SystemClock().wall_us()  # when the lease has run out


async def test_one_that_was_never_started_can_be_drained_and_closed() -> None:
    async with opened() as http:
        dispatching = dispatcher(MemoryOutbox(), http, SystemClock())
        await dispatching.drain(1)
        await dispatching.close()


# ------------------------------------------------------------------------- a store that fails


class Failing(MemoryOutbox):
    """Cannot be read or written for a while."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error: Exception | None = error
        self.failed = 0

    def _fail(self) -> None:
        if self.error is not None:
            self.failed += 1
            raise self.error

    async def next_due(self, now: int, *, per_receiver: int = 2) -> int | None:
        self._fail()
        return await super().next_due(now, per_receiver=per_receiver)


class Unmarked(MemoryOutbox):
    """Cannot note what became of a delivery the first time."""

    marks = 0

    async def mark(self, stored: StoredDelivery, outcome: Outcome) -> bool:
        self.marks += 1
        if self.marks == 1:
            raise StorageUnavailable
        return await super().mark(stored, outcome)


@pytest.mark.parametrize("error", [StorageUnavailable(), RuntimeError("a mistake of ours")])
async def test_a_store_that_cannot_be_read_is_read_again(error: Exception) -> None:
    outbox = Failing(error)
    async with Peer(WELL) as peer, opened() as http, running(outbox, http) as dispatching:
        await put(outbox, named(peer))
        await until_so(lambda: outbox.failed > 0)
        outbox.error = None
        dispatching.wake()
        await ended(outbox)


async def test_what_could_not_be_marked_stays_leased_and_nothing_else_stops() -> None:
    outbox = Unmarked()
    async with Peer(WELL) as peer, opened() as http, running(outbox, http) as dispatching:
        await put(outbox, named(peer), wake=dispatching)
        await until_so(lambda: outbox.marks == 1)
        await put(outbox, named(peer, "2"), wake=dispatching)
        await ended(outbox, "msg_2")
        assert outbox.stored["msg_1"].state == "pending"
