"""Parts that a caller sends, however strange, and files that an agent gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.messages.events import FILE, DataPart, Extension, File, Link, Part
from carnet.errors import InvalidRequest
from carnet.wire.dialects.a2a.parts import MOST_PARTS, file_of, read_parts, write_part

WORDS = st.none() | st.text("abc/+.", min_size=1, max_size=9)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KINDS: st.SearchStrategy[Part] = (
    st.text()
    | st.builds(DataPart, VALUES, WORDS)
    | st.builds(Link, st.just("https://example.com/a"), WORDS, WORDS)
    | st.builds(File, st.sampled_from(["", "aGVsbG8=", "//8="]), WORDS, WORDS)
)


@given(st.lists(KINDS, min_size=1, max_size=4))
def test_a_part_that_was_written_is_read_as_the_same(parts: list[Part]) -> None:
    assert read_parts([write_part(part) for part in parts], "parts") == tuple(parts)


@given(VALUES)
def test_whatever_comes_is_read_or_refused(value: object) -> None:
    try:
        found = read_parts(value, "parts")
    except InvalidRequest:
        return
    assert isinstance(value, list)
    assert len(found) == len(value)


@pytest.mark.parametrize(
    "parts",
    [
        [],
        {},
        ["text"],
        [{}],
        [{"text": "a", "data": 1}],
        [{"text": None}],
        [{"text": 7}],
        [{"url": "not a url at all"}],
        [{"url": 7}],
        [{"raw": "%%%"}],
        [{"raw": 7}],
        [{"raw": "a"}],
        [{"raw": "é"}],
        [{"data": 1, "mediaType": 7}],
        [{"raw": "", "filename": "a\0"}],
        [{"text": ""}] * (MOST_PARTS + 1),
    ],
)
def test_a_part_that_is_none_is_refused(parts: object) -> None:
    with pytest.raises(InvalidRequest):
        read_parts(parts, "parts")


def test_bytes_come_in_either_alphabet_and_with_or_without_padding() -> None:
    for raw in ("//8=", "__8", "__8=", "//8"):
        assert read_parts([{"raw": raw}], "parts") == (File("//8="),)


def test_a_file_of_an_agent_is_a_part_and_a_broken_one_is_none() -> None:
    link = {"url": "https://example.com/a", "filename": "a", "media_type": "text/plain"}
    assert file_of(Extension(FILE, link)) == {
        "url": "https://example.com/a",
        "filename": "a",
        "mediaType": "text/plain",
    }
    for broken in (Extension("other", link), Extension(FILE, "x"), Extension(FILE, {"url": 7})):
        assert file_of(broken) is None
