"""Streams that stay open at a question (issue 16, must show 2), over real gateways.

What a tool did is counted by the tool: it writes to a file.
"""

import itertools

import pytest

from carnet.testing.wait import until
from tests.engine.process import tool_call, with_usage
from tests.gateway.conversations.scene import HeldStream, Person

numbers = itertools.count()
QUESTION = ["tool-call", "approval-request"]
ANSWERED = [*QUESTION, "approval-result", "tool-result", "text-delta", "done"]


def mailing(person: Person) -> tuple[HeldStream, str]:
    """A stream that is open at the question whether somebody may be sent a mail."""
    to = f"bob{next(numbers)}"
    person.replies(tool_call("send_mail", f'{{"to":"{to}"}}'), with_usage("So be it."))
    return HeldStream(person, f"Mail {to}"), f"mail {to}"


@pytest.mark.parametrize(
    "answer", [{"outcome": "accepted"}, {"decision": "approved"}], ids=["ours", "hers"]
)
def test_what_is_approved_is_done_once_and_told_in_the_same_stream(
    carol: Person, answer: dict[str, str]
) -> None:
    stream, mail = mailing(carol)
    given = stream.answer(**answer)
    assert given.status == 200, given.body
    words = {**answer, "request_id": stream.question} if "decision" in answer else answer
    assert given.json | words == given.json
    assert given.json["id"] == stream.question
    frames = stream.rest()
    assert [each.event for each in frames] == ANSWERED
    answered = {"request_id": stream.question, "decision": "approved", "edited": False}
    assert frames[2].data == answered | {"by": f"token:{carol.name}"}
    assert (frames[3].data["status"], frames[-1].data["finish_reason"]) == ("ok", "stop")
    assert stream.answer(**answer).status == 200
    for other in ({"outcome": "rejected"}, {"decision": "denied"}):
        refused = stream.answer(**other)
        assert (refused.status, refused.code) == (409, "answered_otherwise")
    again = stream.again()
    assert [(each.event, each.data) for each in again.frames[:3]] == [
        (each.event, each.data) for each in frames[:3]
    ]
    assert again.events == ANSWERED
    assert carol.ran(mail) == 1


@pytest.mark.parametrize("answer", [{"outcome": "rejected"}, {"decision": "denied"}])
def test_what_is_denied_is_not_done_and_the_agent_is_told(
    carol: Person, answer: dict[str, str]
) -> None:
    stream, mail = mailing(carol)
    assert stream.answer(**answer).status == 200
    frames = stream.rest()
    assert [each.event for each in frames] == ANSWERED
    assert (frames[2].data["decision"], frames[3].data["status"]) == ("denied", "denied")
    assert stream.answer(outcome="accepted").code == "answered_otherwise"
    assert carol.ran(mail) == 0


@pytest.mark.parametrize("answer", [{}, {"approved": True}, {"decision": "accepted"}])
def test_an_answer_in_no_form_is_refused_and_the_question_stays_open(
    carol: Person, answer: dict[str, object]
) -> None:
    stream, mail = mailing(carol)
    refused = stream.answer(**answer)
    assert (refused.status, refused.code) == (400, "invalid_request")
    assert stream.answer(outcome="accepted", decision="denied").status == 400
    assert stream.answer(decision="denied").status == 200
    assert stream.rest()[-1].event == "done"
    assert carol.ran(mail) == 0


def test_a_tool_is_run_with_the_arguments_that_were_edited(carol: Person) -> None:
    stream, mail = mailing(carol)
    edited = {"to": f"{mail[5:]}-eve"}
    assert stream.answer(outcome="accepted", value=edited).status == 200
    frames = stream.rest()
    assert [each.event for each in frames] == ANSWERED
    assert (frames[2].data["edited"], frames[2].data["arguments"]) == (True, edited)
    assert frames[1].data["arguments"] == {"to": mail[5:]}
    assert (carol.ran(mail), carol.ran(f"{mail}-eve")) == (0, 1)


