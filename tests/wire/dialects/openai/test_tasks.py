"""Tasks as tokens see them."""

import pytest

from carnet.core.chain.turn import TurnState
from carnet.core.messages.events import Done, Failed, Text
from carnet.errors import TaskNotFound
from carnet.wire.dialects.openai.tasks import task_line, task_page
from tests.wire.dialects.scene import task, turn


@pytest.mark.parametrize(
    ("state", "word", "progress"),
    [
        ("queued", "pending", None),
        ("running", "running", 0.25),
        ("waiting", "running", 0.25),
        ("done", "done", None),
        ("failed", "failed", None),
    ],
)
def test_a_task_has_one_of_four_words_and_progress_while_it_runs(
    state: TurnState, word: str, progress: float | None
) -> None:
    line = task_line(task(turn=turn(state=state), progress=250))
    assert (line["status"], line["progress"]) == (word, progress)
    assert (line["taskId"], line["run"], line["sender"]) == ("t-1", "conv_1", "token:alice")
    assert line["created"] == "2023-11-14T22:13:20.000+00:00"


def test_the_tokens_of_a_task_are_told_where_any_were_reported() -> None:
    assert task_line(task())["tokens"] is None
    counted = task_line(task(turn=turn(tokens_in=3)))
    assert counted["tokens"] == {"in": 3, "out": 0}


def test_a_task_that_has_ended_is_shown_with_its_result_or_its_error() -> None:
    done = task_page(task(turn=turn(state="done"), events=[Text("hi"), Done()]))
    assert (done["result"], "error" in done) == ({"text": "hi"}, False)
    failed = task_page(task(turn=turn(state="failed"), events=[Text("hi"), Failed("cancelled")]))
    assert (failed["error"]["code"], failed["error"]["run"]) == ("cancelled", "conv_1")
    assert "result" not in failed


def test_a_task_that_has_not_ended_has_neither() -> None:
    page = task_page(task(callback="https://receiver.example/x", events=[Text("hi")]))
    assert page["callback"] == "https://receiver.example/x"
    assert page.keys().isdisjoint({"result", "error"})


def test_a_task_whose_events_are_forgotten_is_not_found() -> None:
    with pytest.raises(TaskNotFound):
        task_page(task(turn=turn(state="done")))
