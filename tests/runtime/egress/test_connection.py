"""The reading of answers, without a socket: what is one, what is none, and where it ends."""

import gc
import socket
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.runtime.egress.connection import (
    MOST_AHEAD,
    MOST_FIELDS,
    MOST_HEAD_BYTES,
    MOST_INTERIM,
    Broken,
    Connection,
    Lost,
)
from tests.runtime.egress.wire import (
    Received,
    Wire,
    asked,
    broken,
    head,
    loop,
    more,
    outcome,
    receive,
)

OK = b"HTTP/1.1 200 OK\r\n"
EMPTY = b"content-length: 0\r\n\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"


@pytest.fixture(scope="module", autouse=True)
def ended_loop() -> Iterator[None]:
    yield
    loop.close()


# ---------------------------------------------------------------------- what is an answer


def test_an_answer_has_a_status_fields_and_a_body() -> None:
    answer = OK + b"X-One:  1\r\nx-one: 2\r\nX-None:\r\ncontent-length: 3\r\n\r\nabc"
    fields = {b"x-one": b"1", b"x-none": b"", b"content-length": b"3"}
    assert receive([answer], ends=False) == Received(200, fields, b"abc", "done", kept=True)


@pytest.mark.parametrize(
    "rest",
    [
        b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        b'3;a=b;c="d"\r\nabc\r\n02\r\nde\r\n0\r\n\r\n',
        b"5\r\nabcde\r\n0\r\nx-late: 1\r\ntransfer-encoding: gzip\r\nx-more:\r\n\r\n",
    ],
)
def test_a_chunked_answer_is_its_chunks_without_extensions_and_trailers(rest: bytes) -> None:
    received = receive([CHUNKED + rest], ends=False)
    assert (received.body, received.end) == (b"abcde", "done")
    assert received.fields == {b"transfer-encoding": b"chunked"}


def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    assert receive([OK + b"\r\n", b"abc"], ends=False).end == "waits"
    assert receive([OK + b"\r\n", b"abc"]) == Received(200, {}, b"abc", "done", kept=False)


def test_an_answer_without_a_length_that_is_reset_is_cut() -> None:
    connection, _ = asked()
    connection.data_received(OK + b"\r\nabc")
    connection.connection_lost(ConnectionResetError("by SECRET"))
    assert connection.take() == b"abc"
    assert outcome(more(connection)) == "Lost: ConnectionResetError"


@pytest.mark.parametrize("status", [b"204", b"304"])
@pytest.mark.parametrize(
    ("claim", "kept"),
    [
        (b"", True),
        (b"content-length: 0\r\n", True),
        (b"content-length: 5\r\n", False),
        (b"transfer-encoding: chunked\r\n", False),
    ],
)
def test_an_answer_that_has_no_body_by_its_status_ends_with_its_head(
    status: bytes,
    claim: bytes,
    kept: bool,  # noqa: FBT001
) -> None:
    received = receive([b"HTTP/1.1 " + status + b" Word\r\n" + claim + b"\r\n"], ends=False)
    assert (received.body, received.end, received.kept) == (b"", "done", kept)


def test_interim_answers_are_passed_over() -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nlink: a\r\n\r\n"
    received = receive([interim, OK + b"x-one: 1\r\n" + EMPTY], ends=False)
    assert received.status == 200
    assert received.fields == {b"x-one": b"1", b"content-length": b"0"}
    assert received.kept


@pytest.mark.parametrize(
    ("line", "fields", "kept"),
    [
        (b"HTTP/1.1", b"", True),
        (b"HTTP/1.1", b"connection: close\r\n", False),
        (b"HTTP/1.1", b"connection: keep-alive, close\r\n", False),
        (b"HTTP/1.0", b"", False),
        (b"HTTP/1.0", b"connection: keep-alive\r\n", True),
    ],
)
def test_a_connection_is_kept_if_both_sides_mean_to(line: bytes, fields: bytes, kept: bool) -> None:  # noqa: FBT001
    assert receive([line + b" 200 OK\r\n" + fields + EMPTY], ends=False).kept is kept


def test_one_connection_serves_one_request_after_the_other() -> None:
    connection, wire = asked()
    for number in (b"1", b"2", b"3"):
        connection.data_received(OK + b"x-" + number + b": y\r\ncontent-length: 1\r\n\r\n" + number)
        assert outcome(head(connection)) == "done"
        assert connection.fields.keys() == {b"x-" + number, b"content-length"}
        assert connection.take() == number
        assert connection.release()
        connection.ask(b"next", b"")
        assert outcome(more(connection)) == "waits"
    assert not wire.is_closed


# ---------------------------------------------------------------------- what is none