def test_somebody_else_who_may_approve_answers_and_nobody_else_does(carol: Person) -> None:
    stream, mail = mailing(carol)
    other = carol.another()
    unknown = other.post(f"/approvals/{stream.question}", {"outcome": "accepted"})
    assert (unknown.status, unknown.code) == (404, "interrupt_not_found")
    scopes = ("--scope", "approve", "--scope", "run:read")
    clerk = carol.another()
    clerk.token = carol.home.new_token(f"clerk-{mail[5:]}", *scopes)
    given = clerk.post(f"/approvals/{stream.question}", {"decision": "approved"})
    assert given.status == 200, given.body
    assert stream.rest()[2].data["by"] == f"token:clerk-{mail[5:]}"
    assert carol.ran(mail) == 1


def test_what_a_rule_answers_is_not_asked_and_the_stream_says_so(carol: Person) -> None:
    stream, mail = mailing(carol)
    assert stream.answer(decision="approved", remember={}).status == 200
    assert stream.rest()[-1].event == "done"
    (rule,) = carol.get("/rules").json["rules"]
    again = tool_call("send_mail", f'{{"to":"{mail[5:]}"}}')
    carol.replies(again, with_usage("So be it."))
    sent = carol.say("Once more", agent="assistant", client_message_id="again")
    by_rule = [event for event in ANSWERED if event != "approval-request"]
    assert sent.events == by_rule
    assert sent.frames[1].data["by"] == f"rule:{rule['rule']}"
    kept = carol.say("Once more", agent="assistant", client_message_id="again")
    assert kept.events == by_rule
    assert carol.ran(mail) == 2  # once in each answer


def test_what_is_not_answered_in_time_is_not_done(carol: Person) -> None:
    word = f"word{next(numbers)}"
    stream = HeldStream(carol, word, "brief")
    frames = stream.rest()
    assert [each.event for each in frames] == ["approval-request", "error"]
    assert frames[-1].data["code"] == "interrupt_expired"
    for outcome in ("accepted", "rejected"):
        late = stream.answer(outcome=outcome)
        assert (late.status, late.code) == (410, "interrupt_expired")
    assert carol.ran(f"brief {word}") == 0


def test_a_stream_is_not_held_beyond_its_token_or_its_conversation(carol: Person) -> None:
    stream, mail = mailing(carol)
    carol.home.carnet("tokens", "revoke", carol.name)
    assert [each.event for each in stream.rest()] == [*QUESTION, "error"]
    other = carol.another()
    deleted, deleted_mail = mailing(other)
    (line,) = other.get("/conversations").json["conversations"]
    assert other.send("DELETE", f"/conversations/{line['id']}").status == 200
    assert [each.event for each in deleted.rest()] == [*QUESTION, "error"]
    assert deleted.answer(decision="approved").status == 404
    assert (carol.ran(mail), other.ran(deleted_mail)) == (0, 0)


def test_a_question_outlives_the_gateway_and_is_answered_after(carol: Person) -> None:
    """First it ends by itself, which ends what is held; then it is killed."""
    stream, mail = mailing(carol)
    assert carol.home.stop() == 0
    frames = stream.rest()
    assert [each.event for each in frames] == [*QUESTION, "done"]
    assert frames[-1].data["finish_reason"] == "approval_required"
    carol.home.start()
    carol.home.kill()
    carol.home.start()
    assert stream.answer(decision="approved").status == 200
    again = until(stream.again, lambda sent: sent.end.get("finish_reason") == "stop")
    assert again.events == ANSWERED
    assert carol.ran(mail) == 1


def test_a_stream_that_was_held_for_its_time_ends_and_its_answer_is_kept(carol: Person) -> None:
    config = carol.home.folder / "carnet.toml"
    before = config.read_text()
    config.write_text(before.replace("hold_approvals = 600", "hold_approvals = 0.2"))
    assert carol.home.json("reload")["applied"]
    try:
        stream, mail = mailing(carol)
        frames = stream.rest()
    finally:
        config.write_text(before)
        carol.home.carnet("reload")
    assert [each.event for each in frames] == [*QUESTION, "done"]
    assert frames[-1].data["finish_reason"] == "approval_required"
    conversation = f"/conversations/{frames[-1].data['conversation_id']}"
    assert stream.answer(decision="approved").status == 200
    until(lambda: carol.get(conversation).json["messages"][0]["state"] == "whole")
    assert stream.again().events == ANSWERED
    assert carol.ran(mail) == 1
