"""What a person says to her agents, through a real gateway on each store."""

import json
from typing import Any

import pytest

from carnet.testing.wait import until
from tests.engine.process import tool_call, with_usage
from tests.faults.stores import rows
from tests.gateway.conversations.scene import Person, StreamReply, frames_of, read_until


def kept(alice: Person, sent: StreamReply) -> list[dict[str, Any]]:
    """The messages of a conversation, the first one first."""
    reply = alice.get(f"/conversations/{sent.conversation}")
    assert reply.status == 200, reply.body
    messages: list[dict[str, Any]] = reply.json["messages"]
    return messages[::-1]


def test_a_message_begins_a_conversation_and_is_answered_by_a_stream(alice: Person) -> None:
    sent = alice.say("hello")
    assert sent.reply.status == 200, sent.reply.body
    assert sent.reply.headers["content-type"].startswith("text/event-stream")
    assert (sent.events, sent.text) == (["text-delta", "text-delta", "done"], "You said: hello")
    assert sent.end["conversation_id"] == sent.conversation
    assert sent.end["message_id"] == sent.message
    assert sent.end["finish_reason"] == "stop"
    again = alice.say("and again", sent.conversation, agent="recall")
    assert again.conversation == sent.conversation
    assert again.text == "user: hello | assistant: echo said: You said: hello | user: and again"


def test_a_round_with_a_tool_is_shown_and_told_again_to_the_model(alice: Person) -> None:
    alice.replies(tool_call("read_page", '{"name":"finances"}'), with_usage("It is 100."))
    sent = alice.say("What is my goal?", agent="assistant")
    call, result, *_, end = sent.frames
    assert (call.event, call.data["name"], call.data["input"]) == (
        "tool-call",
        "read_page",
        {"name": "finances"},
    )
    assert (result.event, result.data["status"], result.data["id"]) == (
        "tool-result",
        "ok",
        call.data["id"],
    )
    assert "says 100" in result.data["output"]
    assert (sent.text, end.data["usage"]["completion_tokens"]) == ("It is 100.", 75)
    alice.replies(with_usage("Yes."))
    alice.say("Sure?", sent.conversation)
    (asked,) = alice.model.asked
    roles = [message["role"] for message in asked.body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]


def test_what_she_says_is_kept_before_anything_runs(alice: Person) -> None:
    with_gate = alice.saying("first", agent="slow")
    head = read_until(with_gate, b"half")
    assert b"text-delta" in head
    (listed,) = alice.get("/conversations").json["conversations"]
    assert (listed["title"], listed["answering"]) == ("first", True)
    busy = alice.say("second", listed["id"])
    assert (busy.reply.status, busy.reply.code) == (409, "conversation_busy")
    assert busy.reply.headers["retry-after"] == "1"
    alice.opens_gate()
    rest = b"".join(with_gate)
    assert b"event: done" in rest


def test_the_same_id_has_the_same_answer_and_never_a_second_one(alice: Person) -> None:
    word = f"once-{alice.token[-8:]}"
    first = alice.say(word, client_message_id="c1")
    again = alice.say(word, client_message_id="c1")
    there = alice.say(word, first.conversation, client_message_id="c1")
    for repeat in (again, there):
        assert (repeat.text, repeat.end) == (first.text, first.end)
    assert alice.ran(word) == 1
    other = alice.say("other", client_message_id="c1")
    assert (other.reply.status, other.reply.code) == (422, "idempotency_mismatch")
    assert len(alice.get("/conversations").json["conversations"]) == 1


def test_who_sends_it_again_while_it_is_given_reads_along(alice: Person) -> None:
    word = f"along-{alice.token[-8:]}"
    first = alice.saying(word, agent="slow", client_message_id="c1")
    read_until(first, b"half")
    second = alice.saying(word, agent="slow", client_message_id="c1")
    read_until(second, b"half")
    alice.opens_gate()
    assert b"event: done" in b"".join(first)
    assert b"event: done" in b"".join(second)
    assert alice.ran(f"slow {word}") == 1


