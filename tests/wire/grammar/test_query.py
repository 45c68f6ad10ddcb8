"""Queries, strictly, and moments."""

import pytest

from carnet.errors import InvalidRequest
from carnet.wire.grammar.query import (
    read_lines,
    read_moment,
    read_number,
    read_query,
    read_word,
)
from carnet.wire.grammar.times import when


def test_a_number_is_one_in_digits_or_the_default() -> None:
    query = read_query("limit=7&before=&two=1&two=2&odd=%D9%A3&long=1234567890123456789")
    assert (read_number(query, "limit", 1), read_number(query, "before", 5)) == (7, 5)
    for name in ("two", "odd", "long"):
        with pytest.raises(InvalidRequest):
            read_number(query, name, 0)


@pytest.mark.parametrize(("text", "lines"), [(None, 50), ("limit=0", 1), ("limit=999", 200)])
def test_a_list_has_a_bounded_number_of_lines(text: str | None, lines: int) -> None:
    assert read_lines(read_query(text)) == lines


def test_a_word_stands_once_is_printable_and_says_something() -> None:
    assert read_word(read_query("a=b"), "a") == "b"
    assert read_word(read_query("a=b"), "c") is None
    assert read_word(read_query(f"a={'x' * 256}"), "a") == "x" * 256
    for text in ("a=1&a=2", "a=%00", "a=", "a", "a=&a=", "a=b&a=", f"a={'x' * 257}"):
        with pytest.raises(InvalidRequest):
            read_word(read_query(text), "a")


def test_a_moment_is_told_in_milliseconds_and_none_is_none() -> None:
    assert when(1_800_000_000_123_456) == "2027-01-15T08:00:00.123+00:00"
    assert when(None) is None


@pytest.mark.parametrize(
    "text",
    [
        "2027-01-15T08:00:00.123Z",
        "2027-01-15T08:00:00.123",
        "2027-01-15 08:00:00.123",
        "2027-01-15T09:00:00.123+01:00",
        "2027-01-15T09:00:00.123%2B01:00",
    ],
)
def test_a_moment_is_read_in_each_form_that_it_is_written_in(text: str) -> None:
    assert read_moment(read_query(f"since={text}"), "since") == 1_800_000_000_123_000
    assert read_moment(read_query(f"since={text}"), "until") is None


@pytest.mark.parametrize("text", ["yesterday", "08:00", "2h", "2027-13-01", "1800000000000000"])
def test_what_names_no_moment_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        read_moment(read_query(f"since={text}"), "since")
