"""Messages and what comes of them: tasks, contexts, questions, and how all of it is written."""

import re
from typing import Any

import pytest

from carnet.testing.wait import until
from tests.support.a2a.wire import BINDINGS, Line, message, new_name

Lines = dict[str, Line]
pytestmark = pytest.mark.parametrize("binding", BINDINGS)

STATES = {
    "echo": "TASK_STATE_COMPLETED",
    "asks": "TASK_STATE_INPUT_REQUIRED",
    "signs": "TASK_STATE_AUTH_REQUIRED",
    "rejects": "TASK_STATE_REJECTED",
    "fails": "TASK_STATE_FAILED",
}


@pytest.mark.parametrize("agent", STATES)
def test_a_task_is_written_as_the_definition_has_it(lines: Lines, binding: str, agent: str) -> None:
    line = lines[agent]
    reported = line.task(binding)
    task = line.result(binding, "GetTask", id=reported["id"])
    assert (task["id"], task["contextId"]) == (reported["id"], reported["contextId"])
    assert task["status"]["state"] == STATES[agent]
    moment = r"[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z"
    assert re.fullmatch(moment, task["status"]["timestamp"])
    stated = [*task["history"], *([task["status"]["message"]] if agent != "echo" else [])]
    for each in stated:
        assert each["messageId"]
        assert each["role"] in {"ROLE_USER", "ROLE_AGENT"}
        assert each["parts"]
    for artifact in task.get("artifacts", []):
        assert artifact["artifactId"]
        assert [len({"text", "raw", "url", "data"} & set(part)) for part in artifact["parts"]] == [
            1
        ] * len(artifact["parts"])
    assert [name for name in names_of(task) if not re.fullmatch(r"[a-z][a-zA-Z0-9]*", name)] == []


def names_of(value: Any) -> list[str]:
    """The names of all members, but for those of what callers and extensions call their own."""
    if isinstance(value, list):
        return [name for each in value for name in names_of(each)]
    if not isinstance(value, dict):
        return []
    own = {"metadata", "data"}
    return [*value, *[n for k, v in value.items() if k not in own for n in names_of(v)]]


def test_an_agent_may_answer_with_a_message(lines: Lines, binding: str) -> None:
    answer = lines["greets"].result(binding, "SendMessage", **message())
    assert answer.keys() == {"message"}
    stated = answer["message"]
    assert (stated["role"], stated["parts"]) == ("ROLE_AGENT", [{"text": "good day"}])


def test_a_stream_is_always_that_of_a_task(lines: Lines, binding: str) -> None:
    """It begins before anybody knows what the agent will say: no message is among its events."""
    events = lines["greets"].stream(binding, "SendStreamingMessage", **message())
    assert [name for each in events for name in each] == ["task", "artifactUpdate", "statusUpdate"]
    assert events[1]["artifactUpdate"]["artifact"]["parts"] == [{"text": "good day"}]


BROKEN: list[tuple[str, dict[str, Any]]] = [
    ("message.messageId", {"messageId": ""}),
    ("message.messageId", {"messageId": None}),
    ("message.messageId", {"messageId": "x" * 257}),
    ("message.role", {"role": "ROLE_UNSPECIFIED"}),
    ("message.role", {"role": "user"}),
    ("message.role", {"role": None}),
    ("message.parts", {"parts": []}),
    ("message.parts", {"parts": None}),
    ("message.parts[0]", {"parts": [{}]}),
    ("message.parts[0]", {"parts": [{"text": "a", "data": 1}]}),
    ("message.parts[0].raw", {"parts": [{"raw": "!"}]}),
    ("message.contextId", {"contextId": "c" * 257}),
    ("message.contextId", {"contextId": "a\nb"}),
]


@pytest.mark.parametrize(("field", "change"), BROKEN)
def test_what_lacks_something_is_refused_by_the_name_of_it_and_nothing_is_done(
    lines: Lines, binding: str, field: str, change: dict[str, Any]
) -> None:
    before = lines["echo"].result(binding, "ListTasks", pageSize=1)["totalSize"]
    error = lines["echo"].error(binding, "SendMessage", **message(**change))
    assert error["code"] == (-32602 if binding == "JSONRPC" else 400)
    assert field in error["message"]
    (info,) = error.get("data") or error["details"]
    assert (info["reason"], info["metadata"]["field"]) == ("INVALID_REQUEST", field)
    assert info["metadata"]["hint"]
    assert lines["echo"].result(binding, "ListTasks", pageSize=1)["totalSize"] == before


def test_members_that_nobody_knows_are_passed_over(lines: Lines, binding: str) -> None:
    given = message("hi", shape="round")
    given["message"]["parts"][0]["colour"] = "red"
    task = lines["echo"].result(binding, "SendMessage", **given, mood={"a": 1})["task"]
    assert task["artifacts"][0]["parts"] == [{"text": "hi"}]


