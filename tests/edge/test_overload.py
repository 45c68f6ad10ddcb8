"""More than the gateway takes: work is refused early, and its health can still be asked after."""

import asyncio
import resource
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest
from msgspec import structs

from carnet.errors import CarnetError, Overloaded
from carnet.http.arrival import RequestIds
from carnet.http.link import EdgeLimits
from carnet.http.protocol import SPARE_CONNECTIONS, HardProtocol
from carnet.http.proxies import Proxies
from carnet.http.refusal import Refusing
from carnet.http.server import OTHER_FILES, Server, make_server, room_for, sweep
from carnet.runtime.system import SystemClock
from carnet.testing.wait import until, until_so
from carnet.wire.dialects import DIALECTS
from tests.edge.test_clock import LIMITS, Patient, later
from tests.edge.wire import CHAT, HEAD, Wire, answers, ask, chat, say
from tests.support.http import Reply, chat_body
from tests.support.organisation import Organisation
from tests.support.served import AGENTS, CONFIG, executions

VITAL = (b"/healthz", b"/readyz", b"/metrics?x=y")
KEPT, REQUESTS = 12, 6
SMALL = f"""
[agents.narrow]
kind = "python"
target = "agents:slow"
concurrency = 1
price = "0.01"

[limits]
queue_seconds = 0.3
connections = {KEPT}
requests = {REQUESTS}
chat_body_bytes = 1048576
bodies_bytes = 4194304
"""


def get(path: bytes) -> bytes:
    return b"GET %s HTTP/1.1\r\n" % path + HEAD + b"\r\n"


class Place:
    """A server in this process."""

    def __init__(self, limits: EdgeLimits) -> None:
        self.app = Patient()
        self.refused: list[CarnetError] = []
        self.up = asyncio.Event()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.server: Server = make_server(
            self.app,
            sockets=[self.socket],
            limits=limits,
            note=self.refused.append,
            proxies=Proxies(),
            refusing=Refusing(DIALECTS),
            request_ids=RequestIds(b"seed", SystemClock().wall_us),
            drain=self.drain,
            on_listening=self.up.set,
        )
        self.writers: list[asyncio.StreamWriter] = []

    async def drain(self) -> None:
        """There is nothing to drain."""

    async def say(self, data: bytes) -> asyncio.StreamReader:
        port = self.socket.getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        self.writers.append(writer)
        writer.write(data)
        return reader

    def connections(self) -> list[HardProtocol]:
        found = list(self.server.server_state.connections)
        assert all(isinstance(connection, HardProtocol) for connection in found)
        return found  # type: ignore[return-value]

    @property
    def held(self) -> int:
        protocol = self.server.config.http_protocol_class
        assert issubclass(protocol, HardProtocol)
        return protocol.held.size

    def hang_up(self) -> None:
        for writer in self.writers:
            writer.close()


@asynccontextmanager
async def served(**changes: int) -> AsyncIterator[Place]:
    place = Place(structs.replace(LIMITS, **changes))
    serving = asyncio.create_task(place.server.serve())
    try:
        await asyncio.wait_for(place.up.wait(), 30)
        yield place
    finally:
        place.app.may_read.set()
        place.hang_up()
        place.server.should_exit = True
        await serving


def is_over(reader: asyncio.StreamReader) -> bool:
    return reader.at_eof() or reader.exception() is not None


async def whole(reader: asyncio.StreamReader) -> bytes:
    return await asyncio.wait_for(reader.read(), 30)


async def test_beyond_so_many_requests_only_health_is_answered() -> None:
    async with served(requests=2) as place:
        for _ in range(2):
            await place.say(get(b"/x"))
        await until_so(lambda: len(place.server.server_state.tasks) == 2)
        (answer,) = answers(await whole(await place.say(CHAT + b"content-length: 9999\r\n\r\n")))
        assert (answer.status, answer.code) == (503, "overloaded")
        assert answer.headers["retry-after"] == "1"
        assert answer.headers["connection"] == "close"
        assert [type(error) for error in place.refused] == [Overloaded]
        readers = [await place.say(get(path)) for path in VITAL]
        await until_so(lambda: len(place.server.server_state.tasks) == 5)
        place.app.may_read.set()
        for reader in readers:
            assert (await asyncio.wait_for(reader.readuntil(b"ok"), 30)).startswith(b"HTTP/1.1 200")
        assert len(place.refused) == 1
        await until_so(lambda: not place.server.server_state.tasks)
        reader = await place.say(get(b"/x"))  # and when there is room again it is used
        assert (await asyncio.wait_for(reader.readuntil(b"ok"), 30)).startswith(b"HTTP/1.1 200")


