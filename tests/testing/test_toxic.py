"""The proxy does to connections what it says."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from carnet.testing import toxic
from carnet.testing.toxic import Toxic, ToxicProxy
from carnet.testing.wait import until

ANSWER = b"0123456789" * 10


def _answering(listener: socket.socket) -> None:
    while True:
        try:
            line, _ = listener.accept()
        except OSError:
            return
        with line:
            if line.recv(1024):
                line.sendall(ANSWER)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_answering, args=(listener,), daemon=True).start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


@pytest.fixture(scope="module")
def shared(port: int) -> Iterator[ToxicProxy]:
    with ToxicProxy(port) as proxy:
        yield proxy


@pytest.fixture
def proxy(shared: ToxicProxy) -> Iterator[ToxicProxy]:
    yield shared
    shared.toxic = Toxic()
    until(lambda: shared.open == 0)


def call(proxy: ToxicProxy) -> socket.socket:
    line = socket.create_connection(("127.0.0.1", proxy.port), timeout=60)
    line.sendall(b"?")
    return line


def receive(line: socket.socket) -> bytes:
    received = b""
    while data := line.recv(1024):
        received += data
    return received


@pytest.mark.parametrize(
    ("given", "received"),
    [
        (Toxic(), ANSWER),
        (toxic.latency(0.01), ANSWER),
        (toxic.slicer(7), ANSWER),
        (toxic.bandwidth(10_000), ANSWER),
        (toxic.limit_data(25), ANSWER[:25]),
        (toxic.limit_data(b"345"), ANSWER[:6]),
        (toxic.half_close(25), ANSWER[:25]),
        (toxic.garbage(3, b"\xff!"), b"012\xff!"),
        (toxic.garbage(0, b"\xff!"), b"\xff!"),
        (toxic.limit_data(0), b""),
        (toxic.limit_data(b"never said"), ANSWER),
    ],
)
def test_an_answer_arrives_as_the_toxic_lets_it(
    given: Toxic, received: bytes, proxy: ToxicProxy
) -> None:
    proxy.toxic = given
    with closing(call(proxy)) as line:
        assert receive(line) == received


@pytest.mark.parametrize("at", [0, 25])
def test_a_reset_is_a_reset(at: int, proxy: ToxicProxy) -> None:
    proxy.toxic = toxic.reset(at)
    with closing(call(proxy)) as line, pytest.raises(ConnectionResetError):
        receive(line)


@pytest.mark.parametrize("given", [toxic.hang(), toxic.hang(5), toxic.half_close(5)])
def test_a_line_that_hangs_is_open_until_its_caller_lets_go(
    given: Toxic, proxy: ToxicProxy
) -> None:
    proxy.toxic = given
    with closing(call(proxy)) as line:
        if given.then == "hang":
            line.settimeout(0.05)
            with pytest.raises(TimeoutError):
                receive(line)
        else:
            assert receive(line) == ANSWER[:5]
        until(lambda: proxy.open == 1)
    until(lambda: proxy.open == 0)


def test_a_proxy_that_is_down_refuses_and_comes_back_on_its_port(proxy: ToxicProxy) -> None:
    proxy.down()
    with pytest.raises(ConnectionRefusedError):
        call(proxy)
    proxy.up()
    with closing(call(proxy)) as line:
        assert receive(line) == ANSWER


@pytest.mark.parametrize("wrong", [{"slice_bytes": 0}, {"at": -1}, {"at": b""}])
def test_a_toxic_that_makes_no_sense_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="whole bytes"):
        Toxic(**wrong)  # type: ignore[arg-type]
