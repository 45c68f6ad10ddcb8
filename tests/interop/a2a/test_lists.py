"""Lists of tasks: whose, in which order, chosen by what, and how much of each is told."""

from typing import Any

import pytest

from carnet.testing.stage import Organisation
from tests.support.a2a.wire import BINDINGS, Line, new_name

pytestmark = pytest.mark.parametrize("binding", BINDINGS)


@pytest.fixture
def line(gateway: Organisation) -> Line:
    """Somebody who has asked for nothing yet."""
    return Line(gateway.url, gateway.new_token(new_name("lister")), "asks")


def listed(line: Line, binding: str, **given: Any) -> list[str]:
    return [each["id"] for each in line.result(binding, "ListTasks", **given)["tasks"]]


def test_the_task_that_changed_last_comes_first(line: Line, binding: str) -> None:
    first, second = (line.task(binding)["id"] for _ in range(2))
    assert listed(line, binding) == [second, first]
    line.task(binding, "Bern", taskId=first)
    assert listed(line, binding) == [first, second]


def test_a_state_and_a_time_choose_and_the_very_moment_counts(line: Line, binding: str) -> None:
    first, second = (line.task(binding)["id"] for _ in range(2))
    line.task(binding, "Bern", taskId=first)
    waiting = "TASK_STATE_INPUT_REQUIRED"
    assert listed(line, binding, status=waiting) == [second]
    assert listed(line, binding, status="TASK_STATE_COMPLETED") == [first]
    assert listed(line, binding, status="TASK_STATE_FAILED") == []
    reported = line.result(binding, "GetTask", id=first)["status"]["timestamp"]
    assert listed(line, binding, statusTimestampAfter=reported)[0] == first
    assert listed(line, binding, statusTimestampAfter="2999-01-01T00:00:00Z") == []


def test_pages_follow_one_another_and_say_when_they_end(line: Line, binding: str) -> None:
    tasks = [line.task(binding)["id"] for _ in range(3)]
    seen: list[str] = []
    token = ""
    for size in (2, 1):
        more = {"pageToken": token} if token else {}
        page = line.result(binding, "ListTasks", pageSize=2, **more)
        assert (page["pageSize"], page["totalSize"], len(page["tasks"])) == (2, 3, size)
        seen += [each["id"] for each in page["tasks"]]
        token = page["nextPageToken"]
    assert (seen, token) == (tasks[::-1], "")
    whole = line.result(binding, "ListTasks")
    assert (whole["pageSize"], whole["nextPageToken"]) == (50, "")


def test_artifacts_are_told_where_they_are_asked_for(line: Line, binding: str) -> None:
    done, waits = line.task(binding)["id"], line.task(binding)["id"]
    line.task(binding, "Bern", taskId=done)
    for given in ({}, {"includeArtifacts": False}):
        page = line.result(binding, "ListTasks", **given)
        assert [each for each in page["tasks"] if "artifacts" in each] == []
    page = line.result(binding, "ListTasks", includeArtifacts=True)
    reported = {each["id"]: each["artifacts"] for each in page["tasks"]}
    parts = [{"text": "weather of Bern"}]
    assert reported == {done: [{"artifactId": "answer", "parts": parts}], waits: []}


@pytest.mark.parametrize(("wish", "texts"), [({}, 3), ({"historyLength": 1}, 1)])
def test_no_more_of_a_history_is_told_than_is_wanted(
    line: Line, binding: str, wish: dict[str, int], texts: int
) -> None:
    task = line.task(binding, "weather")["id"]
    line.task(binding, "Bern", taskId=task)
    history = line.result(binding, "GetTask", id=task, **wish)["history"]
    stated = [each["parts"][0]["text"] for each in history]
    assert stated == ["weather", "Which city?", "Bern"][-texts:]
    none = line.result(binding, "GetTask", id=task, historyLength=0)
    assert "history" not in none
    (one,) = line.result(binding, "ListTasks", historyLength=0)["tasks"]
    assert "history" not in one