async def test_a_request_behind_others_on_its_connection_is_not_answered_before_them() -> None:
    async with served(requests=1) as place:
        reader = await place.say(get(b"/x"))
        await until_so(lambda: len(place.server.server_state.tasks) == 1)
        place.writers[0].write(get(b"/x"))
        await until_so(lambda: len(place.refused) == 1)
        place.app.may_read.set()
        data = await whole(reader)
        assert data.count(b"HTTP/1.1 ") == 1
        assert data.startswith(b"HTTP/1.1 200 ")


async def test_beyond_so_many_connections_only_health_is_answered() -> None:
    async with served(connections=2) as place:
        place.app.may_read.set()
        for _ in range(2):
            await place.say(b"")
        await until_so(lambda: len(place.connections()) == 2)
        (answer,) = answers(await whole(await place.say(get(b"/x"))))
        assert (answer.status, answer.code) == (503, "overloaded")
        reader = await place.say(get(b"/healthz"))
        assert (await asyncio.wait_for(reader.readuntil(b"ok"), 30)).startswith(b"HTTP/1.1 200")
        spare = [one for one in place.connections() if one.url == b"/healthz"]
        sweep(spare, later(2.5))  # and it is not kept
        assert await whole(reader) == b""


async def test_a_spare_connection_that_says_nothing_is_not_kept_for_long() -> None:
    async with served(connections=1) as place:
        await place.say(b"")
        await until_so(lambda: len(place.connections()) == 1)
        reader = await place.say(b"GET /heal")
        await until_so(lambda: any(one.url for one in place.connections()))
        sweep(place.connections(), later(2.5))
        (answer,) = answers(await whole(reader))
        assert (answer.status, answer.code) == (408, "header_timeout")
        assert len(place.connections()) >= 1


async def test_beyond_the_spare_connections_one_is_closed_at_once() -> None:
    async with served(connections=1) as place:
        readers = [await place.say(b"") for _ in range(1 + SPARE_CONNECTIONS + 5)]
        await until_so(lambda: len(place.connections()) == 1 + SPARE_CONNECTIONS)
        await until_so(lambda: sum(is_over(reader) for reader in readers) == 5)
        place.app.may_read.set()
        probe = readers.index(next(reader for reader in readers[1:] if not is_over(reader)))
        place.writers[probe].write(get(b"/healthz"))
        answer = await asyncio.wait_for(readers[probe].readuntil(b"ok"), 30)
        assert answer.startswith(b"HTTP/1.1 200")


async def test_large_bodies_are_bounded_together_and_let_go_of_in_the_end() -> None:
    head = CHAT + b"content-length: %d\r\n\r\n"
    async with served(bodies_bytes=400_000, body_bytes=300_000) as place:
        place.app.may_read.set()
        half = await place.say(head % 300_000 + b"a" * 290_000)
        await until_so(lambda: place.held >= 200_000)
        (answer,) = answers(await whole(await place.say(head % 290_000 + b"a" * 290_000)))
        assert (answer.status, answer.code) == (503, "overloaded")
        small = await place.say(head % 60_000 + b"a" * 60_000)  # these are not counted
        assert (await asyncio.wait_for(small.readuntil(b"ok"), 30)).startswith(b"HTTP/1.1 200")
        place.writers[0].write(b"a" * 10_000)
        assert (await asyncio.wait_for(half.readuntil(b"ok"), 30)).startswith(b"HTTP/1.1 200")
        place.hang_up()
        await until_so(lambda: place.held == 0)


