"""A person's conversations, listed, searched, changed and taken along, on each store."""

import json
import re

import pytest

from tests.gateway.conversations.scene import Person
from tests.support.http import Reply

NAMED = re.compile(r"\{[a-z_]+\}")


def listed(alice: Person, query: str = "") -> list[str]:
    reply = alice.get(f"/conversations{query}")
    assert reply.status == 200, reply.body
    return [each["title"] for each in reply.json["conversations"]]


def test_an_empty_list_is_a_page_with_none(alice: Person) -> None:
    assert alice.get("/conversations").json == {"conversations": [], "next": None}


def test_conversations_are_listed_searched_renamed_and_put_away(alice: Person) -> None:
    first = alice.say("plan the Budget", agent="critic")
    second = alice.say("weather in Zürich")
    assert listed(alice) == ["weather in Zürich", "plan the Budget"]
    assert listed(alice, "?search=BUDGET") == ["plan the Budget"]
    assert listed(alice, "?search=weak") == ["plan the Budget"]  # the answer says it
    assert listed(alice, "?search=z%C3%BCrich+weather") == ["weather in Zürich"]
    assert listed(alice, "?agent=critic") == ["plan the Budget"]
    assert listed(alice, "?trigger=schedule") == []
    assert listed(alice, "?unread=true") == []
    page = alice.get("/conversations?limit=1").json
    assert page["next"] is not None
    assert listed(alice, f"?limit=1&before={page['next']}") == ["plan the Budget"]
    path = f"/conversations/{first.conversation}"
    changed = alice.send("PATCH", path, {"title": "Savings", "unread": True, "archived": True})
    assert changed.status == 200, changed.body
    shown = {name: changed.json[name] for name in ("title", "unread", "archived")}
    assert shown == {"title": "Savings", "unread": 1, "archived": True}
    assert listed(alice) == ["weather in Zürich"]
    assert listed(alice, "?archived=true&search=savings") == ["Savings"]
    for wrong in ({"title": ""}, {"archived": 1}, {"owner": "x"}, {"title": "a\nb"}):
        reply = alice.send("PATCH", path, wrong)
        assert (reply.status, reply.code) == (400, "invalid_request"), wrong
    for query in ("?search=%20", "?trigger=x", "?before=x", "?since=x"):
        assert alice.get(f"/conversations{query}").status == 400, query
    assert second.conversation != first.conversation


def test_a_conversation_is_read_a_page_at_a_time_and_its_branches_are_shown(alice: Person) -> None:
    sent = alice.say("one")
    for word in ("two", "three"):
        alice.say(word, sent.conversation)
    path = f"/conversations/{sent.conversation}"
    page = alice.get(f"{path}?limit=4").json
    assert [each["content"] for each in page["messages"]] == [
        *("You said: three", "three", "You said: two", "two"),
    ]
    rest = alice.get(f"{path}?limit=4&before={page['next']}").json
    assert [each["content"] for each in rest["messages"]] == ["You said: one", "one"]
    assert rest["next"] is None
    alice.say("other", sent.conversation, edits=page["messages"][1]["id"])
    branch = alice.get(path).json["messages"]
    assert [each["content"] for each in branch][:2] == ["You said: other", "other"]
    siblings = branch[1]["siblings"]
    assert len(siblings) == 2
    back = alice.send("PATCH", path, {"head": page["messages"][0]["id"]})
    assert back.status == 200
    assert alice.get(path).json["messages"][0]["content"] == "You said: three"
    assert alice.send("PATCH", path, {"head": "msg_unknown"}).code == "message_not_found"


def test_a_conversation_is_taken_along_whole(alice: Person) -> None:
    sent = alice.say("one")
    alice.say("two", sent.conversation, agent="broken")
    path = f"/conversations/{sent.conversation}/export"
    exported = json.loads(alice.get(path).body)
    assert [each["content"] for each in exported["messages"]] == [
        *("one", "You said: one", "two", "so far "),
    ]
    text = alice.get(f"{path}?format=markdown")
    assert text.headers["content-type"].startswith("text/markdown")
    words = text.body.decode()
    assert words.startswith("# one\n")
    assert "@echo" in words
    assert "*(partial" in words
    assert alice.get(f"{path}?format=pdf").status == 400


def test_who_is_asked_and_what_is_told_of_a_client_is_shown(alice: Person) -> None:
    page = alice.get("/owner").json
    assert (page["agent"], page["orchestrator"]) == ("echo", "panel")
    assert page["client_context"] == {"models": ["path"], "tools": ["path"]}


