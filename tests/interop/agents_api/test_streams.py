"""Streams: deltas as they come, one last frame, and the fields of the answer."""

import json

import pytest

from tests.support.agents_api.client import Client, actions, message, new_name, text_in


@pytest.mark.parametrize("method", ["message/stream", "tasks/sendSubscribe"])
def test_a_stream_is_deltas_and_then_the_task(client: Client, method: str) -> None:
    run = new_name()
    frames = client.stream("streams", message("go", id=run), method)
    deltas = [frame["params"] for frame in frames[:-1]]
    assert {frame["method"] for frame in frames[:-1]} == {"message/delta"}
    assert {each["id"] for each in deltas} == {run}
    assert [each["delta"] for each in deltas] == [
        {"deltaType": "content", "content": "one "},
        {
            "deltaType": "tool_name",
            "content": "search",
            "toolCallId": "tc1",
            "toolCallName": "search",
            "toolCallIndex": 2,
        },
        {
            "deltaType": "tool_argument",
            "content": '{"q":1}',
            "toolCallId": "tc1",
            "toolCallIndex": 2,
        },
        {"deltaType": "content", "content": "two"},
    ]
    assert frames[-1]["id"] == "q1"
    assert text_in(frames[-1]["result"]) == "one two"
    assert frames[-1]["result"]["status"]["state"] == "completed"


def test_the_fields_of_a_stream_keep_everybody_from_storing_it(client: Client) -> None:
    reply = client.ask("echo", "message/stream", message("hi"))
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert reply.headers["cache-control"] == "no-cache, no-store, must-revalidate"
    assert reply.headers["x-accel-buffering"] == "no"
    assert b"event:" not in reply.body


def test_who_wants_no_words_as_they_come_gets_the_last_frame_alone(client: Client) -> None:
    frames = client.stream("streams", message("go"), tokenStreaming=False)
    assert [text_in(frame["result"]) for frame in frames] == ["one two"]


def test_an_agent_that_fails_ends_its_stream_with_an_error(client: Client) -> None:
    *deltas, last = client.stream("fails", message("go"))
    assert [each["params"]["delta"]["content"] for each in deltas] == ["so far"]
    assert last["error"]["code"] == -32603
    assert "secret" not in json.dumps(last)


def test_a_run_that_waits_ends_its_stream_with_what_it_waits_for(client: Client) -> None:
    (frame,) = client.stream("approves", message("go"))
    assert frame["result"]["status"]["state"] == "input-required"
    assert [each["summary"] for each in actions(frame["result"])] == ["May I publish?"]