async def test_one_caller_may_fill_its_share_of_the_large_bodies_and_others_have_room() -> None:
    """A credential has one share, however it is written, and an address that of two."""
    head = CHAT + b"%scontent-length: 300000\r\n\r\n" + b"a" * 290_000
    senders = [b"authorization: BEARER %d\r\n" % number for number in range(9)]
    async with served(bodies_bytes=1_600_000, body_bytes=300_000) as place:
        place.app.may_read.set()
        for sender in senders[:2]:
            before = place.held
            reader = await place.say(head % sender)
            await until_so(lambda before=before: place.held - before >= 200_000)  # type: ignore[misc]  # it cannot infer a lambda with a default
            (answer,) = answers(await whole(await place.say(head % sender.lower())))
            assert (answer.status, answer.code) == (503, "overloaded")
            assert answer.headers["retry-after"] == "1"
            place.writers[-2].write(b"a" * 10_000)
            assert (await asyncio.wait_for(reader.readuntil(b"ok"), 30)).startswith(b"HTTP/1.1 200")
        refused = len(place.refused)
        for invented in senders[2:]:  # of credentials there are as many as somebody wishes
            await place.say(head % invented)
        await until_so(lambda: len(place.refused) > refused and place.held >= 400_000)
        assert place.held <= 800_000
        place.hang_up()
        await until_so(lambda: place.held == 0)
        await place.say(head % b"")
        await until_so(lambda: place.held >= 200_000)
        (answer,) = answers(await whole(await place.say(head % b"")))  # it is the address
        assert (answer.status, answer.code) == (503, "overloaded")


async def test_an_answer_lets_go_of_its_own_body_and_not_of_the_one_behind_it() -> None:
    head = CHAT + b"content-length: %d\r\n\r\n"
    async with served(bodies_bytes=400_000, body_bytes=300_000) as place:
        reader = await place.say(get(b"/x") + head % 200_000 + b"a" * 150_000)
        await until_so(lambda: place.held > 0)
        held = place.held
        place.app.may_read.set()
        assert (await asyncio.wait_for(reader.readuntil(b"ok"), 30)).startswith(b"HTTP/1.1 200")
        assert place.held >= held
        place.hang_up()
        await until_so(lambda: place.held == 0)


async def test_a_client_that_left_behind_a_request_that_waits_is_noticed() -> None:
    async with served() as place:
        await place.say(get(b"/x") + get(b"/x"))
        await until_so(lambda: len(place.connections()) == 1)
        (connection,) = place.connections()
        await until_so(lambda: connection.flow.read_paused)
        place.hang_up()
        await until_so(lambda: not place.connections())