def doors(alice: Person, *starts: str) -> list[tuple[str, str]]:
    """The method and the path of everything that is served under a name, as it is published."""
    paths = alice.get("/openapi.json").json["paths"]
    return [
        (method.upper(), path)
        for path, methods in paths.items()
        if "{" in path and path.startswith(starts)
        for method in methods
        if method != "parameters"
    ]


def through(person: Person, method: str, path: str, name: str) -> Reply:
    asks = {"title": "mine"} if method == "PATCH" else {"outcome": "accepted"}
    body = asks if method == "PATCH" or path.startswith("/approvals/") else None
    return person.send(method, NAMED.sub(name, path), body)


def test_two_owners_see_nothing_of_one_another_by_any_door(alice: Person) -> None:
    sent = alice.say("secret plan", client_message_id="c1")
    asked = alice.say("wait", agent="asks")
    bob = alice.another()
    shown = alice.get(f"/conversations/{sent.conversation}").json["messages"]
    question = asked.frames[-2].data["request_id"]
    for start, theirs_is in (
        ("/conversations/", sent.conversation),
        ("/runs/", shown[0]["run"]),
        ("/approvals/", question),
    ):
        found = doors(alice, start)
        assert len(found) >= 2
        for method, path in found:
            theirs, nobodys = (
                through(bob, method, path, name) for name in (theirs_is, "cnv_unknown")
            )
            assert (theirs.status, theirs.code) == (nobodys.status, nobodys.code), (method, path)
            assert theirs.status == 404 or theirs.code == "permission_missing", (method, path)
            if start == "/conversations/":
                assert theirs.body == nobodys.body, (method, path)
    assert bob.get("/approvals").json["approvals"] == []
    (left,) = alice.get("/approvals").json["approvals"]
    assert (left["id"], left["status"]) == (question, "open")
    assert listed(alice) == ["wait", "secret plan"]


def test_no_message_of_another_is_meant_in_a_conversation_of_ones_own(alice: Person) -> None:
    sent = alice.say("secret plan", client_message_id="c1")
    bob, path = alice.another(), f"/conversations/{sent.conversation}"
    shown = alice.get(path).json["messages"]
    assert bob.say("x", sent.conversation).reply.code == "conversation_not_found"
    assert (listed(bob), listed(bob, "?search=secret")) == ([], [])
    other = bob.say("secret plan", client_message_id="c1")
    assert other.conversation != sent.conversation
    message = shown[0]["id"]
    assert bob.get(f"/conversations/{other.conversation}?before={message}").status == 404
    for tail in ("retry", "regenerate"):
        reply = bob.post(f"/conversations/{other.conversation}/{tail}", {"message": message})
        assert reply.code == "message_not_found"
    reply = bob.send("PATCH", f"/conversations/{other.conversation}", {"head": message})
    assert reply.code == "message_not_found"
    edited = bob.say("x", other.conversation, edits=message)
    assert edited.reply.code == "message_not_found"
    assert listed(alice) == ["secret plan"]
    assert alice.get(path).json["messages"] == shown


@pytest.mark.parametrize("name", ["%00", "a%00b", "%FF", "%F0%9F%98%80", "%2e%2e", "'", "9" * 40])
def test_what_nobody_can_be_called_is_not_there(alice: Person, name: str) -> None:
    """Also where a database cannot be asked for it."""
    alice.as_owner("triggers", "memory:read", "memory:write")
    for method, path in doors(alice, "/"):
        reply = alice.send(method, NAMED.sub(name, path), {})
        assert reply.status < 500, (method, path, reply.body)


def test_all_tokens_of_a_person_are_one_owner(alice: Person) -> None:
    name, home = f"p{alice.name.replace('-', '')}", alice.home
    home.carnet("people", "add", name, "--role", "operator")
    laptop, phone = Person(home, alice.model), Person(home, alice.model)
    laptop.token = home.new_token(f"{name}-laptop", "--person", name)
    phone.token = home.new_token(f"{name}-phone", "--person", name)
    word = f"shared by {name}"
    sent = laptop.say(word, client_message_id="c1")
    again = phone.say(word, client_message_id="c1")
    assert (again.text, again.message, alice.ran(word)) == (sent.text, sent.message, 1)
    assert listed(phone, "?search=shared") == [word]
    assert phone.say("more", sent.conversation).text == "You said: more"
    assert listed(alice) == []
    assert phone.send("DELETE", f"/conversations/{sent.conversation}").status == 200
    assert laptop.get(f"/conversations/{sent.conversation}").status == 410
