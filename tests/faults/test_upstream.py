"""A → toxic proxy → B: what A says, records and bills when the line to B goes wrong."""

import threading
import time
from dataclasses import replace

import pytest

from carnet.testing import toxic
from carnet.testing.toxic import Toxic
from carnet.testing.wait import until
from tests.faults.scene import (
    BRIEF_SECONDS,
    LATE_SECONDS,
    PRICE,
    Pair,
    billed,
    frames,
    streamed_text,
    turns,
)
from tests.support.http import HeaderList


def failure(lines: list[bytes]) -> str:
    """The code of the one error frame of a stream; it must be there, and nothing called done."""
    found = frames(lines)
    codes = [str(frame["error"]["code"]) for frame in found if frame.get("error")]
    reasons = [c.get("finish_reason") for frame in found for c in frame.get("choices", ())]
    assert "stop" not in reasons
    assert len(codes) == 1
    return codes[0]


def broken_stream(pair: Pair, run: str, given: Toxic, *, more: HeaderList = ()) -> list[bytes]:
    """The lines of an answer to which `given` happens once its first word has arrived."""
    begun, lines = threading.Event(), []
    pair.proxy.toxic = replace(given, after=begun)
    for line in pair.stream(run, more=more):
        lines.append(line)
        if b"one " in line:
            begun.set()
    assert begun.is_set()
    return lines


def check_failed_free(pair: Pair, run: str, code: str) -> None:
    """A has recorded a failure and billed nothing for it."""
    assert turns(pair.a, run) == [("failed", code)]
    assert billed(pair.a, run) == 0


def check_repeat_heals(pair: Pair, run: str) -> None:
    """The same turn again is answered once the line is well; B ran it once more at the most."""
    pair.heal()
    assert pair.ask(run).text == "one two three "
    assert (billed(pair.a, run), billed(pair.b, run)) == (PRICE, PRICE)
    assert turns(pair.a, run) == turns(pair.b, run) == [("done", None)]


def test_f16_a_refused_connection_is_503_until_the_peer_is_back(pair: Pair) -> None:
    pair.proxy.down()
    try:
        reply = pair.ask("conv_refuse")
    finally:
        pair.proxy.up()
    assert (reply.status, reply.code) == (503, "provider_unavailable")
    check_failed_free(pair, "conv_refuse", "provider_unavailable")
    check_repeat_heals(pair, "conv_refuse")


@pytest.mark.parametrize("at", [0, 1], ids=["before the request", "before the answer"])
def test_f16_a_reset_before_the_answer_is_503(at: int, pair: Pair) -> None:
    run = f"conv_reset_{at}"
    pair.proxy.toxic = toxic.reset(at)
    reply = pair.ask(run)
    assert (reply.status, reply.code) == (503, "provider_unavailable")
    check_failed_free(pair, run, "provider_unavailable")
    check_repeat_heals(pair, run)


def test_f16_the_circuit_opens_after_repeated_failures_and_nothing_is_sent(pair: Pair) -> None:
    pair.proxy.toxic = toxic.reset()
    # A connection that was kept from before ends unanswered, which says nothing of the peer.
    pair.ask("conv_open", "fragile")
    for number in range(5):
        assert pair.ask(f"conv_open_{number}", "fragile").code == "provider_unavailable"
    before = pair.proxy.accepted
    reply = pair.ask("conv_open", "fragile")
    assert (reply.status, reply.code) == (503, "circuit_open")
    assert "retry-after" in reply.headers
    assert pair.proxy.accepted == before


def test_f17_a_peer_that_hangs_is_504_at_the_deadline_and_let_go_of(pair: Pair) -> None:
    pair.proxy.toxic = toxic.hang()
    began = time.monotonic()
    reply = pair.ask("conv_hang", more=[("prefer", "wait=1")])
    assert 1 <= time.monotonic() - began < 1 + LATE_SECONDS
    assert (reply.status, reply.code) == (504, "provider_timeout")
    until(lambda: pair.proxy.open == 0)
    check_failed_free(pair, "conv_hang", "provider_timeout")
    check_repeat_heals(pair, "conv_hang")


