"""What several watch is read once, and by nobody who has left."""

import asyncio
from collections.abc import Hashable
from contextlib import closing, nullcontext

import pytest

from carnet.console.api import Api
from carnet.console.live import (
    BYTES_A_SECOND,
    MOST_WATCHED,
    PAUSE_SECONDS,
    READ_BYTES,
    REST_SECONDS,
    Change,
    Live,
    LiveFrame,
    Read,
    SharedView,
    Ticks,
    parts_of,
)
from carnet.console.runs.pages import RunPages
from carnet.console.shell import OwnHosts, Shell
from carnet.console.templates import Templates
from carnet.core.messages.events import PIECE_BYTES
from carnet.core.people.identity import Actor, Caller
from carnet.guards.limits import Concurrency
from carnet.guards.readers import Readers
from carnet.http.exchange import Exchange, Message, Send
from carnet.http.link import LINE, Line
from carnet.testing.clock import FakeClock
from tests.console.owner.test_chat import send
from tests.console.pages import an_admin
from tests.gateway.people.browser import Somebody
from tests.support.http import request, stream
from tests.support.organisation import Organisation


class Reads:
    """Counts how often it is read, and waits until it may go on."""

    def __init__(self) -> None:
        self.count = 0
        self.go = asyncio.Event()

    async def __call__(self) -> LiveFrame:
        self.count += 1
        await self.go.wait()
        return LiveFrame(b"%d" % self.count)


def alone(_: str) -> int:
    """The whole of the time is one view's."""
    return 1


async def test_however_many_watch_it_is_read_once_for_all_of_them() -> None:
    clock, reads = FakeClock(), Reads()
    view = SharedView("alice", clock)
    first = asyncio.create_task(view.read(reads, clock.monotonic(), alone))
    await asyncio.sleep(0)
    clock.advance(0.1)  # what is asked for from here on may be newer than what is being read
    now = clock.monotonic()
    others = [asyncio.create_task(view.read(reads, now, alone)) for _ in range(20)]
    await asyncio.sleep(0)
    clock.advance(0.1)
    reads.go.set()
    frames = await asyncio.gather(first, *others)
    assert reads.count == 2
    assert {frame.page for frame in frames} == {b"1", b"2"}
    assert (await view.read(reads, now, alone)).page == b"2"  # what is no older will do


@pytest.mark.parametrize(
    ("size", "parts", "rest"),
    [
        (0, 1, PAUSE_SECONDS),
        (BYTES_A_SECOND - READ_BYTES, 1, 1.0),
        (BYTES_A_SECOND - READ_BYTES, 4, 4.0),
        (BYTES_A_SECOND * 100, 1, REST_SECONDS),
    ],
)
async def test_the_more_there_is_to_read_the_longer_it_rests(
    size: int, parts: int, rest: float
) -> None:
    clock = FakeClock()
    view = SharedView("alice", clock)

    async def read() -> LiveFrame:
        return LiveFrame(b"x" * size)

    began = clock.monotonic()
    await view.read(read, began, lambda _: parts)
    assert view.due == began + rest


def test_who_has_opened_much_makes_nobody_else_wait() -> None:
    opened = [*["mallory"] * 8, "alice"]
    assert (parts_of(opened, "alice"), parts_of(opened, "mallory")) == (2, 16)
    assert parts_of(["alice"], "alice") == 1


def test_who_has_left_is_shown_nothing_more(acme: Organisation, operator: Somebody) -> None:
    browser = operator.browser()
    frames = stream("GET", f"{acme.url}/console/live/runs", [("cookie", browser.cookie)])
    assert next(frames).startswith(b"data: ")
    assert browser.send("DELETE", "/session").status == 200
    assert b"".join(frames).endswith(b"event: end\ndata: {}\n\n")


def test_who_may_less_than_when_she_began_is_shown_nothing_more(
    acme: Organisation, admin: Somebody
) -> None:
    watcher = an_admin(acme)
    browser = watcher.browser()
    frames = stream("GET", f"{acme.url}/console/live/runs", [("cookie", browser.cookie)])
    assert next(frames).startswith(b"data: ")
    path = f"/console/people/{watcher.name}/roles"
    assert send(admin.browser(), path, role="viewer").status == 204
    assert b"".join(frames).endswith(b"event: end\ndata: {}\n\n")
    assert browser.send("GET", "/console/runs").status == 200  # she may still look


def test_one_caller_watches_so_many_at_a_time_and_no_more(acme: Organisation) -> None:
    somebody = Somebody(acme)
    url, own = f"{acme.url}/console/live/runs", [("cookie", somebody.browser().cookie)]
    opened = [stream("GET", url, own) for _ in range(MOST_WATCHED)]
    for frames in opened:
        assert next(frames).startswith(b"data: ")
    refused = request("GET", url, own)
    assert (refused.status, b"%d streams" % MOST_WATCHED in refused.body) == (429, True)
    other = stream("GET", url, [("cookie", Somebody(acme).browser().cookie)])
    with closing(other):
        assert next(other).startswith(b"data: ")
    for frames in opened:
        frames.close()


