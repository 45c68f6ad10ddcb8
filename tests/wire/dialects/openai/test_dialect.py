"""The OpenAI dialect as one object: what is asked, and how it is answered."""

from typing import Any

import pytest

from carnet.core.call import Ask, Claim
from carnet.core.messages.events import Done, Failed, Text, Usage, joined_text
from carnet.errors import InvalidRequest, RateLimited
from carnet.wire.dialects.dialect import AgentList, Question, Reply, TaskList
from carnet.wire.dialects.openai import DIALECT, ChunkReader
from carnet.wire.dialects.openai.dialect import ChatWriter
from carnet.wire.grammar import json
from tests.wire.dialects.scene import GATEWAY, arrival, call, task, turn

BODY = json.write({"model": "echo", "messages": [{"role": "user", "content": "hi"}]})


def writer(ask: Ask | None = None, **of_target: Any) -> ChatWriter:
    return DIALECT.writer(call(ask, **of_target), GATEWAY)


def page(reply: Reply) -> dict[str, Any]:
    return json.read_object(reply.body)


# ------------------------------------------------------------------ what is asked


def test_a_chat_is_a_call_and_one_that_is_sent_to_the_tasks_is_a_task() -> None:
    for way, is_task in (("chat", False), ("task", True)):
        found = DIALECT.read(arrival(DIALECT, way, body=BODY))
        assert isinstance(found, Claim)
        assert (found.agent, found.ask.text, found.is_task) == ("echo", "hi", is_task)


def test_a_recorded_chat_says_what_was_asked() -> None:
    found = DIALECT.read(arrival(DIALECT, "chat", body=BODY))
    assert isinstance(found, Claim)
    assert DIALECT.asked(found.request) == found.ask


def test_a_chat_proves_nothing_by_itself() -> None:
    assert DIALECT.proof(arrival(DIALECT, "chat", body=BODY)) is None


@pytest.mark.parametrize(
    ("way", "asked"),
    [
        ("models", Question(about="agents")),
        ("list", Question(about="tasks")),
        ("show", Question(about="task", task="t-1")),
        ("cancel", Question(about="cancel", task="t-1")),
    ],
)
def test_every_other_way_is_a_question(way: str, asked: Question) -> None:
    assert DIALECT.read(arrival(DIALECT, way, names={"task": "t-1"})) == asked


def test_a_list_of_tasks_may_be_narrowed() -> None:
    query = "limit=7&before=9&state=done&agent=echo"
    asked = Question(about="tasks", limit=7, before=9, state="done", of_agent="echo")
    assert DIALECT.read(arrival(DIALECT, "list", query=query)) == asked
    with pytest.raises(InvalidRequest, match="state"):
        DIALECT.read(arrival(DIALECT, "list", query="state=queued"))


# ------------------------------------------------------------------ how a call is answered


def test_an_answer_names_its_run_and_its_turn_and_says_what_it_is() -> None:
    whole = writer().headers(stream=False)
    assert whole[:2] == [(b"x-tangle-runid", b"conv_1"), (b"x-tangle-turnid", b"turn_1")]
    assert (b"cache-control", b"no-store") in whole
    assert whole[-1] == (b"content-type", b"application/json")
    streamed = dict(writer().headers(stream=True))
    assert streamed[b"content-type"] == b"text/event-stream; charset=utf-8"


def test_what_of_a_request_its_agent_does_not_get_is_named_and_nothing_else() -> None:
    """R58: of a call as of a task."""

    def removes(ask: Ask) -> tuple[str, ...]:
        return ("api_base", "seed") if ask.stream else ()

    some, none = Ask(messages=(), stream=True), Ask(messages=())
    removed = (b"carnet-removed", b"api_base, seed")
    assert removed in writer(some, removes=removes).headers(stream=False)
    assert removed in DIALECT.accepted(call(some, removes=removes)).headers
    for quiet in (call(none, removes=removes), call(some)):
        fields = DIALECT.writer(quiet, GATEWAY).headers(stream=False)
        fields += DIALECT.accepted(quiet).headers
        assert b"carnet-removed" not in dict(fields)


def test_a_whole_answer_is_one_completion_of_the_agent() -> None:
    body: Any = json.read(writer().whole([Text("hi"), Usage(cost=5), Done()]))
    assert (body["model"], body["choices"][0]["message"]["content"]) == ("echo", "hi")
    assert (body["usage"]["cost"], body["usage"]["currency"]) == ("0.000005", "credits")


def test_the_chunks_of_an_answer_are_one_stream_however_they_are_written() -> None:
    written = writer(Ask(messages=(), stream=True))
    chunks = written.write([Text("a")]) + written.write([Text("b"), Done()])
    assert chunks.count(b'"role"') == 1
    reader = ChunkReader(currency="credits")
    events = [*reader.feed(chunks), *reader.close()]
    assert (joined_text(events), events[-1], reader.fault) == ("ab", Done(), "")


def test_a_call_that_failed_is_told_with_what_it_cost_all_the_same() -> None:
    reply = writer().refusal(Failed("rate_limited", {"retry_after": 9}), Usage(cost=5))
    assert reply.status == 429
    fields = dict(reply.headers)
    assert (fields[b"x-tangle-runid"], fields[b"retry-after"]) == (b"conv_1", b"9")
    assert [name for name, _ in reply.headers].count(b"content-type") == 1
    body = page(reply)
    assert (body["code"], body["error"]["run"]) == ("rate_limited", "conv_1")
    assert body["usage"]["cost"] == "0.000005"


# ------------------------------------------------------------------ everything else


def test_a_request_that_never_became_a_call_is_refused_with_the_run_that_it_named() -> None:
    error = RateLimited("raw detail", retry_after=9)
    error.run = "conv_9"
    reply = DIALECT.refusal(error)
    assert (reply.status, dict(reply.headers)[b"retry-after"]) == (429, b"9")
    assert page(reply)["error"]["run"] == "conv_9"
    assert b"raw detail" not in reply.body


def test_a_task_that_was_taken_on_is_told_by_its_id() -> None:
    reply = DIALECT.accepted(call(task="t-1"))
    assert (reply.status, dict(reply.headers)[b"x-tangle-runid"]) == (202, b"conv_1")
    accepted = {"taskId": "t-1", "status": "accepted", "run": "conv_1", "turn": "turn_1"}
    assert page(reply) == accepted


def test_the_result_of_an_answer_is_the_same_however_its_text_was_cut() -> None:
    whole = DIALECT.result([Text("ab"), Done()])
    assert whole == DIALECT.result([Text("a"), Text("b"), Done()])
    assert whole != DIALECT.result([Text("ac"), Done()])


def test_a_task_is_shown_and_one_whose_end_was_asked_for_is_accepted() -> None:
    shown = DIALECT.tell("show", task())
    assert (shown.status, page(shown)["taskId"]) == (200, "t-1")
    assert DIALECT.tell("cancel", task(is_cancel=True)).status == 202


def test_a_list_of_tasks_says_where_the_next_ones_begin() -> None:
    listed = page(DIALECT.tell("list", TaskList(tasks=(task(turn=turn(n=1)),), following=9)))
    assert ([line["taskId"] for line in listed["tasks"]], listed["next"]) == (["t-1"], 9)


def test_agents_are_listed_as_models_of_the_organisation() -> None:
    models = page(DIALECT.tell("models", AgentList(names=("echo", "critic"), gateway=GATEWAY)))
    assert [model["id"] for model in models["data"]] == ["echo", "critic"]
    assert {model["owned_by"] for model in models["data"]} == {"acme.example"}
    assert {model["created"] for model in models["data"]} == {GATEWAY.started}
