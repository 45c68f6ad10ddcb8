"""Clients that leave, stall, or ask the same twice."""

import fcntl
import socket
import struct
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from carnet.testing.wait import until
from tests.faults.scene import LATE_SECONDS, PRICE, Pair, billed, ids, turns
from tests.faults.stores import rows
from tests.support.http import chat_body
from tests.support.organisation import Organisation
from tests.support.served import executions


def descriptors(gateway: Organisation) -> int:
    """How many files and sockets a gateway has open."""
    assert gateway.process is not None
    return len(list(Path(f"/proc/{gateway.process.pid}/fd").iterdir()))


def state_of(gateway: Organisation, run: str) -> Callable[[], bool]:
    """Whether the only turn of a run was cancelled there."""
    return lambda: turns(gateway, run) == [("failed", "cancelled")]


def dial(
    gateway: Organisation, run: str, agent: str, text: str, *, room: int = 0, stream: bool = True
) -> socket.socket:
    """A client on a bare socket that has asked; `room` is its receive buffer."""
    line = socket.socket()
    line.settimeout(30)
    if room:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    line.connect(("127.0.0.1", gateway.port))
    body = chat_body(text, agent, stream=stream)
    fields = [
        ("host", "a"),
        ("authorization", f"Bearer {gateway.token}"),
        ("content-type", "application/json"),
        ("content-length", str(len(body))),
        *ids(run),
    ]
    head = "".join(f"{name}: {value}\r\n" for name, value in fields)
    line.sendall(f"POST /v1/chat/completions HTTP/1.1\r\n{head}\r\n".encode() + body)
    return line


def unread(line: socket.socket) -> int:
    """How many bytes have arrived that nobody has read."""
    return struct.unpack("i", fcntl.ioctl(line, termios.FIONREAD, b"\0" * 4))[0]  # type: ignore[no-any-return]


def leave_by_close(line: socket.socket) -> None:
    line.close()


def leave_by_reset(line: socket.socket) -> None:
    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    line.close()


@pytest.mark.parametrize("leave", [leave_by_close, leave_by_reset])
def test_f21_a_client_that_leaves_mid_stream_cancels_the_turn_at_both(
    leave: Callable[[socket.socket], None], pair: Pair
) -> None:
    run = f"conv_{leave.__name__}"
    before = descriptors(pair.a), descriptors(pair.b), pair.proxy.open
    line = dial(pair.a, run, "drip", "300")
    received = b""
    while b"0 " not in received:
        received += line.recv(4096)
    leave(line)
    until(state_of(pair.b, run))
    until(state_of(pair.a, run))
    assert (billed(pair.a, run), billed(pair.b, run)) == (0, 0)
    until(lambda: descriptors(pair.a) <= before[0] and descriptors(pair.b) <= before[1])
    until(lambda: pair.proxy.open <= before[2])


def test_f21_a_client_that_leaves_before_its_answer_cancels_the_turn_at_both(pair: Pair) -> None:
    line = dial(pair.a, "conv_waiting", "drip", "300", stream=False)
    until(lambda: turns(pair.b, "conv_waiting") == [("running", None)])
    line.close()
    until(state_of(pair.b, "conv_waiting"))
    until(state_of(pair.a, "conv_waiting"))
    assert (billed(pair.a, "conv_waiting"), billed(pair.b, "conv_waiting")) == (0, 0)


def test_f21_many_clients_that_leave_leave_nothing_behind(pair: Pair) -> None:
    before = descriptors(pair.a), descriptors(pair.b)
    lines = [dial(pair.a, f"conv_many_{n}", "drip", "300") for n in range(20)]
    for line in lines:
        assert line.recv(4096).startswith(b"HTTP/1.1 200")
        line.close()
    until(lambda: pair.proxy.open == 0)
    until(lambda: descriptors(pair.a) <= before[0] and descriptors(pair.b) <= before[1])
    running = "SELECT COUNT(*) FROM turn WHERE state = 'running'"
    until(lambda: rows(pair.a, running) == rows(pair.b, running) == [(0,)])


def test_f22_a_client_that_stalls_does_not_hold_up_the_others(pair: Pair) -> None:
    long = "word " * 200_000  # far beyond what sockets buffer
    stalled = dial(pair.a, "conv_stalled", "words", long, room=4096)
    try:
        assert stalled.recv(16).startswith(b"HTTP/1.1 200")
        until(lambda: unread(stalled) > 1500)  # there is more, and nobody takes it
        slowest = 0.0
        for number in range(10):
            began = time.monotonic()
            assert pair.ask(f"conv_beside_{number}").status == 200
            slowest = max(slowest, time.monotonic() - began)
        assert slowest < LATE_SECONDS  # it is cut off after 30
    finally:
        stalled.close()
    until(lambda: turns(pair.a, "conv_stalled")[0][0] != "running")


@pytest.mark.parametrize("agent", ["echo", "spoken"], ids=["here", "there"])
def test_f25_the_same_turn_many_times_at_once_runs_once(agent: str, pair: Pair) -> None:
    run = f"conv_together_{agent}"
    bodies: list[bytes] = []

    def ask() -> None:
        bodies.append(pair.ask(run, agent).body)

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(bodies) == 16
    assert len(set(bodies)) == 1
    where = pair.a if agent == "echo" else pair.b
    assert len([turn for turn in executions(where.folder, agent) if run in turn]) == 1
    if agent == "spoken":
        assert (billed(pair.a, run), billed(pair.b, run)) == (PRICE, PRICE)
