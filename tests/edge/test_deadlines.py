"""Whoever takes too long is cut off: silent, dripping, or never reading."""

import asyncio
import socket
import time
from contextlib import ExitStack

import pytest

from carnet.http.exchange import Receive, Scope, Send
from carnet.http.link import body_seconds
from carnet.http.server import sweep
from carnet.testing.wait import until, until_so
from tests.edge.test_clock import LIMITS, Patient, served
from tests.edge.wire import CHAT, HEAD, PATIENCE_SECONDS, Wire, answers, ask
from tests.support.organisation import Organisation
from tests.support.served import executions

HEAD_SECONDS, BODY_SECONDS, STALL_SECONDS = 1.0, 2.0, 2.0
SLACK_SECONDS = 10.0  # a sweep comes every half second, on a machine that does other things too
ROUND_SECONDS = (
    0.1  # the gateway's clock stands still, at whole milliseconds, while its loop goes round
)
KEPT_ALIVE = b"GET /healthz HTTP/1.1\r\n" + HEAD + b"\r\n"


def test_a_silent_connection_is_closed_without_a_word(hasty: Organisation) -> None:
    with Wire(hasty.port) as wire:
        assert wire.read_to_end() == b""
        assert HEAD_SECONDS - ROUND_SECONDS <= wire.age < HEAD_SECONDS + SLACK_SECONDS


@pytest.mark.parametrize(
    ("first", "piece"),
    [(b"GET / HTTP/1.1\r\n" + HEAD + b"X-A: ", b"a"), (b"", b"\r\n"), (b"GET /", b"a")],
    ids=["field", "line breaks", "target"],
)
def test_a_head_that_drips_is_refused(hasty: Organisation, first: bytes, piece: bytes) -> None:
    with Wire(hasty.port) as wire:
        wire.send(first)
        (answer,) = answers(wire.drip(piece))
        assert (answer.status, answer.code) == (408, "header_timeout")
        assert HEAD_SECONDS - ROUND_SECONDS <= wire.age < HEAD_SECONDS + SLACK_SECONDS


def test_line_breaks_without_end_are_refused_after_a_request_too(hasty: Organisation) -> None:
    with Wire(hasty.port) as wire:
        wire.send(KEPT_ALIVE)
        wire.read_until(b"}")
        (answer,) = answers(wire.drip(b"\r\n"))
        assert (answer.status, answer.code) == (408, "header_timeout")
        assert wire.age < HEAD_SECONDS + SLACK_SECONDS


@pytest.mark.parametrize(
    ("framing", "piece"),
    [(b"content-length: 1000", b" "), (b"transfer-encoding: chunked", b"1\r\n \r\n")],
    ids=["length", "chunks"],
)
def test_a_body_that_drips_is_refused_and_nothing_runs(
    hasty: Organisation, framing: bytes, piece: bytes
) -> None:
    before = executions(hasty.folder, "echo")
    with Wire(hasty.port) as wire:
        wire.send(CHAT + b"authorization: Bearer " + hasty.token.encode() + b"\r\n")
        wire.send(framing + b"\r\n\r\n")
        (answer,) = answers(wire.drip(piece))
        assert (answer.status, answer.code) == (408, "body_timeout")
        assert BODY_SECONDS - ROUND_SECONDS <= wire.age < BODY_SECONDS + SLACK_SECONDS
    assert executions(hasty.folder, "echo") == before


def test_a_body_has_to_come_at_a_rate_after_a_while() -> None:
    assert body_seconds(0, 30.0) == 5.0
    assert body_seconds(10 * 1024, 30.0) == 15.0
    assert body_seconds(100 * 1024, 30.0) == 30.0
    assert body_seconds(0, 2.0) == 2.0


@pytest.mark.parametrize("behind", [b"", KEPT_ALIVE], ids=["alone", "with another behind it"])
def test_a_reader_that_never_reads_is_cut_off_and_its_agent_stopped(
    acme: Organisation, behind: bytes
) -> None:
    stopped = len(executions(acme.folder, "flood-stopped"))
    with Wire(acme.port, receive_buffer=4096) as wire:
        wire.send(ask(acme.token, "go", "flood", stream=True) + behind)
        until(lambda: len(executions(acme.folder, "flood-stopped")) == stopped + 1)
        assert wire.age < STALL_SECONDS + SLACK_SECONDS
        assert b"[DONE]" not in wire.read_to_end()


class Talker(Patient):
    """An application that talks without end, as far as it is listened to."""

    pieces = 0  # of its answer

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not self.may_read.is_set():
            await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})
            self.pieces += 1
            await asyncio.sleep(0)


async def test_a_slow_reader_that_reads_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is moved by hand, for the whole loop."""
    loop, ahead, app = asyncio.get_running_loop(), 0.0, Talker()
    time_of_loop = loop.time
    monkeypatch.setattr(loop, "time", lambda: time_of_loop() + ahead)
    async with served(app) as place:
        reader, writer = await place.connect()
        writer.write(b"GET /x HTTP/1.1\r\nhost: a\r\n\r\n")
        connection = await place.connection(b"/x")
        transport, flow = connection.transport, connection.flow
        for _ in range(5):
            before = app.pieces
            ahead += LIMITS.write_stall_seconds - 5
            while app.pieces == before:
                assert await reader.read(65_536)
            await until_so(lambda: flow.write_paused or transport.is_closing())
            sweep([connection], loop.time())
            assert not transport.is_closing()
        ahead += LIMITS.write_stall_seconds + 1
        sweep([connection], loop.time())
        assert transport.is_closing()
        writer.close()


def test_two_hundred_slow_connections_do_not_hold_up_a_healthy_one(hasty: Organisation) -> None:
    with ExitStack() as stack:
        slow = [stack.enter_context(Wire(hasty.port)) for _ in range(200)]
        for number, wire in enumerate(slow):
            wire.send((b"GET / HTTP/1.1\r\n", b"", CHAT)[number % 3])
        waits = []
        open_ones = list(slow)
        while open_ones:
            began = time.monotonic()
            assert hasty.chat("hello").text == "hello"
            waits.append(time.monotonic() - began)
            assert slow[0].age < PATIENCE_SECONDS
            open_ones = [wire for wire in open_ones if not is_closed(wire.socket)]
        assert sorted(waits)[len(waits) // 2] < HEAD_SECONDS
        assert slow[-1].age < HEAD_SECONDS + SLACK_SECONDS


def is_closed(connection: socket.socket) -> bool:
    """Whether the other side has hung up; what it said before is passed over."""
    connection.setblocking(False)  # noqa: FBT003  the name of the method is the sentence
    try:
        while connection.recv(65_536):
            pass
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
    return True
