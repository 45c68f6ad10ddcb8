"""A person's conversations, listed, searched, changed and taken along, on each store."""

import json

from tests.gateway.conversations.scene import Person


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


def test_two_owners_see_nothing_of_one_another_by_any_door(alice: Person) -> None:
    sent = alice.say("secret plan", client_message_id="c1")
    bob = alice.another()
    path = f"/conversations/{sent.conversation}"
    unknown = "/conversations/cnv_unknown"
    for method, tail, body in (
        ("GET", "", None),
        ("GET", "/export", None),
        ("PATCH", "", {"title": "mine"}),
        ("DELETE", "", None),
        ("POST", "/retry", None),
        ("POST", "/regenerate", None),
        ("POST", "/stop", None),
    ):
        theirs = bob.send(method, f"{path}{tail}", body)
        nobodys = bob.send(method, f"{unknown}{tail}", body)
        assert (theirs.status, theirs.body) == (nobodys.status, nobodys.body), (method, tail)
        assert theirs.status == 404
    assert bob.say("x", sent.conversation).reply.code == "conversation_not_found"
    assert listed(bob) == []
    assert listed(bob, "?search=secret") == []
    other = bob.say("secret plan", client_message_id="c1")
    assert other.conversation != sent.conversation
    message = alice.get(path).json["messages"][0]["id"]
    assert bob.get(f"/conversations/{other.conversation}?before={message}").status == 404
    edited = bob.say("x", other.conversation, edits=message)
    assert edited.reply.code == "message_not_found"
    assert listed(alice) == ["secret plan"]


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