def test_a_partial_answer_is_kept_and_tried_again(alice: Person) -> None:
    sent = alice.say("x", agent="broken")
    assert sent.events == ["text-delta", "error"]
    assert (sent.text, sent.end["conversation_id"]) == ("so far ", sent.conversation)
    assert "secret words" not in sent.reply.body.decode()
    asked, answer = kept(alice, sent)
    assert (asked["state"], answer["state"], answer["content"]) == (
        "partial",
        "partial",
        "so far ",
    )
    assert answer["code"] == sent.end["code"]
    again = alice.say("x", sent.conversation, agent="broken", client_message_id="c2")
    repeated = alice.say("x", sent.conversation, agent="broken", client_message_id="c2")
    assert (repeated.text, repeated.end["code"]) == (again.text, again.end["code"])


def test_an_agent_that_is_down_loses_nothing_and_can_be_asked_again(alice: Person) -> None:
    sent = alice.say("try", agent="flaky")
    assert sent.events == ["error"]
    assert sent.end["retryable"] is True
    assert [each["state"] for each in kept(alice, sent)] == ["unanswered", "unanswered"]
    alice.opens_gate()
    again = alice.ask(f"/conversations/{sent.conversation}/retry")
    assert (again.text, again.message) == ("at last", sent.message)
    assert [each["state"] for each in kept(alice, sent)] == ["whole", "whole"]
    refused = alice.ask(f"/conversations/{sent.conversation}/retry")
    assert (refused.reply.status, refused.reply.code) == (400, "invalid_request")


def test_who_leaves_finds_what_was_said_until_then(alice: Person) -> None:
    stream = alice.saying("leave", agent="slow")
    read_until(stream, b"half")
    stream.close()
    page = until(
        lambda: alice.get("/conversations").json["conversations"][0],
        lambda found: not found["answering"],
    )
    messages = alice.get(f"/conversations/{page['id']}").json["messages"]
    assert (messages[0]["state"], messages[0]["content"], page["unread"]) == ("partial", "half ", 1)


def notices(person: Person) -> list[tuple[str, str, str | None]]:
    """What somebody was told of her conversations: how they stand, which, and why."""
    found = [json.loads(bytes(row[0])) for row in rows(person.home, "SELECT body FROM outbox")]
    stands = [each for each in found if each["type"].startswith("conversation.")]
    own = [each["data"] | {"type": each["type"]} for each in stands]
    own = [each for each in own if each["owner"] == person.name]
    assert {each["trigger"] for each in own} <= {"message"}
    return [(each["type"], each["message"], each["code"]) for each in own]


def test_who_has_left_is_told_how_it_ended_and_who_was_reading_is_not(alice: Person) -> None:
    """R44: of what nobody read when it ended, once; at an address of hers."""
    alice.as_owner()
    address = f"https://{alice.name}.example/notices"
    alice.home.carnet("people", "link", alice.name, "--address", address, "--verified")
    # A token that nobody knows yet has the gateway read anew who there is.
    alice.token = alice.home.new_token(f"{alice.name}-then", "--person", alice.name)
    alice.say("read to its end")
    alice.say("read too", agent="broken")
    asked = alice.say("go", agent="asks")  # and read the question
    stopped = alice.saying("stop me", agent="slow")
    read_until(stopped, b"half")
    talk = next(each for each in alice.get("/conversations").json["conversations"])
    assert alice.post(f"/conversations/{talk['id']}/stop").json["stopped"] is True
    b"".join(stopped)
    assert notices(alice) == []
    left = alice.saying("leave", agent="slow")
    read_until(left, b"half")
    left.close()
    (first,) = until(lambda: notices(alice))
    assert (first[0], first[2]) == ("conversation.failed", "cancelled")
    (question,) = alice.get("/approvals?status=open").json["approvals"]
    alice.post(f"/approvals/{question['id']}", {"outcome": "accepted"})
    _, ended = until(lambda: notices(alice), lambda found: len(found) == 2)
    assert ended == ("conversation.ended", asked.message, None)