async def take(message: Message) -> None:
    """A part of an answer, which nobody keeps."""
    del message


def exchange_of(path: str, query: str = "", *, send: Send = take) -> Exchange:
    """A request."""

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    scope = {
        "client": ("127.0.0.1", 1),
        "method": "GET",
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "scheme": "http",
        "headers": [],
        LINE: Line(correlation="c"),
    }
    return Exchange(scope, receive, send)


def caller_named(name: str) -> Caller:
    return Caller(actor=Actor(name=f"token:{name}"), scopes=frozenset({"*"}))


def a_shell(api: Api, readers: Readers) -> Shell:
    return Shell(
        api, Templates(str), domain="acme.example", places=(), hosts=OwnHosts(), readers=readers
    )


class Foretold:
    """Tells of a change after so many looks."""

    def __init__(self, clock: FakeClock, looks: int) -> None:
        self.clock, self.looks, self.count = clock, looks, 0

    async def changed(self, seconds: float) -> bool:
        self.clock.advance(seconds)
        self.count += 1
        return self.count == self.looks


async def looks_between_two_reads(looks: int) -> int:
    """How often it was asked for a change before what is shown was read again."""
    clock, frames = FakeClock(), [LiveFrame(b"last", is_last=True), LiveFrame(b"first")]
    live = Live(Concurrency(per_caller=1, in_all=1), lambda _: False, clock)
    change = Foretold(clock, looks)

    async def read() -> LiveFrame:
        return frames.pop()

    await live.follow(exchange_of("/"), caller_named("alice"), "key", change, read)
    assert frames == []
    return change.count


async def test_it_is_read_again_once_it_has_changed_or_after_a_rest() -> None:
    assert await looks_between_two_reads(looks=4) == 4
    assert await looks_between_two_reads(looks=99) == REST_SECONDS


@pytest.mark.parametrize(
    ("mark", "count"), [(None, 0), ("running", 0), ("waiting", 1)], ids=["none", "same", "other"]
)
async def test_a_page_is_told_at_once_where_the_first_look_has_another_mark(
    mark: str | None, count: int
) -> None:
    live, sent = Live(Concurrency(per_caller=1, in_all=1), lambda _: False, FakeClock()), []

    async def noted(message: Message) -> None:
        sent.append(message.get("body", b""))

    async def read() -> LiveFrame:
        return LiveFrame(b"drawn", is_last=True, mark="running")

    exchange, alice = exchange_of("/", send=noted), caller_named("alice")
    await live.follow(exchange, alice, "key", Ticks(), read, mark=mark)
    assert b"".join(sent).count(b"event: changed\n") == count


class Keys(Live):
    """Keeps the keys of what is watched."""

    def __init__(self) -> None:
        super().__init__(Concurrency(per_caller=1, in_all=1), lambda _: False, FakeClock())
        self.kept: list[Hashable] = []

    async def follow(
        self,
        exchange: Exchange,
        caller: Caller,
        key: Hashable,
        change: Change,
        read: Read,
        *,
        rest: float = REST_SECONDS,
        mark: str | None = None,
    ) -> None:
        del exchange, caller, change, read, rest, mark
        self.kept.append(key)


async def test_what_one_pays_for_is_shared_with_nobody_who_sees_all() -> None:
    async def routes(exchange: Exchange) -> None:
        await exchange.reply(200, [], b"{}")

    api, live = Api(), Keys()
    api.connect(routes)  # type: ignore[arg-type]  # it is called, and no more
    shell = a_shell(api, Readers())
    pages = RunPages(shell, live, lambda _: nullcontext(Ticks()), FakeClock(), url="")
    for name in ("alice", "bob", "alice"):
        await pages.live_list(exchange_of("/", "payer=me"), caller_named(name))
        await pages.live_run(exchange_of("/"), caller_named(name), "conv_1")
    assert (len(live.kept), len(set(live.kept))) == (6, 3)  # the run is the same to both of them


async def test_a_long_answer_is_held_within_what_the_readers_of_its_caller_may_hold() -> None:
    readers, held, sizes = Readers(), [], []

    async def noted(message: Message) -> None:
        held.append(readers.total)
        sizes.append(len(message.get("body", b"")))

    shell = a_shell(Api(), readers)
    for size, is_held in ((10, False), (PIECE_BYTES + 1, True)):
        for path in ("/console/x", "/console/x.json"):
            held.clear()
            sizes.clear()
            exchange, page = exchange_of(path, send=noted), {"text": "x" * size}
            if path.endswith(".json"):
                await shell.show(exchange, caller_named("alice"), "notice.html", page)
            else:
                await shell.write(exchange, caller_named("alice"), "notice.html", page)
            assert set(held) == {sum(sizes) if is_held else 0}
            assert readers.total == 0
