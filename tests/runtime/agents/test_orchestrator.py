"""Whom a message names first, and what is told of the answers."""

from functools import partial

import pytest

from carnet.core.messages.events import Link, Message
from carnet.errors import AgentFailed, Cancelled, Declined, InvalidRequest
from carnet.runtime.agents.orchestrator import addressed, listed
from carnet.runtime.visit.fan_out.branch import BranchAnswer
from tests.core.growth import calls_of


def test_the_handles_that_a_message_begins_with_are_asked_the_rest() -> None:
    before = [Message.user("hello"), Message.assistant("yes?")]
    text = " @a@x.example,  acct:b@y.example: @d agent://z.example @a@x.example find  @c@x.example"
    picture = Link("https://x.example/a.png")
    agents, messages = addressed([*before, Message("user", (picture, text))])
    assert agents == ("@a@x.example", "@b@y.example", "d", "agent://z.example")
    assert messages == [*before, Message("user", (picture, "find  @c@x.example"))]


@pytest.mark.parametrize("text", ["", "find it", "@a", "@a@localhost x", "@a@x.example "])
def test_without_a_handle_or_a_question_nobody_is_asked(text: str) -> None:
    with pytest.raises(InvalidRequest):
        addressed([Message.user(text)])
    with pytest.raises(InvalidRequest):
        addressed([Message("user", (Link("https://x.example"),))])


def test_one_that_is_named_without_end_is_refused_before_all_is_read() -> None:
    def refused(times: int) -> None:
        with pytest.raises(InvalidRequest, match="more than 64"):
            addressed([Message.user("@a " * times + "find it")])

    refused(80_000)
    some, many = (calls_of(partial(refused, times)) for times in (100, 80_000))
    assert some == many


def test_every_answer_stands_behind_its_address_unless_it_was_not_needed() -> None:
    answers = [
        BranchAnswer(place=0, to="a", state="done", text="yes"),
        BranchAnswer(place=1, to="b", state="failed", error=AgentFailed("at /etc")),
        BranchAnswer(place=2, to="c", state="cancelled", error=Declined()),
        BranchAnswer(place=3, to="d", state="cancelled", error=Cancelled()),
        BranchAnswer(place=4, to="e", state="cancelled", error=Cancelled()),
    ]
    assert listed(answers, [4]).split("\n\n") == [
        "a:\nyes",
        "b has failed: The agent failed while answering. (agent_failed)",
        "c was left out.",
        "e asks for something first.",
    ]