NO_ANSWERS = {
    "no status line": b"garbage SECRET\r\n\r\n",
    "a request": b"GET /SECRET HTTP/1.1\r\nhost: a\r\n\r\n",
    "another version": b"HTTP/3.0 200 SECRET\r\n" + EMPTY,
    "no status": b"HTTP/1.1 abc SECRET\r\n\r\n",
    "a status of four digits": b"HTTP/1.1 2000 SECRET\r\n\r\n",
    "a status below 100": b"HTTP/1.1 099 SECRET\r\n\r\n",
    "a switch of protocols": b"HTTP/1.1 101 SECRET\r\n\r\n",
    "an upgrade": b"HTTP/1.1 101 SECRET\r\nconnection: upgrade\r\nupgrade: SECRET\r\n\r\nx",
    "a field without colon": OK + b"SECRET\r\n\r\n",
    "a space before the colon": OK + b"SECRET : 1\r\n\r\n",
    "a folded line": OK + b"a: b\r\n SECRET\r\n" + EMPTY,
    "a fold at once": OK + b"a:\r\n SECRET\r\n" + EMPTY,
    "bare line feeds": b"HTTP/1.1 200 SECRET\ncontent-length: 0\n\n",
    "a bare line feed": OK + b"a: SECRET\n" + EMPTY,
    "a bare return": OK + b"a: SECRET\r" + EMPTY,
    "a NUL in a value": OK + b"a: SECRET\0\r\n" + EMPTY,
    "a NUL in a name": OK + b"SECRET\0: a\r\n" + EMPTY,
    "an empty length": OK + b"content-length:\r\n\r\n",
    "a negative length": OK + b"content-length: -1\r\n\r\n",
    "a signed length": OK + b"content-length: +1\r\n\r\n",
    "a hexadecimal length": OK + b"content-length: 0x1\r\n\r\n",
    "a length beyond 64 bits": OK + b"content-length: 99999999999999999999\r\n\r\n",
    "two lengths": OK + b"content-length: 1\r\ncontent-length: 2\r\n\r\n",
    "the same length twice": OK + b"content-length: 1\r\nContent-Length: 1\r\n\r\n",
    "a list of lengths": OK + b"content-length: 1, 1\r\n\r\n",
    "a length and a coding": OK + b"content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
    "a coding and a length": OK + b"transfer-encoding: chunked\r\ncontent-length: 1\r\n\r\n",
    "an empty coding": OK + b"transfer-encoding:\r\n\r\n",
    "an unknown coding": OK + b"transfer-encoding: SECRET\r\n\r\n",
    "a coding before chunked": OK + b"transfer-encoding: gzip, chunked\r\n\r\n",
    "a coding after chunked": OK + b"transfer-encoding: chunked, identity\r\n\r\n",
    "two codings": OK + b"transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n",
    "two encodings": OK + b"content-encoding: identity\r\ncontent-encoding: gzip\r\n\r\n",
    "chunks before 1.1": b"HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
    "a negative chunk": CHUNKED + b"-1\r\n",
    "a chunk without length": CHUNKED + b"SECRET\r\n",
    "a chunk beyond 64 bits": CHUNKED + b"fffffffffffffffff\r\n",
    "a chunk with bare line feeds": CHUNKED + b"1\nx\n0\n\n",
    "a space after a chunk's length": CHUNKED + b"1 \r\nx\r\n",
    "a chunk longer than its length": CHUNKED + b"1\r\nSECRET\r\n",
    "a line feed in an extension": CHUNKED + b"1;a\nb\r\nx\r\n0\r\n\r\n",
    "a length in a trailer": CHUNKED + b"0\r\ncontent-length: 1\r\n\r\n",
    "an interim answer with a length": b"HTTP/1.1 103 A\r\ncontent-length: 6\r\n\r\nSECRET",
    "an interim answer in chunks": b"HTTP/1.1 103 A\r\ntransfer-encoding: chunked\r\n\r\n",
    "too many interim answers": b"HTTP/1.1 103 A\r\n\r\n" * (MOST_INTERIM + 1),
    "too many fields": OK + b"".join(b"x-%d: 1\r\n" % n for n in range(MOST_FIELDS + 1)) + EMPTY,
    "a field too often": OK + b"x: 1\r\n" * (MOST_FIELDS + 1) + EMPTY,
    "a value too large": OK + b"x: " + b"a" * MOST_HEAD_BYTES + b"\r\n" + EMPTY,
    "a value without end": OK + b"x: " + b"a" * MOST_HEAD_BYTES,
    "a phrase without end": b"HTTP/1.1 200 " + b"a" * MOST_HEAD_BYTES,
}


