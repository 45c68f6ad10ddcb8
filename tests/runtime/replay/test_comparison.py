"""What a turn said then and says now, compared."""

import time

from carnet.core.messages.events import Done, Event, Text, ToolCall
from carnet.runtime.replay.comparison import compared

PIECES = 200_000


def test_texts_that_follow_one_another_are_one_in_linear_time() -> None:
    call = ToolCall("1", "look", "{}")
    pieces: list[Event] = [Text("ab"), Text(""), call, *[Text("piece ")] * PIECES, Done()]
    begun = time.process_time()
    first, second, third, end = compared(pieces)
    assert time.process_time() - begun < 5  # that of copies of all that came before is minutes
    assert compared([Text("a"), Text("b"), call, Text("piece " * PIECES), Done()]) == [
        *(first, second, third, end),
    ]
    assert compared([Text(""), Done()]) == [end]
