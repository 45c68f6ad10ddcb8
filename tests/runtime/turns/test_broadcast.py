"""A turn that runs on says everything again; its readers are shown what is new to them."""

import asyncio
from collections.abc import Sequence

import pytest

from carnet.core.messages.events import (
    Done,
    Event,
    Extension,
    Failed,
    Text,
    ToolCall,
    Usage,
    is_terminal,
)
from carnet.runtime.turns.broadcast import Broadcast

END: Sequence[Event] = (Usage(), Done())
TOOL = ToolCall("call_1", "look", "{}")


def words(events: Sequence[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, Text))


async def retold(before: Sequence[Event], batches: Sequence[Sequence[Event]]) -> list[Event]:
    """All that a reader is shown who was shown `before`, and then what comes of `batches`."""
    first, again = Broadcast(lambda: None), Broadcast(lambda: None)
    if before:
        first.publish(before)
    for batch in batches:
        again.publish(batch, size=1, last=is_terminal(batch[-1]))
    reading = asyncio.ensure_future(first.whole())
    await again.retell(first)
    return [*await reading]


@pytest.mark.parametrize("cut", range(1, 12))
async def test_what_was_shown_is_not_shown_again_in_whatever_pieces_it_comes(cut: int) -> None:
    text = "before after"
    pieces = [Text(text[:cut]), Text(text[cut:])]
    shown = await retold([Text("bef"), Extension("child", {}), Text("ore ")], [pieces, END])
    assert (words(shown), shown[-1]) == (text, Done())


async def test_what_is_no_text_is_shown_once_too() -> None:
    shown = await retold([Text("a"), TOOL], [[Text("a")], [TOOL, Text("b")], END])
    assert [event for event in shown if event == TOOL] == [TOOL]
    assert (words(shown), shown[-1]) == ("ab", Done())


@pytest.mark.parametrize(
    "now",
    [[Text("another")], [Text("be")], [TOOL], [Text("before more"), TOOL]],
    ids=["other words", "fewer words", "no words", "words too early"],
)
async def test_who_was_shown_something_else_is_told_that_the_answer_is_unknown(
    now: list[Event],
) -> None:
    shown = await retold([Text("before "), TOOL], [now, END])
    assert words(shown) == "before "
    assert isinstance(shown[-1], Failed)
    assert shown[-1].code == "outcome_unknown"


async def test_an_attempt_that_fails_before_it_came_so_far_is_shown_as_failed() -> None:
    failed = Failed("agent_failed")
    shown = await retold([Text("before ")], [[Text("bef")], [Usage(), failed]])
    assert (words(shown), shown[-1]) == ("before ", failed)


async def test_who_was_shown_nothing_is_shown_all_of_it() -> None:
    shown = await retold([], [[Text("a")], [Text("b"), *END]])
    assert (words(shown), shown[-1]) == ("ab", Done())