@pytest.mark.parametrize("name", NO_ANSWERS)
def test_what_has_no_single_reading_is_no_answer(name: str) -> None:
    reason = broken(NO_ANSWERS[name])
    assert "SECRET" not in reason
    assert broken(*(bytes([byte]) for byte in NO_ANSWERS[name])) == reason or "large" in reason


def test_a_large_head_is_refused_beside_its_body_as_well() -> None:
    large = b"x: " + b"a" * MOST_HEAD_BYTES + b"\r\n"
    assert broken(OK + large + b"content-length: 3\r\n\r\nabc") == "its head is too large"
    body = b"a" * (2 * MOST_HEAD_BYTES)
    assert receive([OK + b"content-length: %d\r\n\r\n" % len(body) + body], ends=False).body == body


def test_framing_without_a_body_is_bounded() -> None:
    extension = b"1;" + b"a" * MOST_HEAD_BYTES
    trailer = b"1\r\nx\r\n0\r\n"
    assert "framing" in broken(CHUNKED, extension)
    assert "framing" in broken(CHUNKED + trailer, b"x-late: ", b"a" * MOST_HEAD_BYTES)
    chatty = b"1;ext=abcdefgh\r\nx\r\n" * MOST_HEAD_BYTES  # much framing, but between pieces
    received = receive([CHUNKED, chatty, b"0\r\n\r\n"], ends=False)
    assert (len(received.body), received.end) == (MOST_HEAD_BYTES, "done")


@pytest.mark.parametrize(
    "answer",
    [b"", b"HTTP/1.1 2", OK, OK + b"content-length: 2\r\n\r\n1", CHUNKED + b"1\r\nx\r\n"],
)
def test_an_answer_that_ends_early_is_lost(answer: bytes) -> None:
    assert receive([answer]).end == "Lost: closed"


# ---------------------------------------------------------------------- what was not asked for


@pytest.mark.parametrize("surplus", [b"HTTP/1.1 500 Evil\r\n" + EMPTY, b"H", b"\0", b"x" * 9])
@pytest.mark.parametrize("together", [True, False])
def test_what_follows_an_answer_is_not_read_and_ends_the_connection(
    surplus: bytes,
    together: bool,  # noqa: FBT001
) -> None:
    answer = OK + b"content-length: 2\r\n\r\nok"
    segments = [answer + surplus] if together else [answer, surplus]
    connection, wire = asked()
    for segment in segments:
        connection.data_received(segment)
    assert outcome(head(connection)) == outcome(more(connection)) == "done"
    assert (connection.status, connection.take(), connection.complete) == (200, b"ok", True)
    assert not connection.release()
    assert wire.is_closed


def test_what_comes_while_nobody_asks_ends_the_connection() -> None:
    connection, wire = asked()
    connection.data_received(OK + EMPTY)
    assert connection.release()
    assert connection.is_open
    connection.data_received(OK + EMPTY)
    assert wire.is_closed
    assert not connection.is_open
    connection.connection_lost(None)
    with pytest.raises(Lost):
        connection.ask(b"", b"")


def test_what_lies_there_before_a_request_is_seen_without_reading_it() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        connection, wire = Connection(loop), Wire()
        assert connection.is_quiet
        wire._extra["socket"] = ours  # type: ignore[attr-defined]  # noqa: SLF001
        connection.connection_made(wire)
        assert connection.is_quiet
        theirs.send(b"HTTP")
        assert not connection.is_quiet
        assert ours.recv(10) == b"HTTP"
        assert connection.is_quiet
        theirs.close()
        assert not connection.is_quiet


def test_a_connection_whose_request_has_not_left_is_not_kept() -> None:
    connection, wire = asked()
    connection.data_received(OK + EMPTY)
    wire.unsent = 1
    assert not connection.release()


def test_a_connection_whose_answer_nobody_took_is_not_kept() -> None:
    connection, _ = asked()
    connection.data_received(OK + b"content-length: 1\r\n\r\nx")
    assert not connection.release()


# ---------------------------------------------------------------------- reading ahead


def test_reading_pauses_until_somebody_takes() -> None:
    connection, wire = asked()
    size = 3 * MOST_AHEAD
    connection.data_received(OK + b"content-length: %d\r\n\r\n" % size)
    connection.data_received(b"x" * MOST_AHEAD)
    assert not wire.is_paused
    connection.data_received(b"x")
    assert wire.is_paused
    connection.data_received(b"x")  # one more that was on its way
    assert len(connection.take()) == MOST_AHEAD + 2
    assert not wire.is_paused
    connection.data_received(b"x" * (size - MOST_AHEAD - 2))
    assert connection.complete
    assert wire.is_paused
    connection.take()
    assert connection.release()
    assert not wire.is_paused