def test_the_last_answer_is_read_along_and_nothing_is_run_by_that(alice: Person) -> None:
    failed = alice.say("try", agent="flaky")
    place = f"/conversations/{failed.conversation}/answer"
    ran = alice.ran("flaky try")
    alice.opens_gate()
    again = alice.get(place)
    assert (again.status, frames_of(again.body)[-1].event) == (200, "error")
    assert alice.ran("flaky try") == ran
    assert (alice.another().get(place).status, alice.get("/conversations/x/answer").status) == (
        404,
        404,
    )
    alice.closes_gate()
    stream = alice.saying("go", agent="slow")
    read_until(stream, b"half")
    listed = alice.get("/conversations").json["conversations"][0]
    follows = alice.following(f"/conversations/{listed['id']}/answer")
    read_until(follows, b"half")
    alice.opens_gate()
    for each in (stream, follows):
        assert b"whole" in b"".join(each)
    kept_now = frames_of(alice.get(f"/conversations/{listed['id']}/answer").body)
    assert "".join(each.data.get("delta", "") for each in kept_now) == "half whole"


def test_an_answer_is_stopped_and_another_one_is_given_beside_it(alice: Person) -> None:
    stream = alice.saying("stop me", agent="slow")
    read_until(stream, b"half")
    (listed,) = alice.get("/conversations").json["conversations"]
    stopped = alice.post(f"/conversations/{listed['id']}/stop")
    assert stopped.json["stopped"] is True
    assert b"event: error" in b"".join(stream)
    alice.opens_gate()
    again = alice.ask(f"/conversations/{listed['id']}/regenerate")
    assert (again.text, again.message != stopped.json["message_id"]) == ("half whole", True)
    asked, answer = kept(alice, again)
    assert (answer["content"], len(answer["siblings"])) == ("half whole", 2)
    assert alice.post(f"/conversations/{listed['id']}/stop").json["stopped"] is False
    assert asked["state"] == "whole"


def test_an_edited_message_begins_a_branch(alice: Person) -> None:
    first = alice.say("one")
    second = alice.say("two", first.conversation)
    asked = kept(alice, second)[2]
    edited = alice.say("two, better", first.conversation, edits=asked["id"], agent="recall")
    assert edited.text == "user: one | assistant: echo said: You said: one | user: two, better"
    assert len(kept(alice, edited)) == 4
    assert len(kept(alice, edited)[2]["siblings"]) == 2


def test_what_needs_an_approval_is_asked_for_and_goes_on_when_it_is_given(alice: Person) -> None:
    alice.replies(tool_call("send_mail", '{"to":"bob"}'), with_usage("Sent."))
    sent = alice.say("Mail bob", agent="assistant", client_message_id="m1")
    assert sent.events == ["tool-call", "approval-request", "done"]
    request = sent.frames[1].data
    assert (request["tool_name"], request["kind"]) == ("send_mail", "approval")
    assert sent.end["finish_reason"] == "approval_required"
    assert kept(alice, sent)[1]["state"] == "partial"
    decided = alice.post(f"/approvals/{request['request_id']}", {"outcome": "accepted"})
    assert decided.status == 200, decided.body
    until(lambda: kept(alice, sent)[1]["state"] == "whole")
    again = alice.say("Mail bob", agent="assistant", client_message_id="m1")
    assert again.text == "Sent."
    asked = ["tool-call", "approval-request", "approval-result", "tool-result"]
    assert again.events[:4] == asked
    assert kept(alice, sent)[1]["tools"][0]["status"] == "ok"


