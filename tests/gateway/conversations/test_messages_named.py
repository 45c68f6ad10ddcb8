"""Handles that a message begins with, and mentions in an answer, on each store (R37)."""

from functools import partial
from typing import Any

from carnet.testing.wait import until
from tests.gateway.conversations.scene import Person


def test_a_handle_that_a_message_begins_with_chooses_the_agent(alice: Person) -> None:
    sent = alice.say("@critic judge this")
    assert sent.text == "weak: @critic judge this"
    whole = alice.say("@critic@acme.example: and that", sent.conversation)
    assert whole.text == "weak: @critic@acme.example: and that"
    follows = alice.say("and more", sent.conversation)  # it goes on with who was asked last
    assert follows.text == "weak: and more"
    other = alice.say("@nobody hello")
    assert other.text == "You said: @nobody hello"
    mail = alice.say("write to bob@example.org")
    assert mail.text == "You said: write to bob@example.org"


def test_several_handles_go_to_the_orchestrator(alice: Person) -> None:
    sent = alice.say("@critic, @echo@acme.example: a plan")
    assert sent.text == "critic:\nweak: a plan\n\n@echo@acme.example:\nYou said: a plan"
    assert sent.events[-1] == "done"
    assert "relay" not in sent.events  # it names those whom it has asked, and mentions nobody
    newest, _ = alice.get(f"/conversations/{sent.conversation}").json["messages"]
    assert (newest["author"], newest["content"]) == ("panel", sent.text)
    assert alice.ran("a plan") == 1
    one = alice.say("@critic @nobody a plan")
    assert one.text == "weak: @critic @nobody a plan"


def test_what_one_of_several_asks_for_stands_beside_the_answers_of_the_others(
    alice: Person,
) -> None:
    for answer, line in (
        ({"outcome": "accepted"}, "asks:\naccepted fly"),
        ({"outcome": "rejected", "value": "without"}, "asks was left out."),
    ):
        sent = alice.say("@asks @critic fly")
        assert "critic:\nweak: fly" in sent.text
        (asked,) = [each.data for each in sent.frames if each.event == "approval-request"]
        assert (asked["summary"], asked["without"]) == ("May I fly?", True)
        assert sent.end["finish_reason"] == "approval_required"
        decided = alice.post(f"/approvals/{asked['request_id']}", answer)
        assert decided.status == 200, decided.body
        place = f"/conversations/{sent.conversation}"
        newest = until(partial(_newest, alice, place), lambda seen: seen["state"] == "whole")
        assert newest["content"] == f"{line}\n\ncritic:\nweak: fly"


def test_a_mention_in_what_one_of_several_answers_is_relayed_as_its_own(alice: Person) -> None:
    sent = alice.say("@chair, @echo@acme.example: a trip")
    words = "Let us hear @critic about a trip."
    assert sent.text == (
        f"chair:\n{words}\n\n@echo@acme.example:\nYou said: a tripweak: chair says: {words}"
    )
    (relay,) = [each.data for each in sent.frames if each.event == "relay"]
    assert (relay["author"], relay["code"]) == ("critic", None)
    relayed, answer, _ = alice.get(f"/conversations/{sent.conversation}").json["messages"]
    assert (relayed["author"], answer["author"]) == ("critic", "panel")
    run = alice.get(f"/runs/{answer['run']}").json
    depths = sorted((turn["depth"], turn["agent"]) for turn in _turns(run))
    assert depths == [(0, "panel"), (1, "chair"), (1, "echo"), (2, "critic")]


def test_what_somebody_asks_for_who_was_mentioned_is_asked_and_answered(alice: Person) -> None:
    for outcome in ("accepted", "rejected"):
        word = f"hear @asks {outcome}"
        sent = alice.say(word, agent="echo")
        asked = f"echo says: You said: {word}"
        (question,) = [each.data for each in sent.frames if each.event == "approval-request"]
        assert question["summary"] == f"May I {asked}?"
        assert sent.end["finish_reason"] == "approval_required"
        assert sent.text == f"You said: {word}"
        decided = alice.post(f"/approvals/{question['request_id']}", {"outcome": outcome})
        assert decided.status == 200, decided.body
        place = f"/conversations/{sent.conversation}"
        page = until(
            partial(_page, alice, place), lambda seen: seen["messages"][-2]["state"] == "whole"
        )
        relayed, answer, _ = page["messages"]
        assert (answer["author"], relayed["author"]) == ("echo", "asks")
        assert (relayed["content"], page["size"]) == (f"{outcome} {asked}", 3)
        assert alice.ran(word) == 1  # what it has said is not thought of again


def test_a_mention_in_an_answer_is_relayed_as_a_message_of_its_own(alice: Person) -> None:
    sent = alice.say("a plan", agent="chair", client_message_id="c1")
    assert sent.events == ["text-delta", "relay", "text-delta", "done"]
    relay = sent.frames[1].data
    assert (relay["author"], relay["code"]) == ("critic", None)
    assert relay["message_id"] == f"{sent.message}.1"
    repeated = alice.say("a plan", agent="chair", client_message_id="c1")
    assert (repeated.events, repeated.text) == (sent.events, sent.text)
    reply = alice.get(f"/conversations/{sent.conversation}").json
    relayed, answer, asked = reply["messages"]
    assert (relayed["author"], relayed["id"]) == ("critic", relay["message_id"])
    assert relayed["content"] == "weak: chair says: Let us hear @critic about a plan."
    assert (answer["author"], answer["content"]) == (
        "chair",
        "Let us hear @critic about a plan.",
    )
    assert (asked["state"], reply["size"]) == ("whole", 3)
    run = alice.get(f"/runs/{answer['run']}").json
    depths = {turn["agent"]: turn["depth"] for turn in _turns(run)}
    assert depths == {"chair": 0, "critic": 1}
    recalled = alice.say("so?", sent.conversation, agent="recall")
    assert "assistant: critic said: weak: chair says:" in recalled.text
    again = alice.ask(f"/conversations/{sent.conversation}/regenerate", {"message": sent.message})
    assert again.events == sent.events


def _page(alice: Person, place: str) -> Any:
    return alice.get(place).json


def _newest(alice: Person, place: str) -> dict[str, str]:
    newest: dict[str, str] = alice.get(place).json["messages"][0]
    return newest


def _turns(run: dict[str, object]) -> list[dict[str, object]]:
    """All turns of a run, as its page shows them: each with those made in it."""
    found: list[dict[str, object]] = []
    waiting = list(run["turns"])  # type: ignore[call-overload]
    while waiting:
        turn = waiting.pop()
        found.append(turn)
        waiting += turn.get("children", [])
    return found
