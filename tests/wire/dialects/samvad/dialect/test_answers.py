"""What is answered in the SAMVAD dialect: to calls, and to questions about tasks and agents."""

from typing import Any

import pytest

from carnet.core.chain.turn import TurnState
from carnet.core.messages.events import Done, Failed, Text, Usage
from carnet.core.people.identity import CHAT
from carnet.errors import RateLimited, TaskNotFound
from carnet.wire.dialects.dialect import AgentKey, AgentView, Reply
from carnet.wire.dialects.samvad import DIALECT, FrameReader, read_card, span_of
from carnet.wire.dialects.samvad.dialect import EnvelopeWriter
from carnet.wire.grammar import json
from tests.wire.dialects.samvad.scene import PUBLIC
from tests.wire.dialects.scene import GATEWAY, call, task, turn

AGENT = AgentView(
    id="agent://acme.example",
    name="echo",
    version="2.0.0",
    description="It echoes.",
    url="https://acme.example",
    skills=(CHAT,),
    keys=(AgentKey("k1", PUBLIC),),
    requests_per_minute=5,
    requests_per_sender=3,
    tokens_per_sender_per_day=9,
    uptime=7,
    active=2,
    queued=1,
)


def writer() -> EnvelopeWriter:
    return DIALECT.writer(call(), GATEWAY)


def page(reply: Reply) -> dict[str, Any]:
    return json.read_object(reply.body)


# ------------------------------------------------------------------ of calls


def test_an_answer_names_its_run_and_is_kept_by_nobody() -> None:
    whole, streamed = (dict(writer().headers(stream=stream)) for stream in (False, True))
    assert whole[b"x-tangle-runid"] == streamed[b"x-tangle-runid"] == b"conv_1"
    assert (whole[b"content-type"], whole[b"cache-control"]) == (b"application/json", b"no-store")
    assert streamed[b"content-type"] == b"text/event-stream"
    assert streamed[b"cache-control"] == b"no-cache"


def test_a_whole_answer_is_one_envelope_of_the_run() -> None:
    body = json.read_object(writer().whole([Text("hi"), Done()]))
    assert (body["traceId"], body["result"]) == ("conv_1", {"text": "hi"})


def test_the_frames_of_an_answer_are_one_stream_however_they_are_written() -> None:
    written = writer()
    frames = written.write([Text("a")]) + written.write([Text("b"), Done()])
    reader = FrameReader()
    events = [*reader.feed(frames), *reader.close()]
    assert [event.text for event in events if isinstance(event, Text)] == ["a", "b"]
    assert events[-1] == Done()
    assert b'"result":{"text":"ab"}' in frames  # the last one repeats all of it


def test_a_call_that_failed_is_told_with_the_span_of_its_turn() -> None:
    reply = writer().refusal(Failed("rate_limited", {"retry_after": 9}), Usage(cost=5))
    body = page(reply)
    assert (reply.status, body["status"]) == (429, "error")
    assert (body["traceId"], body["spanId"]) == ("conv_1", span_of(turn()))
    assert "usage" not in body  # the dialect has no word for it


def test_a_request_that_never_became_a_call_is_refused_with_the_trace_that_it_named() -> None:
    error = RateLimited("raw detail", retry_after=9)
    assert page(DIALECT.refusal(error))["traceId"] == ""
    error.run = "trace-9"
    reply = DIALECT.refusal(error)
    assert (reply.status, page(reply)["traceId"]) == (429, "trace-9")
    assert b"raw detail" not in reply.body


def test_a_task_that_is_not_there_is_told_with_the_same_bytes_whatever_it_met() -> None:
    error = TaskNotFound()
    plain = DIALECT.refusal(error)
    error.run = "trace-9"
    assert DIALECT.refusal(error) == plain
    assert plain.status == 404


def test_the_result_of_an_answer_is_the_object_that_the_caller_gets() -> None:
    assert DIALECT.result([Text("a"), Text("b"), Done()]) == {"text": "ab"}


def test_a_task_that_was_taken_on_is_told_in_two_words_beside_its_run() -> None:
    reply = DIALECT.accepted(call(task="t-1"))
    assert (reply.status, dict(reply.headers)[b"x-tangle-runid"]) == (202, b"conv_1")
    assert page(reply) == {"taskId": "t-1", "status": "accepted"}


# ------------------------------------------------------------------ of tasks


@pytest.mark.parametrize(
    ("state", "members"),
    [
        ("queued", {"status": "pending"}),
        ("running", {"status": "running", "progress": 0.25}),
        ("waiting", {"status": "running", "progress": 0.25}),
    ],
)
def test_a_task_that_has_not_ended_has_neither_result_nor_error(
    state: TurnState, members: dict[str, object]
) -> None:
    reply = DIALECT.tell("show", task(turn=turn(state=state), progress=250, events=[Text("a")]))
    assert (reply.status, page(reply)) == (200, {"taskId": "t-1", **members})
    assert dict(reply.headers).keys() == {b"content-type", b"cache-control"}


def test_a_task_that_is_done_has_its_result_and_the_receipt_that_is_owed() -> None:
    done = task(turn=turn(state="done"), events=[Text("hi"), Done()], receipt="ey.J.x")
    reply = DIALECT.tell("show", done)
    assert page(reply) == {"taskId": "t-1", "status": "done", "result": {"text": "hi"}}
    assert dict(reply.headers)[b"carnet-receipt"] == b"ey.J.x"


def test_a_task_that_failed_has_its_error_and_our_own_code_in_a_header() -> None:
    failed = task(turn=turn(state="failed"), events=[Failed("cancelled")], is_cancel=True)
    reply = DIALECT.tell("cancel", failed)
    assert (reply.status, page(reply)["status"]) == (202, "failed")
    assert b"cancelled" in dict(reply.headers).values()


def test_a_task_whose_events_are_forgotten_is_not_found() -> None:
    with pytest.raises(TaskNotFound):
        DIALECT.tell("show", task(turn=turn(state="done")))


# ------------------------------------------------------------------ of agents


def test_the_health_of_an_agent_is_how_much_it_has_to_do() -> None:
    reply = DIALECT.tell("health", AGENT)
    assert page(reply)["load"] == {"activeRequests": 2, "queuedTasks": 1}
    assert (page(reply)["agentVersion"], page(reply)["uptime"]) == ("2.0.0", 7)
    assert dict(reply.headers)[b"cache-control"] == b"no-store"


def test_the_introduction_of_an_agent_is_a_page_for_people() -> None:
    reply = DIALECT.tell("intro", AGENT)
    assert reply.headers == [(b"content-type", b"text/markdown; charset=utf-8")]
    assert reply.body.startswith(b"# echo")


def test_the_card_of_an_agent_tells_all_of_it_and_may_be_kept_for_a_while() -> None:
    reply = DIALECT.tell("card", AGENT)
    card = read_card(reply.body)
    assert (card.id, card.url) == (AGENT.id, AGENT.url)
    body = page(reply)
    assert body["cardTTL"] > 0
    assert dict(reply.headers)[b"cache-control"] == f"public, max-age={body['cardTTL']}".encode()
    assert body["rateLimit"] == {
        "requestsPerMinute": 5,
        "requestsPerSender": 3,
        "tokensPerSenderPerDay": 9,
    }
    assert [key["kid"] for key in body["publicKeys"]] == ["k1"]
    assert [skill["id"] for skill in body["skills"]] == ["chat"]
