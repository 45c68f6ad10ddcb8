"""The small stand-ins behave as what they stand for."""

import asyncio
import gc
import weakref
from typing import Any

import pytest

from carnet.http.arrival import Few, Signal
from carnet.http.exchange import Disconnected, DisconnectWatch
from carnet.http.link import LINE, Line


async def test_a_signal_wakes_all_who_wait_and_lets_the_next_pass() -> None:
    signal = Signal()
    waiting = [asyncio.create_task(signal.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    signal.set()
    await asyncio.gather(*waiting[1:])
    await signal.wait()
    with pytest.raises(asyncio.CancelledError):
        await waiting[0]


async def test_a_signal_that_was_cleared_before_the_waiter_ran_makes_it_wait_on() -> None:
    signal = Signal(is_set=True)
    signal.clear()
    waiting = asyncio.create_task(signal.wait())
    await asyncio.sleep(0)
    signal.set()
    signal.clear()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not waiting.done()
    signal.set()
    await waiting


class Request:
    """What uvicorn makes of one, as far as a line looks."""

    def __init__(self) -> None:
        self.scope: dict[str, Line] = {}
        self.written: list[bytes] = []
        self.transport = self
        self.flow = self
        self.message_event = Signal()
        self.default_headers = [(b"date", b"today")]
        self.ended = 0
        self.keep_alive = True
        self.body = bytearray()
        self.read_paused = False
        self.write_paused = self.disconnected = self.waiting_for_100_continue = False
        self.response_started = self.response_complete = self.more_body = False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def resume_reading(self) -> None:
        self.read_paused = False

    def on_response(self) -> None:
        self.ended += 1


def a_request() -> tuple[Line, Any]:
    request: Any = Request()
    request.scope["line"] = line = Line(request)
    return line, request


def test_a_whole_answer_is_written_at_once() -> None:
    line, request = a_request()
    assert line.reply(200, [(b"content-length", b"2")], b"ok")
    assert request.written == [b"HTTP/1.1 200 OK\r\ndate: today\r\ncontent-length: 2\r\n\r\nok"]
    assert (request.response_complete, request.ended) == (True, 1)
    assert not line.reply(200, [], b"twice")


@pytest.mark.parametrize("value", [b"a\r\nx: y", b"a\nb", b"a\rb"])
def test_a_header_that_would_end_its_line_is_not_written(value: bytes) -> None:
    line, request = a_request()
    with pytest.raises(ValueError, match="end its line"):
        line.reply(200, [(b"x", value)], b"")
    assert request.written == []


@pytest.mark.parametrize(
    "name", ["write_paused", "disconnected", "waiting_for_100_continue", "response_started"]
)
def test_an_unusual_answer_goes_the_long_way(name: str) -> None:
    line, request = a_request()
    setattr(request, name, True)
    assert not line.reply(200, [], b"")
    assert request.written == []


def test_a_connection_whose_body_was_not_sent_for_is_not_kept() -> None:
    line, request = a_request()
    request.waiting_for_100_continue = request.more_body = True
    assert not line.reply(404, [], b"")
    assert not request.keep_alive


def test_a_body_that_has_come_is_taken_once_and_reading_goes_on() -> None:
    line, request = a_request()
    request.body, request.read_paused = bytearray(b"abc"), True
    assert line.take_body() == b"abc"
    assert line.take_body() == b""
    assert not request.read_paused


@pytest.mark.parametrize(
    "name", ["more_body", "disconnected", "response_complete", "waiting_for_100_continue"]
)
def test_a_body_that_has_not_come_is_waited_for(name: str) -> None:
    line, request = a_request()
    setattr(request, name, True)
    assert line.take_body() is None
    assert Line().take_body() is None


def test_of_a_head_that_was_read_the_server_keeps_what_it_writes_the_answer_with() -> None:
    line, request = a_request()
    request.scope.update(method="POST", path="/", headers=[(b"host", b"here")])
    line.forget_head()
    assert request.scope == {"method": "POST", LINE: line}
    Line().forget_head()


def test_a_line_does_not_keep_its_request() -> None:
    line, request = a_request()
    request.transport = request.flow = None
    gone = weakref.ref(request)
    gc.disable()
    try:
        del request
        assert gone() is None
    finally:
        gc.enable()
    assert not line.reply(200, [], b"")


def test_a_few_are_taken_from_both_ends() -> None:
    few = Few[int]()
    assert not few
    few.appendleft(1)
    few.appendleft(2)
    few.appendleft(3)
    assert (few.pop(), few.popleft(), list(few)) == (1, 3, [2])


async def test_a_client_that_goes_away_cancels_who_watches_it() -> None:
    line = Line()
    asyncio.get_running_loop().call_soon(line.go)
    with pytest.raises(Disconnected), DisconnectWatch(line):
        await asyncio.sleep(60)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_client_that_has_gone_before_is_noticed_at_the_first_wait() -> None:
    line = Line()
    line.go()
    with pytest.raises(Disconnected), DisconnectWatch(line):
        await asyncio.sleep(60)


async def test_a_client_that_goes_away_later_is_nobodys_business() -> None:
    line = Line()
    with DisconnectWatch(line):
        await asyncio.sleep(0)
    line.go()
    await asyncio.sleep(0)


async def test_a_cancellation_by_others_stays_one() -> None:
    async def watched() -> None:
        with DisconnectWatch(Line()):
            await asyncio.sleep(60)

    task = asyncio.create_task(watched())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
