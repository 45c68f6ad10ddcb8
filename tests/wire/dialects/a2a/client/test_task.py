"""What A2A agents answer, read strictly."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.messages.events import Link
from carnet.errors import ProviderError
from carnet.wire.dialects.a2a.client import (
    ArtifactUpdate,
    PushConfig,
    RemoteArtifact,
    RemoteMessage,
    RemoteStatus,
    RemoteTask,
    StatusUpdate,
    read_config,
    read_configs,
    read_task,
    read_tasks,
    read_update,
)
from carnet.wire.dialects.a2a.client.task import (
    MOST_ARTIFACTS,
    MOST_CONFIGS,
    MOST_TASKS,
    STATES,
)

TASK: dict[str, Any] = {
    "id": "t1",
    "contextId": "c1",
    "status": {"state": "TASK_STATE_WORKING", "timestamp": "2026-11-18T00:00:00Z"},
}
PIECE = {"artifactId": "a", "parts": [{"text": "x"}, {"url": "u:1"}], "metadata": {"k": 1}}
SAYS = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}
READ = RemoteTask(
    id="t1",
    context="c1",
    status=RemoteStatus(state="working", timestamp="2026-11-18T00:00:00Z"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["task", "message", "statusUpdate", "id", "status", "state", "parts"]),
            inner,
        )
    ),
    max_leaves=12,
)


def test_a_task_is_read() -> None:
    assert read_task(TASK) == READ
    whole = {**TASK, "artifacts": [PIECE], "metadata": {"m": 1}, "history": "anything", "new": 1}
    found = read_task(whole)
    artifact = RemoteArtifact(id="a", parts=("x", Link("u:1")), metadata={"k": 1})
    assert (found.artifacts, found.metadata) == ((artifact,), {"m": 1})


@pytest.mark.parametrize("name", STATES)
def test_every_state_is_known(name: str) -> None:
    found = read_task({**TASK, "status": {"state": name}}).status
    assert found.state == name.removeprefix("TASK_STATE_").lower()
    assert found.is_over is (found.state in {"completed", "failed", "canceled", "rejected"})
    assert found.is_waiting is found.state.endswith("_required")


def test_one_of_four_is_an_update() -> None:
    assert read_update({"task": TASK}) == READ
    message = RemoteMessage(id="m", parts=("hi",), task="t1", context="c1", metadata={"k": 1})
    more = {"taskId": "t1", "contextId": "c1", "metadata": {"k": 1}}
    assert read_update({"message": {**SAYS, **more}}) == message
    status = {"taskId": "t1", "contextId": "c1", "status": TASK["status"]}
    assert read_update({"statusUpdate": status}) == StatusUpdate(
        task="t1", context="c1", status=READ.status
    )
    piece = {"taskId": "t1", "artifact": PIECE, "append": True}
    found = read_update({"artifactUpdate": piece})
    assert isinstance(found, ArtifactUpdate)
    assert (found.task, found.append, found.artifact.id) == ("t1", True, "a")


def test_what_is_said_beside_a_state_may_be_empty() -> None:
    status = {"state": "TASK_STATE_WORKING", "message": {"messageId": "m", "parts": []}}
    assert read_task({**TASK, "status": status}).status.message is None
    status["message"] = SAYS
    found = read_task({**TASK, "status": status}).status.message
    assert found == RemoteMessage(id="m", parts=("hi",))


@pytest.mark.parametrize(
    "given_",
    [
        None,
        [],
        {},
        {"task": TASK, "message": SAYS},
        {"task": None},
        {"task": {**TASK, "id": None}},
        {"task": {**TASK, "id": "a\nb"}},
        {"task": {**TASK, "id": "x" * 513}},
        {"task": {**TASK, "contextId": 7}},
        {"task": {**TASK, "status": None}},
        {"task": {**TASK, "status": {"state": None}}},
        {"task": {**TASK, "status": {"state": "TASK_STATE_UNSPECIFIED"}}},
        {"task": {**TASK, "status": {**TASK["status"], "message": 7}}},
        {"task": {**TASK, "artifacts": {}}},
        {"task": {**TASK, "artifacts": [PIECE] * (MOST_ARTIFACTS + 1)}},
        {"task": {**TASK, "artifacts": [PIECE, PIECE]}},
        {"task": {**TASK, "artifacts": [{"artifactId": "a", "parts": []}]}},
        {"message": {**SAYS, "role": "ROLE_USER"}},
        {"message": {**SAYS, "parts": [{}]}},
        {"statusUpdate": {"taskId": "", "status": TASK["status"]}},
        {"artifactUpdate": {"taskId": "t1"}},
    ],
)
def test_what_is_none_is_refused(given_: object) -> None:
    with pytest.raises(ProviderError):
        read_update(given_)


@given(JSON)
def test_whatever_comes_is_read_or_refused(value: object) -> None:
    for read in (read_update, read_task, read_tasks, read_config, read_configs):
        with suppress(ProviderError):
            read(value)


def test_a_page_of_tasks_is_bounded() -> None:
    page = read_tasks({"tasks": [TASK], "nextPageToken": "n"})
    assert (page.tasks, page.following) == ((READ,), "n")
    assert read_tasks({}).following == ""
    for wrong in ({"tasks": [TASK] * (MOST_TASKS + 1)}, {"tasks": 1}, {"nextPageToken": 1}):
        with pytest.raises(ProviderError):
            read_tasks(wrong)


def test_push_configurations_keep_no_secret() -> None:
    config = {"id": "p", "taskId": "t", "url": "https://x", "token": "s3cret"}
    assert read_config(config) == PushConfig(id="p", url="https://x", task="t")
    assert read_configs({"configs": [config]}) == read_configs([config])
    assert read_configs({}) == ()
    with pytest.raises(ProviderError):
        read_config({**config, "url": "file:///x"})
    with pytest.raises(ProviderError):
        read_configs([config] * (MOST_CONFIGS + 1))
    with pytest.raises(ProviderError):
        read_configs({"configs": 1})
