"""What the pages of runs and tasks say, of records alone."""

import pytest
from msgspec.structs import replace

from carnet.core.messages.events import Done, Text
from carnet.gateway import pages
from carnet.ports.calls.tasks import StoredTask
from tests.runtime.scene import make_call


@pytest.mark.parametrize(
    ("used", "shown"),
    [
        ((120, 30), {"in": 120, "out": 30}),
        ((None, 30), {"in": 0, "out": 30}),
        ((0, 0), {"in": 0, "out": 0}),
        ((None, None), None),
    ],
)
def test_the_tokens_that_a_turn_has_used_are_shown_with_it_and_with_its_task(
    used: tuple[int | None, int | None], shown: dict[str, int] | None
) -> None:
    turn = replace(make_call().record, tokens_in=used[0], tokens_out=used[1])
    assert pages.turn_page(turn, [])["tokens"] == shown
    done = replace(turn, state="done")
    task = StoredTask(id="task-1", turn=done, sender="agent://a.example")
    assert pages.task_line(task)["tokens"] == shown
    page = pages.task_page(task, [Text("well"), Done()], "credits")
    assert page["result"] == {"text": "well"}
    assert page["usage"]["prompt_tokens"] == (used[0] or 0)
