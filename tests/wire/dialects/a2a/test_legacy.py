"""A2A 0.3: requests put into the present words, results put into the former ones."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.messages.events import DataPart, File, Link, Part
from carnet.errors import InvalidRequest, RouteNotFound
from carnet.wire.dialects.a2a import legacy
from carnet.wire.dialects.a2a.message import read_message, write_message
from carnet.wire.dialects.a2a.parts import write_part
from carnet.wire.dialects.a2a.states import TERMINAL, WANTED
from tests.wire.dialects.a2a.scene import FORMER, MESSAGE, form_in, http, rpc

WORDS = st.none() | st.text("abc", min_size=1, max_size=5)
PARTS: st.SearchStrategy[Part] = (
    st.text(max_size=20)
    | st.builds(DataPart, st.dictionaries(st.text(max_size=4), st.integers(), max_size=3))
    | st.builds(Link, st.just("https://example.com/a"), WORDS, WORDS)
    | st.builds(File, st.sampled_from(["", "aGVsbG8="]), WORDS, WORDS)
)


@given(st.lists(PARTS, min_size=1, max_size=4), st.sampled_from(["ROLE_USER", "ROLE_AGENT"]))
def test_a_message_in_the_former_words_is_read_as_the_same(parts: list[Part], role: str) -> None:
    written = write_message("m", [write_part(part) for part in parts], role=role, contextId="c")
    former = legacy.older({"message": written}, "send")
    assert former["kind"] == "message"
    assert former["role"] in {"user", "agent"}
    method, params = legacy.newer("message/send", {"message": former})
    assert method == "SendMessage"
    assert params["message"] == written
    assert read_message(params["message"]).message.parts == tuple(parts)


def test_every_method_leads_to_an_operation() -> None:
    for method, operation in legacy.METHODS.items():
        known: dict[str, Any] = {"pushNotificationConfig": {}} if method.endswith("/set") else {}
        assert legacy.newer(method, known)[0] == operation


def test_what_a_former_request_wishes_is_read() -> None:
    push = {"url": "https://x/", "authentication": {"schemes": ["Bearer"], "credentials": "c"}}
    wishes = {"blocking": False, "pushNotificationConfig": push, "historyLength": 0}
    claim = rpc("message/send", {"message": FORMER, "configuration": wishes})
    assert claim.is_task
    assert claim.wish.authorization.reveal() == "Bearer c"
    assert form_in(claim)["version"] == "0.3"
    blocking = {"message": FORMER, "configuration": {"blocking": True}}
    assert not rpc("message/send", blocking).is_task
    assert not rpc("message/send", {"message": FORMER}).is_task
    assert rpc("message/stream", {"message": FORMER}).ask.stream


@pytest.mark.parametrize(
    ("method", "params", "field"),
    [
        ("message/send", {}, "message"),
        ("message/send", {"message": 7}, "message"),
        ("message/send", {"message": {**FORMER, "role": 7}}, "message.role"),
        ("message/send", {"message": {**FORMER, "role": "bot"}}, "message.role"),
        ("message/send", {"message": {**FORMER, "parts": 7}}, "message.parts"),
        ("message/send", {"message": {**FORMER, "parts": [7]}}, "message.parts[0]"),
        (
            "message/send",
            {"message": {**FORMER, "parts": [{"kind": "file"}]}},
            "message.parts[0].file",
        ),
        (
            "message/send",
            {"message": FORMER, "configuration": {"blocking": 1}},
            "configuration.blocking",
        ),
        ("message/send", {"message": FORMER, "configuration": 7}, "configuration"),
        ("tasks/pushNotificationConfig/set", {"taskId": "t"}, "pushNotificationConfig"),
        ("tasks/pushNotificationConfig/get", {"id": "t"}, "id"),
        ("tasks/get", {}, "id"),
    ],
)
def test_a_former_request_that_is_none_is_refused(
    method: str, params: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        rpc(method, params)
    assert refused.value.facts["field"] == field


def test_where_to_be_told_is_asked_for_in_the_former_words() -> None:
    config = {"url": "https://x/", "id": "mine", "authentication": {"schemes": []}}
    added = rpc(
        "tasks/pushNotificationConfig/set", {"taskId": "t", "pushNotificationConfig": config}
    )
    assert (added.about, added.task, added.wish.name) == ("add_callback", "t", "mine")
    assert added.wish.authorization is None
    one = {"id": "t", "pushNotificationConfigId": "mine"}
    for method, about in (("get", "callback"), ("delete", "remove_callback")):
        asked = rpc(f"tasks/pushNotificationConfig/{method}", one)
        assert (asked.about, asked.task, asked.name) == (about, "t", "mine")
    listed = rpc("tasks/pushNotificationConfig/list", {"id": "t"})
    assert (listed.about, listed.task) == ("callbacks", "t")


def test_who_names_the_present_version_is_not_read_in_the_former_words() -> None:
    with pytest.raises(RouteNotFound):
        rpc("message/send", {"message": FORMER}, {"a2a-version": "1.0"})
    assert rpc("message/send", {"message": FORMER}, {"a2a-version": "0.3"})
    assert form_in(rpc("SendMessage", {"message": MESSAGE}, {"a2a-version": "0.3"}))
    assert http("POST", "/message:send", {"message": MESSAGE}, {"a2a-version": "0.3"})


STATUS = {"state": "TASK_STATE_WORKING", "message": MESSAGE}
TASK: dict[str, Any] = {"id": "t", "contextId": "c", "status": STATUS}


def test_a_task_is_told_in_the_former_words() -> None:
    artifact = {"artifactId": "answer", "parts": [{"data": 7}]}
    former = legacy.older({**TASK, "artifacts": [artifact], "history": [MESSAGE]}, "task")
    assert (former["kind"], former["status"]["state"]) == ("task", "working")
    assert former["status"]["message"] == former["history"][0] == FORMER
    (part,) = former["artifacts"][0]["parts"]
    assert part == {"kind": "data", "data": {"value": 7}}
    assert legacy.older({"task": TASK}, "stream")["kind"] == "task"
    bare = legacy.older({**TASK, "status": {"state": "TASK_STATE_COMPLETED"}}, "task")
    assert bare["status"] == {"state": "completed"}


@pytest.mark.parametrize("state", WANTED)
def test_an_update_says_whether_it_is_the_last_one(state: str) -> None:
    update = {"taskId": "t", "contextId": "c", "status": {"state": state}}
    former = legacy.older({"statusUpdate": update}, "stream")
    assert former["kind"] == "status-update"
    assert former["final"] is (state in TERMINAL or "REQUIRED" in state)
    assert former["status"]["state"] == state[11:].lower().replace("_", "-")


def test_what_is_added_to_an_artifact_is_told_in_the_former_words() -> None:
    part = {"text": "a", "metadata": {"m": 1}}
    update = {"taskId": "t", "artifact": {"artifactId": "answer", "parts": [part]}, "append": True}
    former = legacy.older({"artifactUpdate": update}, "stream")
    assert former["kind"] == "artifact-update"
    assert former["artifact"]["parts"] == [{"kind": "text", "text": "a", "metadata": {"m": 1}}]


def test_where_a_task_is_told_of_is_told_in_the_former_words() -> None:
    known = {"id": "n", "taskId": "t", "url": "u", "authentication": {"scheme": "Bearer"}}
    former = legacy.older(known, "push")
    assert former == {
        "taskId": "t",
        "pushNotificationConfig": {
            "id": "n",
            "url": "u",
            "authentication": {"schemes": ["Bearer"]},
        },
    }
    bare = {"id": "n", "taskId": "t", "url": "u"}
    assert legacy.older({"configs": [bare]}, "pushes")[0]["pushNotificationConfig"] == {
        "id": "n",
        "url": "u",
    }
    assert legacy.older({}, "empty") is None
    assert legacy.older({"name": "echo"}, "card") == {"name": "echo"}