def test_f17_a_peer_that_hangs_mid_stream_ends_in_an_error_frame(pair: Pair) -> None:
    enough = ("prefer", "wait=5")  # for the first word
    lines = broken_stream(pair, "conv_hang_mid", toxic.hang(b"two "), more=[enough])
    assert failure(lines) == "provider_timeout"
    until(lambda: pair.proxy.open == 0)
    check_failed_free(pair, "conv_hang_mid", "provider_timeout")


CUTS = {
    "mid body": (False, b"one two"),
    "mid event": (True, b"two"),
    "between events": (True, b'two "},"finish_reason":null}]}\n\n'),
}


@pytest.mark.parametrize("how", ["limit_data", "half_close", "reset"])
@pytest.mark.parametrize("where", CUTS)
def test_f18_an_answer_that_breaks_off_is_an_error_and_not_billed(
    where: str, how: str, pair: Pair
) -> None:
    streams, at = CUTS[where]
    run = f"conv_{how}_{where.replace(' ', '_')}"
    broken: Toxic = getattr(toxic, how)(at)
    if streams:
        assert failure(broken_stream(pair, run, broken)) == "provider_error"
    else:
        pair.proxy.toxic = broken
        reply = pair.ask(run)
        assert (reply.status, reply.code) == (502, "provider_error")
    check_failed_free(pair, run, "provider_error")
    until(lambda: pair.proxy.open == 0)
    check_repeat_heals(pair, run)


GARBAGE = {
    "noise": toxic.garbage(),
    "noise in the head": toxic.garbage(10),
    "noise in the body": toxic.garbage(b"one"),
    "not JSON": toxic.garbage(
        0, b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 4\r\n\r\n{{{{"
    ),
    "two lengths": toxic.garbage(
        0, b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}x"
    ),
    "bad chunks": toxic.garbage(
        0, b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n"
    ),
    "bad UTF-8": toxic.garbage(
        0, b'HTTP/1.1 200 OK\r\ncontent-length: 14\r\n\r\n{"choices":"\xff"}'
    ),
    "an answer that is none": toxic.garbage(0, b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]"),
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_f19_garbage_is_a_provider_error_and_not_billed(kind: str, pair: Pair) -> None:
    run = f"conv_garbage_{kind.replace(' ', '_')}"
    pair.proxy.toxic = GARBAGE[kind]
    reply = pair.ask(run)
    assert (reply.status, reply.code) == (502, "provider_error")
    assert b"\\xff" not in reply.body
    check_failed_free(pair, run, "provider_error")


def test_f19_garbage_mid_stream_is_one_error_frame(pair: Pair) -> None:
    lines = broken_stream(pair, "conv_garbage_mid", toxic.garbage(b"two"))
    assert failure(lines) == "provider_error"
    check_failed_free(pair, "conv_garbage_mid", "provider_error")


def test_f20_one_byte_at_a_time_is_the_same_answer(pair: Pair) -> None:
    pair.proxy.toxic = toxic.slicer(1)
    assert pair.ask("conv_bytes").text == "one two three "
    lines = list(pair.stream("conv_bytes_stream"))
    assert lines[-2] == b"data: [DONE]\n"
    assert streamed_text(lines) == "one two three "
    for run in ("conv_bytes", "conv_bytes_stream"):
        assert (billed(pair.a, run), billed(pair.b, run)) == (PRICE, PRICE)


@pytest.mark.parametrize("given", [toxic.slicer(1, 0.1), toxic.latency(5)], ids=["drip", "late"])
def test_f20_a_line_too_slow_ends_at_the_deadline(given: Toxic, pair: Pair) -> None:
    run = f"conv_slow_{given.slice_bytes}"
    pair.proxy.toxic = given
    began = time.monotonic()
    reply = pair.ask(run, "brief")
    assert time.monotonic() - began < BRIEF_SECONDS + LATE_SECONDS
    assert (reply.status, reply.code) == (504, "provider_timeout")
    until(lambda: pair.proxy.open == 0)
    check_failed_free(pair, run, "provider_timeout")
