"""Parts of A2A messages, and those of core."""

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.messages.events import DataPart, File, Link, Part
from carnet.errors import InvalidRequest
from carnet.wire.dialects.a2a.parts import MOST_PARTS, read_parts, write_part

NAMES = st.none() | st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
PARTS: st.SearchStrategy[Part] = st.one_of(
    st.text(max_size=40),
    st.builds(DataPart, JSON, NAMES),
    st.builds(File, st.binary(max_size=40).map(lambda raw: b64encode(raw).decode()), NAMES, NAMES),
    st.builds(Link, st.just("https://x.example/a"), NAMES, NAMES),
)


@given(st.lists(PARTS, min_size=1, max_size=5))
def test_what_is_written_is_read_as_it_was(parts: list[Part]) -> None:
    assert read_parts([write_part(part) for part in parts], "parts") == tuple(parts)


@pytest.mark.parametrize("text", ["-_8", "+/8=", "-_8="])
def test_base64_is_read_in_both_alphabets_with_and_without_padding(text: str) -> None:
    assert read_parts([{"raw": text}], "parts") == (File("+/8="),)


@pytest.mark.parametrize(
    ("given_", "field"),
    [
        (None, "parts"),
        ([], "parts"),
        ([{"text": "a"}] * (MOST_PARTS + 1), "parts"),
        (["text"], "parts[0]"),
        ([{}], "parts[0]"),
        ([{"text": "a"}, {"text": "a", "data": 1}], "parts[1]"),
        ([{"text": 1}], "parts[0].text"),
        ([{"raw": "a!"}], "parts[0].raw"),
        ([{"raw": None}], "parts[0].raw"),
        ([{"url": ""}], "parts[0].url"),
        ([{"url": "a\nb"}], "parts[0].url"),
        ([{"url": "https://x", "filename": "a\0"}], "parts[0].filename"),
        ([{"data": 1, "mediaType": 7}], "parts[0].mediaType"),
    ],
)
def test_what_is_no_part_is_refused_with_its_place(given_: object, field: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_parts(given_, "parts")
    assert refused.value.facts["field"] == field


def test_an_empty_name_was_not_given() -> None:
    """Of ProtoJSON an empty text is the default."""
    assert read_parts([{"url": "u:1", "filename": ""}], "parts") == (Link("u:1"),)
