"""What was shown of a turn, and what is left of it when it says everything again."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.messages.events import (
    FILE,
    Data,
    Done,
    Event,
    Extension,
    Failed,
    Text,
    ToolCall,
    Usage,
)
from carnet.core.messages.shown import Shown
from carnet.errors import Cancelled

PICTURE = Extension(FILE, {"raw": "aGVsbG8="})
NOTE = Extension("carnet:note", 1)
TOOL = ToolCall("c1", "find", "{}")
ANSWER: Sequence[Event] = (Text("it is "), PICTURE, TOOL, Text("in"))


def test_who_was_shown_a_part_is_shown_the_rest_however_it_is_cut() -> None:
    shown = Shown(ANSWER)
    assert shown.rest([Text("it "), Text("is "), NOTE, PICTURE]) == []
    assert shown.rest([TOOL, Text("in Bern"), Text(".")]) == [Text(" Bern"), Text(".")]
    assert shown.rest([NOTE, Usage(), Done()]) == [NOTE, Usage(), Done()]


@given(st.lists(st.text(max_size=5), max_size=6), st.lists(st.text(max_size=5), max_size=6))
def test_where_the_texts_are_cut_makes_no_difference(before: list[str], after: list[str]) -> None:
    shown = Shown([Text(text) for text in before])
    whole = "".join([*before, *after])
    rest = shown.rest([Text(whole[:3]), Text(whole[3:])])
    assert rest is not None
    assert "".join(each.text for each in rest if isinstance(each, Text)) == "".join(after)


@pytest.mark.parametrize(
    "again",
    [
        [Text("it was "), PICTURE, TOOL, Text("in Bern")],
        [Text("it is "), TOOL, PICTURE, Text("in Bern")],
        [Text("it is "), PICTURE, TOOL, Text("at Bern")],
        [Text("it is "), PICTURE, TOOL, TOOL],
        [Text("it is "), PICTURE, TOOL, Text("i"), PICTURE],
        [Text("it is "), PICTURE, Done()],
        [Done()],
    ],
)
def test_what_says_something_else_has_no_rest(again: list[Event]) -> None:
    assert Shown(ANSWER).rest(again) is None


def test_an_end_before_all_was_said_again_is_told() -> None:
    failed = Failed.of(Cancelled())
    assert Shown(ANSWER).rest([Text("it is "), Usage(), failed]) == [Usage(), failed]


def test_a_copy_begins_anew_and_what_is_added_to_one_is_not_in_the_other() -> None:
    shown = Shown([Text("a")])
    other = shown.copy()
    shown.add([Text("b"), Data({"c": 1}), Usage()])
    assert other.rest([Text("ab")]) == [Text("b")]
    assert shown.copy().rest([Text("ab"), Data({"c": 1}), Text("d")]) == [Text("d")]


def test_a_long_answer_is_not_held() -> None:
    shown = Shown([Text("x" * 1_000_000), Data(["y" * 1_000_000])])
    kept = [getattr(shown, name) for name in Shown.__slots__]
    assert all(not isinstance(each, str | list | tuple | dict) for each in kept)
