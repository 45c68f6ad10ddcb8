"""Agents that are named in what is said."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.messages.mentions import MOST_MENTIONS, leading_handles, mentions, named
from tests.core.growth import calls_of


@pytest.mark.parametrize(
    ("text", "handles", "rest"),
    [
        ("@critic judge this", ("@critic",), "judge this"),
        ("  @critic, @docs: find it", ("@critic", "@docs"), "find it"),
        ("@x@globex.example hi", ("@x@globex.example",), "hi"),
        ("@critic @critic twice", ("@critic",), "twice"),
        ("@critic", ("@critic",), ""),
        ("hello @critic", (), "hello @critic"),
        ("@ nobody", (), "@ nobody"),
        ("a@b.example hi", (), "a@b.example hi"),
        ("@critic/path", (), "@critic/path"),
    ],
)
def test_handles_that_a_text_begins_with(text: str, handles: tuple[str, ...], rest: str) -> None:
    assert leading_handles(text) == (handles, rest)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ask @critic.", ("@critic",)),
        ("(@a) [@b] @a and @x@globex.example!", ("@a", "@b", "@x@globex.example")),
        ("mail bob@example.org or @@x", ()),
        ("@first", ("@first",)),
        ("", ()),
    ],
)
def test_mentions_in_a_text(text: str, found: tuple[str, ...]) -> None:
    assert mentions(text) == found


def test_there_is_a_bound_to_them() -> None:
    text = " ".join(f"@a{i}" for i in range(100))
    assert len(mentions(text)) == MOST_MENTIONS
    assert len(leading_handles(text)[0]) == MOST_MENTIONS


def test_one_that_is_named_without_end_is_not_read_without_end() -> None:
    handles, rest = leading_handles("@a " * 80_000 + "hello")
    assert handles == ("@a",)
    assert rest.startswith("@a ")
    assert mentions(" @a" * 1_000_000) == ("@a",)
    some, many = (calls_of(partial(mentions, " @a" * times)) for times in (100_000, 1_000_000))
    assert some == many


def test_what_a_router_finds_them_by() -> None:
    assert (named("@critic"), named("@x@globex.example")) == ("critic", "@x@globex.example")


@given(st.text())
def test_no_text_is_an_error(text: str) -> None:
    handles, rest = leading_handles(text)
    assert rest in text
    assert all(handle in text for handle in (*handles, *mentions(text)))
