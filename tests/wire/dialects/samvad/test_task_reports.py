"""What a peer tells about a task, read leniently and within bounds."""

import json
from typing import Any

import pytest

from carnet.core.messages.events import RESULT, Done, Extension, Text
from carnet.errors import Cancelled, PeerBusy, PeerRefused, ProviderError
from carnet.wire.dialects import samvad

TASK = "7b0c6a4e-52a7-4f3a-9a53-31a3d4f1f6a0"


def record(status: str, **more: Any) -> samvad.TaskRecord:
    fields = {"taskId": TASK, "status": status, **more}
    return samvad.read_task(json.dumps(fields).encode(), task=TASK)


def test_the_id_of_an_accepted_task_is_read() -> None:
    body = {"taskId": TASK, "status": "accepted", "traceId": "a", "spanId": "b"}
    assert samvad.read_accepted(json.dumps(body).encode()) == TASK


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"status":"accepted"}',
        b'{"taskId":7}',
        b'{"taskId":""}',
        b'{"taskId":".."}',
        b'{"taskId":"a b"}',
        b'{"taskId":"\\u00e9"}',
        b'{"taskId":"' + b"x" * 257 + b'"}',
    ],
)
def test_what_names_no_task_is_a_fault_of_the_peer(body: bytes) -> None:
    with pytest.raises(ProviderError):
        samvad.read_accepted(body)


@pytest.mark.parametrize(
    ("word", "status", "is_over"),
    [
        ("accepted", "pending", False),
        ("pending", "pending", False),
        ("queued", "pending", False),
        ("running", "running", False),
        ("done", "done", True),
        ("completed", "done", True),
        ("failed", "failed", True),
    ],
)
def test_every_word_of_the_sdks_and_their_demo_agents_is_known(
    word: str,
    status: str,
    is_over: bool,  # noqa: FBT001
) -> None:
    read = record(word, result={"a": 1}, error={"code": "AUTH_FAILED", "message": "x"})
    assert (read.id, read.status, read.is_over) == (TASK, status, is_over)
    assert read.result == ({"a": 1} if status == "done" else None)
    assert (read.error is not None) == (status == "failed")


def test_a_record_of_the_sdk_is_read_with_its_further_fields() -> None:
    read = record("running", progress=0, createdAt=1776146908, completedAt=None)
    assert (read.status, read.progress) == ("running", 0.0)


@pytest.mark.parametrize(
    ("given", "progress"),
    [(0.25, 0.25), (1, 1.0), (7, 1.0), (-3, 0.0), (True, None), ("0.5", None), (None, None)],
)
def test_a_progress_that_is_no_fraction_was_not_told(given: Any, progress: float | None) -> None:
    assert record("running", progress=given).progress == progress


@pytest.mark.parametrize(
    ("result", "given"), [({"n": 1}, {"n": 1}), ("text", {"result": "text"}), ([], {"result": []})]
)
def test_a_result_is_an_object(result: Any, given: dict[str, Any]) -> None:
    assert record("done", result=result).result == given


def test_the_end_of_a_task_is_that_of_an_answer() -> None:
    assert samvad.task_events(record("done", result={"text": "hi"})) == [Text("hi"), Done()]
    assert samvad.task_events(record("done", result={"n": 1})) == [
        Extension(RESULT, {"n": 1}),
        Done(),
    ]
    with pytest.raises(PeerRefused):
        samvad.task_events(record("failed", error={"code": "SCHEMA_INVALID", "message": "x"}))


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        ({"code": "SCHEMA_INVALID", "message": "canary"}, PeerRefused, "SCHEMA_INVALID"),
        ({"code": "RATE_LIMITED", "message": "canary"}, PeerBusy, "RATE_LIMITED"),
        ({"code": "AGENT_UNAVAILABLE", "message": "canary"}, ProviderError, "AGENT_UNAVAILABLE"),
        ({"code": "canary"}, ProviderError, None),
        ("canary", ProviderError, None),
        (None, ProviderError, None),
    ],
)
def test_of_a_failure_only_the_word_is_kept(error: Any, kind: type, code: str | None) -> None:
    read = record("failed", error=error).error
    assert read is not None
    assert type(read) is kind
    assert read.facts.get("peer_code") == code
    assert "canary" not in str(read) + read.safe_text + read.next_step


def test_a_carnet_says_which_of_our_errors_it_was() -> None:
    fields = {"status": "failed", "error": {"code": "AGENT_UNAVAILABLE", "message": "x"}}
    body = json.dumps(fields).encode()
    read = samvad.read_task(body, task=TASK, carnet_code="outcome_unknown").error
    assert read is not None
    assert read.facts["peer_reason"] == "outcome_unknown"
    assert type(samvad.read_task(body, task=TASK, carnet_code="cancelled").error) is Cancelled
    other = samvad.read_task(body, task=TASK, carnet_code="canary").error
    assert other is not None
    assert "peer_reason" not in other.facts


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b'{"status":7}',
        b'{"status":"sleeping"}',
        b'{"status":"done"}',
        b'{"status":"done","result":{},"taskId":"another"}',
        b'{"status":"done","result":' + b'{"a":' * 70 + b"1" + b"}" * 70 + b"}",
        b'{"status":"done","result":' + b"[" * 100_000,
    ],
)
def test_what_is_no_record_is_a_fault_of_the_peer(body: bytes) -> None:
    with pytest.raises(ProviderError):
        samvad.read_task(body, task=TASK)


@pytest.mark.parametrize(
    ("body", "is_unknown"),
    [
        (b'{"error":"Task not found"}', True),
        (b'{"error":"Not Found","statusCode":404}', False),
        (b"Not Found", False),
        (b"", False),
    ],
)
def test_a_task_that_is_not_there_is_told_from_a_path_that_is_not(
    body: bytes,
    is_unknown: bool,  # noqa: FBT001
) -> None:
    assert samvad.is_unknown_task(body) is is_unknown