@pytest.mark.parametrize("gone", [True, False])
def test_what_came_before_the_end_can_still_be_taken(gone: bool) -> None:  # noqa: FBT001
    connection, wire = asked()
    connection.data_received(OK + b"content-length: 9999999\r\n\r\n" + b"x" * (MOST_AHEAD + 1))
    assert wire.is_paused
    if gone:
        connection.connection_lost(None)
    else:
        connection.fail(TimeoutError)
    assert outcome(more(connection)) == "done"
    assert len(connection.take()) == MOST_AHEAD + 1
    assert outcome(more(connection)) in {"Lost: closed", "TimeoutError: "}


def test_a_body_that_is_large_is_not_copied_to_its_head() -> None:
    connection, wire = asked()
    connection.data_received(OK + EMPTY)
    wire.sent = b""
    body = b"x" * (MOST_AHEAD + 1)
    connection.ask(b"head", body)
    assert wire.sent == b"head" + body


# ---------------------------------------------------------------------- ends


def test_the_first_failure_is_the_one_that_is_told() -> None:
    connection, wire = asked()
    connection.fail(TimeoutError)
    connection.fail(Lost, "later")
    assert wire.is_closed
    connection.connection_lost(None)
    assert outcome(head(connection)) == outcome(head(connection)) == "TimeoutError: "


def test_a_reader_that_has_gone_is_not_woken() -> None:
    connection, _ = asked()
    waiting = head(connection)
    future = waiting.send(None)
    future.cancel()
    waiting.close()
    connection.data_received(OK + EMPTY)
    assert connection.complete


def test_an_answer_that_was_cut_by_us_is_not_complete() -> None:
    connection, _ = asked()
    connection.data_received(OK + b"\r\nabc")  # until the connection ends
    connection.abort()
    connection.connection_lost(None)
    assert not connection.complete
    connection.abort()  # once more does no harm


def test_a_failure_that_came_first_outlives_the_connection() -> None:
    connection, _ = asked()
    connection._failure = (Broken, "told")  # noqa: SLF001  before the transport was ended
    connection.connection_lost(None)
    assert outcome(head(connection)) == "Broken: told"


def test_nothing_that_ended_needs_the_collector_of_cycles() -> None:
    gc.collect()
    gc.disable()
    try:
        for answer in (OK + EMPTY, b"garbage\r\n\r\n", OK + b"a\0: b\r\n", CHUNKED):
            receive([answer])
        assert gc.collect() == 0
    finally:
        gc.enable()


# ---------------------------------------------------------------------- any bytes, any pieces


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    ends = sorted({place % (len(data) + 1) for place in places})
    return [data[start:end] for start, end in zip([0, *ends], [*ends, len(data)], strict=True)]


answers = st.sampled_from(
    [
        OK + b"a: b\r\nContent-Length: 11\r\n\r\nhello world",
        OK + b"connection: close\r\n\r\nhello world",
        CHUNKED + b"5;x=y\r\nhello\r\n6\r\n world\r\n0\r\nlate: 1\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" + CHUNKED + b"1\r\nx\r\n0\r\n\r\n" + OK + EMPTY,
        b"HTTP/1.1 204 None\r\n\r\n" + OK + EMPTY,
        *(answer for answer in NO_ANSWERS.values() if len(answer) < 1000),
    ]
)
places = st.lists(st.integers(0, 200), max_size=12)
touched = st.builds(
    lambda data, at, byte: data[: at % len(data)] + byte + data[at % len(data) + 1 :],
    answers,
    st.integers(0, 200),
    st.binary(max_size=2),
)
near = st.lists(
    st.sampled_from(
        [
            *(OK, CHUNKED, b"HTTP/1.1 100 C\r\n\r\n", b"content-length: ", b"5\r\nhello\r\n"),
            *(b"\r\n", b"\n", b": ", b"0", b"a", b"\0", b";", b" ", b"\xff"),
        ]
    )
    | st.binary(max_size=5),
    max_size=12,
)


@given(answers | touched, places, st.booleans())
def test_how_an_answer_is_cut_into_pieces_changes_nothing(
    data: bytes,
    at: list[int],
    ends: bool,  # noqa: FBT001
) -> None:
    assert receive(cut(data, at), ends=ends) == receive([data], ends=ends)


@given(st.lists(st.binary(max_size=30), max_size=5) | near)
def test_no_bytes_raise_or_hang(segments: list[bytes]) -> None:
    received = receive(segments)
    assert received.end == "done" or received.end.split(":")[0] in {"Broken", "Lost"}
    assert received.kept is False
