"""What hooks and schedules begin: a conversation as any other, which its owner finds."""

import json
from typing import Any

import pytest

from carnet.testing.wait import until
from tests.gateway.triggers.scene import Owner, send
from tests.support.model import Model
from tests.support.organisation import Organisation

WORDS = "Run the daily digest"


def line(owner: Owner, conversation: str) -> dict[str, Any]:
    listed = owner.get("/conversations").json["conversations"]
    return next(each for each in listed if each["id"] == conversation)


def answer(owner: Owner, conversation: str) -> dict[str, Any]:
    return dict(owner.get(f"/conversations/{conversation}").json["messages"][0])


def test_a_message_a_hook_and_a_schedule_are_one_request_to_the_loop(
    acme: Organisation, model: Model
) -> None:
    owner = Owner(acme)
    reply = owner.post("/message", {"content": WORDS, "agent": "assistant"})
    assert reply.status == 200
    send(
        owner.hook(agent="assistant", template="{{ body.words }}"),
        json.dumps({"words": WORDS}).encode(),
    )
    (fired,) = owner.ended("/hooks/orders")
    owner.schedule(agent="assistant", message=WORDS)
    owner.post("/schedules/digest/fire")
    (ticked,) = owner.ended("/schedules/digest")
    by_message, by_hook, by_schedule = [asked.body for asked in model.asked]
    assert by_message["messages"][-1] == {"role": "user", "content": WORDS}
    assert by_message == by_hook == by_schedule
    listed = owner.get("/conversations").json["conversations"]
    assert [each["trigger"] for each in listed] == ["schedule", "webhook", "message"]
    assert [each["id"] for each in listed[:2]] == [ticked["conversation"], fired["conversation"]]
    for each in listed[:2]:
        assert (each["title"], each["unread"]) == (WORDS, 1)
        assert answer(owner, each["id"])["content"] == "Hello."
    hooked = owner.get("/conversations?trigger=webhook").json["conversations"]
    assert [each["id"] for each in hooked] == [fired["conversation"]]


def test_what_fails_is_kept_and_can_be_tried_again(acme: Organisation, model: Model) -> None:
    del model
    owner = Owner(acme)
    owner.schedule(agent="flaky")
    owner.post("/schedules/digest/fire")
    (failed,) = owner.ended("/schedules/digest")
    assert (failed["state"], failed["code"]) == ("failed", "agent_failed")
    conversation = failed["conversation"]
    assert answer(owner, conversation)["state"] in {"unanswered", "failed"}
    (acme.folder / "gate.txt").write_text("")
    again = owner.post(f"/conversations/{conversation}/retry")
    assert again.status == 200
    assert answer(owner, conversation)["content"] == "at last"


def test_what_waits_for_its_owner_is_answered_by_her_and_ends(acme: Organisation) -> None:
    owner = Owner(acme)
    hook = owner.hook(agent="asks", template="sell {{ body.what }}")
    assert send(hook, b'{"what": "tea"}').status == 202
    (question,) = until(lambda: owner.get("/approvals").json["approvals"])
    assert question["message"] == "May I sell tea?"
    (waits,) = owner.get("/hooks/orders").json["recent"]
    assert waits["state"] == "due"
    conversation = until(lambda: owner.get("/hooks/orders").json["recent"][0]["conversation"])
    until(lambda: answer(owner, conversation)["waits"])
    owner.post(f"/approvals/{question['id']}", {"outcome": "accepted"})
    until(lambda: answer(owner, conversation)["content"] == "accepted sell tea")


@pytest.mark.parametrize("path", ["/conversations/{}", "/hooks/orders", "/schedules/digest"])
def test_two_owners_see_nothing_of_one_anothers(acme: Organisation, path: str) -> None:
    alice, bob = Owner(acme), Owner(acme)
    alice.hook()
    alice.schedule()
    alice.post("/schedules/digest/fire")
    (fired,) = alice.ended("/schedules/digest")
    shown = path.format(fired["conversation"])
    assert alice.get(shown).status == 200
    theirs, nobodys = bob.get(shown), bob.get(shown + "-unknown")
    assert theirs.status == nobodys.status == 404
    assert theirs.json["error"]["code"] == nobodys.json["error"]["code"]
    for action in ("pause", "resume", "fire", "delete"):
        for kind in ("/hooks/orders", "/schedules/digest"):
            assert bob.post(f"{kind}/{action}", {}).status == 404
    assert bob.post("/hooks/orders/rotate", {}).status == 404
    assert bob.get("/hooks").json == {"hooks": []}
    assert bob.get("/schedules").json == {"schedules": []}
    assert alice.get("/hooks/orders").json["state"] == "active"