def test_an_answer_that_goes_on_after_an_approval_is_given_once_and_can_be_stopped(
    alice: Person,
) -> None:
    tokens = [alice.home.new_token(f"{alice.name}-{n}", "--person", "owner") for n in range(2)]
    alice.token = tokens[0]
    sent = alice.say("wait", agent="asks")
    before = alice.ran("asks wait")
    question = sent.frames[0].data["request_id"]
    assert alice.post(f"/approvals/{question}", {"outcome": "accepted"}).status == 200
    until(lambda: alice.ran("asks wait") == before + 1)
    retry = f"/conversations/{sent.conversation}/retry"
    alice.token = tokens[1]  # of the same person
    busy = alice.ask(retry).reply
    assert (busy.status, busy.code) == (409, "conversation_busy")
    alice.token = tokens[0]
    stopped = alice.post(f"/conversations/{sent.conversation}/stop").json
    assert (stopped["stopped"], stopped["message_id"]) == (True, sent.message)
    alice.opens_gate()
    again = alice.ask(retry)
    assert (again.text, again.message) == ("accepted wait", sent.message)
    assert alice.ran("asks wait") == before + 2  # the stopped one, and once more


def test_what_cannot_be_admitted_is_kept_and_names_its_conversation(alice: Person) -> None:
    poor = alice.home.new_token(f"poor-{alice.token[-6:]}", "--limit", "0.1")
    alice.token = poor
    sent = alice.say("buy", agent="paid")
    assert (sent.reply.status, sent.reply.code) == (402, "spending_limit_reached")
    assert sent.conversation.startswith("cnv_")
    assert [each["state"] for each in kept(alice, sent)] == ["unanswered", "unanswered"]


def test_content_passes_unchanged_and_its_cost_is_hers(alice: Person) -> None:
    content = 'NUL \0, <b>markup</b>, emoji 🦊, "quotes"\r\nlines'
    sent = alice.say(content, agent="paid")
    assert sent.text == f"You said: {content}"
    assert sent.end["usage"]["cost"] == "0.25"
    asked, answer = kept(alice, sent)
    assert (asked["content"], answer["content"]) == (content, f"You said: {content}")
    (listed,) = alice.get("/conversations").json["conversations"]
    assert listed["cost"] == "0.25"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "content"),
        ({"content": "  "}, "content"),
        ({"content": 7}, "content"),
        ({"content": "x" * 300_000}, "content"),
        ({"content": "x", "metadata": []}, "metadata"),
        ({"content": "x", "metadata": {"api_key": "k"}}, "metadata.api_key"),
        ({"content": "x", "metadata": {"client_context": 1}}, "metadata.client_context"),
        ({"content": "x", "client_message_id": ""}, "client_message_id"),
        ({"content": "x", "provider": "y"}, "provider"),
        ({"content": "x", "agent": 1}, "agent"),
    ],
)
def test_what_is_not_in_its_form_is_refused_and_nothing_is_kept(
    alice: Person, body: dict[str, Any], field: str
) -> None:
    reply = alice.post("/message", body)
    assert (reply.status, reply.code) == (400, "invalid_request")
    assert field in reply.json["message"]
    assert alice.get("/conversations").json["conversations"] == []


def test_an_unknown_conversation_or_agent_is_not_found_and_nothing_is_kept(alice: Person) -> None:
    for reply, code in (
        (alice.say("x", "cnv_unknown").reply, "conversation_not_found"),
        (alice.say("x", agent="nobody").reply, "agent_not_found"),
        (alice.post("/conversations/cnv_unknown/retry"), "conversation_not_found"),
        (alice.post("/conversations/cnv_unknown/stop"), "conversation_not_found"),
    ):
        assert (reply.status, reply.code) == (404, code)
    assert alice.get("/conversations").json["conversations"] == []


def test_how_much_of_what_the_model_can_read_is_used_stands_in_the_end(alice: Person) -> None:
    sent = alice.say("word " * 560, agent="narrow")
    assert sent.end["context_window"]["ratio"] >= 0.8
    assert "context_window" not in alice.say("short", agent="narrow").end


def test_what_the_model_is_told_of_the_client_is_configured(alice: Person) -> None:
    context = {"path": "/finances", "clipboard": "secret"}
    alice.say("hi", agent="assistant", metadata={"client_context": context, "client": "web"})
    (asked,) = alice.model.asked
    system = asked.body["messages"][0]["content"]
    assert '"path":"/finances"' in system.replace(" ", "")
    assert "secret" not in json.dumps(asked.body)
