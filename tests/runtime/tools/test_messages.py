"""What a server of tools writes: whole lines, and none with more values than are read at once."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.runtime.tools import messages
from carnet.runtime.tools.messages import MOST_MEMBERS, TooMuch, WholeLines, lines_of

MANY = b"[" + b"{}," * MOST_MEMBERS + b"{}]"
PROSE = b'["' + b"a, [b], " * MOST_MEMBERS + b'"]'
LIMIT = 1_000


async def read(*chunks: bytes, limit: int = 2**22) -> list[bytes]:
    stream = asyncio.StreamReader(limit=limit)
    for chunk in chunks:
        stream.feed_data(chunk)
    stream.feed_eof()
    return [line async for line in lines_of(stream)]


async def test_lines_come_as_they_are_and_the_last_needs_no_end() -> None:
    assert await read(b"a\nb", b"c\n\nd") == [b"a\n", b"bc\n", b"\n", b"d"]
    assert await read() == []


async def test_what_is_too_much_is_passed_over_and_costs_no_other() -> None:
    assert await read(b"a\n" + MANY + b"\nb\n") == [b"a\n", b"b\n"]
    assert await read(PROSE + b"\n") == [PROSE + b"\n"]  # commas of a text are no values
    for size in (LIMIT + 1, 3 * LIMIT, 10 * LIMIT):
        long = b"x" * size + b"\n"
        assert await read(b"a\n", long, b"b\n", limit=LIMIT) == [b"a\n", b"b\n"]
        assert await read(b"a\n", long[:-1], limit=LIMIT) == [b"a\n"]


async def test_a_line_without_an_end_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "MOST_PASSED_OVER", 2 * LIMIT)
    assert await read(b"x" * 5 * LIMIT + b"\nb\n", limit=LIMIT) == []


def passed_on(body: bytes, size: int, *, are_events: bool) -> bytes:
    lines = WholeLines(are_events=are_events)
    chunks = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join([*map(lines.feed, chunks), lines.close()])


@given(st.binary(max_size=60), st.integers(1, 9), st.booleans())
def test_the_body_of_an_answer_comes_as_it_is(body: bytes, size: int, are_events: bool) -> None:  # noqa: FBT001
    assert passed_on(body, size, are_events=are_events) == body


@pytest.mark.parametrize("size", [1_000, 100_000])
def test_more_than_is_read_at_once_is_refused_however_it_is_cut(size: int) -> None:
    line = b"data: " + MANY[: len(MANY) // 4]  # half of what is read
    bodies = (MANY, b': "\ndata: ' + MANY, b'event: "\r\ndata: ' + MANY)
    for body in (*bodies, (line + b"\n") * 3, (line + b"\r\n") * 3, (line + b"\r") * 3):
        for are_events in (False, True):
            with pytest.raises(TooMuch):
                passed_on(body, size, are_events=are_events)
    for several in ((line + b"\n\n") * 3, (line + b"\r\n\r\n") * 3):
        assert passed_on(several, size, are_events=True) == several
        with pytest.raises(TooMuch):  # the whole is one message
            passed_on(several, size, are_events=False)
    with pytest.raises(TooMuch):
        passed_on(b"\n" * (MOST_MEMBERS + 1), size, are_events=False)
    for body in (PROSE, b"data: " + PROSE):
        assert passed_on(body, size, are_events=True) == body
