"""A stream that is left at any frame and taken up again, however its events are cut both times."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from carnet.core.messages.events import Data, Done, Event, Text, ToolResult, Usage
from carnet.wire.dialects.a2a.answers.stream import MOST_CHARACTERS, Seen, TaskStream, Update
from carnet.wire.dialects.a2a.extensions import TaskFacts

EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(Text, st.sampled_from(["a", "b ", "", "x" * 9, "y" * (2 * MOST_CHARACTERS + 1)])),
    st.builds(Data, st.integers(0, 9)),
    st.builds(Usage, st.integers(0, 9)),
    st.builds(ToolResult, st.just("t"), st.just("ok"), st.integers(0, 9)),
)


def reported(events: Sequence[Event], cuts: Sequence[int], seen: Seen = (0, 0)) -> list[Update]:
    """The updates of a stream whose events come in pieces of these lengths."""
    facts = TaskFacts(task="t", run="r", turn="u")
    stream = TaskStream(facts, "c", currency="EUR", seen=seen)
    found: list[Update] = []
    left, lengths = list(events), list(cuts)
    while left:
        length = lengths.pop() if lengths else len(left)
        found += stream.updates(left[:length])
        left = left[length:]
    return found


def content(updates: Sequence[Update]) -> list[Any]:
    """All that is said, texts joined, and the notes and the end between."""
    found: list[Any] = []
    for _, update in updates:
        if "statusUpdate" in update:
            found.append(update["statusUpdate"]["status"])
            continue
        (part,) = update["artifactUpdate"]["artifact"]["parts"]
        if "text" in part and found and isinstance(found[-1], str):
            found[-1] += part["text"]
        else:
            found.append(part.get("text", part))
    return found


@given(
    st.lists(EVENTS, max_size=8),
    st.lists(st.integers(1, 4), max_size=8),
    st.lists(st.integers(1, 4), max_size=8),
    st.data(),
)
def test_whoever_leaves_at_a_frame_is_told_the_rest_and_nothing_twice(
    stated: list[Event], first: list[int], second: list[int], data: st.DataObject
) -> None:
    events = [*stated, Done()]
    whole = reported(events, first)
    read = whole[: data.draw(st.integers(0, len(whole)))]
    rest = reported(events, second, read[-1][0] if read else (0, 0))
    assert content([*read, *rest]) == content(whole) == content(reported(events, second))
    places = [place for place, _ in (*read, *rest)]
    assert places == sorted(set(places))
    appends = [
        each["artifactUpdate"]["append"] for _, each in (*read, *rest) if "artifactUpdate" in each
    ]
    assert appends == [False, *[True] * len(appends)][: len(appends)]