def test_a_message_without_a_context_is_given_one_and_one_with_it_keeps_it(
    lines: Lines, binding: str
) -> None:
    line = lines["echo"]
    alone, other = line.task(binding), line.task(binding)
    assert alone["contextId"] != other["contextId"]
    name = new_name("context")
    shared = [line.task(binding, contextId=name) for _ in range(2)]
    assert [each["contextId"] for each in shared] == [name, name]
    assert len({each["id"] for each in (alone, other, *shared)}) == 4
    page = line.result(binding, "ListTasks", contextId=name)
    assert [each["id"] for each in page["tasks"]] == [each["id"] for each in reversed(shared)]


def test_a_message_to_a_task_is_of_its_context_or_refused(lines: Lines, binding: str) -> None:
    line = lines["asks"]
    task = line.task(binding)
    wrong = message("Bern", taskId=task["id"], contextId="another")
    assert "contextId" in line.error(binding, "SendMessage", **wrong)["message"]
    unknown = line.error(binding, "SendMessage", **message("Bern", taskId="of-my-own"))
    assert unknown["code"] == (-32001 if binding == "JSONRPC" else 404)
    done = line.task(binding, "Bern", taskId=task["id"])
    assert (done["id"], done["contextId"]) == (task["id"], task["contextId"])
    assert done["status"]["state"] == "TASK_STATE_COMPLETED"


def test_tasks_that_a_message_refers_to_reach_the_agent(lines: Lines, binding: str) -> None:
    line = lines["refers"]
    first = line.task(binding)["id"]
    task = line.task(binding, referenceTaskIds=[first, "elsewhere"])
    assert task["artifacts"][0]["parts"] == [{"text": f"{first} elsewhere"}]


def test_who_does_not_wait_has_the_task_before_its_end_and_streams_do_not_care(
    lines: Lines, binding: str
) -> None:
    line, wish = lines["slow"], {"returnImmediately": True}
    task = line.result(binding, "SendMessage", **message(), configuration=wish)["task"]
    assert task["status"]["state"] in {"TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"}
    line.result(binding, "CancelTask", id=task["id"])
    events = lines["echo"].stream(
        binding, "SendStreamingMessage", **message("one"), configuration=wish
    )
    last = events[-1]["statusUpdate"]["status"]["state"]
    assert (list(events[0]), last) == (["task"], "TASK_STATE_COMPLETED")


def test_asking_for_a_task_changes_nothing(lines: Lines, binding: str) -> None:
    task = lines["asks"].task(binding)["id"]
    first, second = (lines["asks"].result(binding, "GetTask", id=task) for _ in range(2))
    assert first == second


def test_a_sign_in_is_asked_for_by_the_state_and_a_message_and_answered_by_one(
    lines: Lines, binding: str
) -> None:
    line = lines["signs"]
    task = line.task(binding)
    assert task["status"]["state"] == "TASK_STATE_AUTH_REQUIRED"
    asked = " ".join(part.get("text", "") for part in task["status"]["message"]["parts"])
    assert "Sign in there" in asked
    assert "https://login.example/start" in asked
    unclear = line.error(binding, "SendMessage", **message("password: x", taskId=task["id"]))
    assert unclear["code"] == (-32602 if binding == "JSONRPC" else 400)
    held = line.result(binding, "GetTask", id=task["id"])
    assert held["status"]["state"] == "TASK_STATE_AUTH_REQUIRED"  # that it waits approves nothing
    assert "artifacts" not in held
    done = line.task(binding, "no", taskId=task["id"])
    assert done["artifacts"][0]["parts"] == [{"text": "not signed in"}]


def test_a_task_is_cancelled_once_and_stays_so(lines: Lines, binding: str) -> None:
    line, wish = lines["slow"], {"returnImmediately": True}
    task = line.result(binding, "SendMessage", **message(), configuration=wish)["task"]["id"]
    ended = line.result(binding, "CancelTask", id=task)
    assert ended["status"]["state"] == "TASK_STATE_CANCELED"
    again = line.error(binding, "CancelTask", id=task)
    assert again["code"] == (-32002 if binding == "JSONRPC" else 400)
    assert line.result(binding, "GetTask", id=task)["status"] == ended["status"]


def test_a_task_goes_on_after_its_answer(lines: Lines, binding: str) -> None:
    line, wish = lines["echo"], {"returnImmediately": True}
    task = line.result(binding, "SendMessage", **message("on"), configuration=wish)["task"]["id"]

    def is_done() -> bool:
        found = line.result(binding, "GetTask", id=task)
        return bool(found["status"]["state"] == "TASK_STATE_COMPLETED")

    until(is_done)