def test_the_limit_of_files_leaves_room_for_what_else_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    was = [(1024, 4096)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: was[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: was.append(limits))
    assert room_for(500) == 500
    assert was == [(1024, 4096)]
    assert room_for(10_000) == 4096 - SPARE_CONNECTIONS - OTHER_FILES
    assert was[-1] == (4096, 4096)
    was[:] = [(100, 100)]
    assert room_for(10_000) == 1
    was[:] = [(1024, resource.RLIM_INFINITY)]
    assert room_for(10_000) == 10_000
    assert was[-1][0] == 10_000 + SPARE_CONNECTIONS + OTHER_FILES


# ----------------------------------------------------------------------------- a real gateway


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    gateway = Organisation(tmp_path_factory.mktemp("small"), "small.example")
    gateway.configure(CONFIG + SMALL, agents=AGENTS)
    gateway.start()
    yield gateway
    assert gateway.stop() == 0


def opened(gateway: Organisation, stack: ExitStack, number: int) -> list[Wire]:
    return [stack.enter_context(Wire(gateway.port)) for _ in range(number)]


def test_a_gateway_that_is_full_refuses_work_and_says_that_it_lives(small: Organisation) -> None:
    """F31: nothing is run, and readiness and metrics are answered."""
    scraper = small.new_token("scraper", "--scope", "metrics")
    before = len(executions(small.folder, "echo"))
    with ExitStack() as stack:
        for wire in (busy := opened(small, stack, REQUESTS)):
            wire.send(ask(small.token, "600", "slow", stream=True))
        for wire in busy:
            wire.read_until(b"\n\n\r\n")
        reply = small.chat("hi")
        assert (reply.status, reply.code) == (503, "overloaded")
        assert reply.headers["retry-after"] == "1"
        assert reply.json["error"]["hint"]
        assert small.get("/healthz").json == {"status": "ok"}
        assert small.get("/readyz").json == {"status": "ready"}
        assert b'carnet_refusals_total{code="overloaded"}' in (
            small.get("/metrics", token=scraper).body
        )
        assert len(executions(small.folder, "echo")) == before
    until(lambda: small.chat("hi").status == 200)


def test_connections_that_do_nothing_do_not_keep_a_probe_out(small: Organisation) -> None:
    """F31."""
    with ExitStack() as stack:
        opened(small, stack, KEPT)
        until(lambda: say_closing(small).status == 503)
        assert small.get("/healthz").status == 200
        assert small.get("/readyz").status == 200
    until(lambda: small.chat("hi").status == 200)


def say_closing(gateway: Organisation) -> Reply:
    return gateway.chat("hi", headers=[("connection", "close")])


def test_whoever_waits_for_an_agent_waits_only_so_long(small: Organisation) -> None:
    """F31: what is refused was not run or billed, and a repeat of it runs."""
    ids = [("x-tangle-runid", "conv_narrow"), ("x-tangle-turnid", "conv_narrow.t0.x")]
    with Wire(small.port) as wire:
        wire.send(ask(small.token, "600", "narrow", stream=True))
        wire.read_until(b"\n\n\r\n")
        ran = len(executions(small.folder, "narrow"))
        for stream in (False, True):
            reply = small.chat("1", "narrow", headers=ids if stream else (), stream=stream)
            assert (reply.status, reply.code) == (503, "overloaded")
            assert reply.headers["retry-after"] == "1"
        assert len(executions(small.folder, "narrow")) == ran
    run = small.get("/runs/conv_narrow").json
    assert run["cost"] == "0"
    until(lambda: small.chat("1", "narrow", headers=ids, stream=True).status == 200)


def test_bodies_that_never_end_are_refused_before_they_fill_the_memory(
    small: Organisation,
) -> None:
    body = b" " * 700_000
    half = chat(small.token, body)[:-100_000]
    with ExitStack() as stack:
        codes: list[str] = []

        def refused() -> bool:  # of two that come at once, either may be
            opened(small, stack, 1)[0].send(half)
            codes.append(say(small.port, chat(small.token, body, b"connection: close"))[0].code)
            return codes[-1] == "overloaded"

        until(refused)
        assert set(codes) <= {"overloaded", "invalid_json"}
        assert small.chat("hi").text == "hi"


def test_one_tenant_with_its_share_of_large_bodies_leaves_room_for_another(
    small: Organisation,
) -> None:
    mallory, alice = small.new_token("mallory"), small.new_token("alice")
    body = chat_body("x" * 700_000)

    def seen(token: str) -> int:
        return say(small.port, chat(token, body, b"connection: close"))[0].status

    with ExitStack() as stack:

        def is_full() -> bool:
            opened(small, stack, 1)[0].send(chat(mallory, body)[:-100_000])
            return seen(mallory) == 503

        until(is_full)
        assert seen(alice) == 200


def test_a_gateway_out_of_files_goes_on_listening(small: Organisation) -> None:
    """F31: connections that cannot be accepted are closed, and it recovers by itself."""
    assert small.process is not None
    pid = small.process.pid
    files = Path(f"/proc/{pid}/fd")
    used = len(list(files.iterdir()))
    was = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 5, was[1]))
    try:
        with ExitStack() as stack:
            wires = opened(small, stack, 40)
            closed: list[bytes] = []
            threads = [
                threading.Thread(target=lambda wire=wire: closed.append(wire.read_to_end()))
                for wire in wires
            ]
            for thread in threads:
                thread.start()
            until(lambda: len(closed) >= 30)
            for wire in wires:
                wire.shut()
            for thread in threads:
                thread.join(30)
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, was)
    until(lambda: small.chat("hi").status == 200)
    assert small.process.poll() is None
    until(lambda: len(list(files.iterdir())) <= used + 2)
