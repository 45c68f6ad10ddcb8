"""A conversation that is deleted leaves no word behind, on each store (R27)."""

import re
from collections.abc import Iterator

from carnet.testing.wait import until
from tests.faults import stores
from tests.faults.stores import number, rows
from tests.gateway.conversations.scene import Person, read_until

NAMED = re.compile(r"\{[a-z_]+\}")


def holds(alice: Person, word: str) -> bool:
    """Whether a word is anywhere in what the gateway keeps."""
    return stores.holds(alice.home, word)


def copies(alice: Person, run: str, name: str) -> dict[str, bytes]:
    """What leaves the store: a backup that is made now, and each way to write a run out."""
    file = alice.home.folder / "var" / f"{name}.backup"
    alice.home.carnet("backup", str(file))
    forms = ("jsonl", "otlp")
    written = {
        form: alice.home.carnet("run", "export", run, "--format", form).stdout.encode()
        for form in forms
    }
    data = file.read_bytes()
    file.unlink()
    return {"backup": data, **written}


def logs(alice: Person) -> bytes:
    """What the process has written beside its store, on both of its outputs."""
    return alice.home.log.read_bytes() + alice.home.errors.read_bytes()


def test_no_copy_that_is_made_after_a_delete_and_no_log_has_a_word_of_it(alice: Person) -> None:
    word = f"canary{alice.token[-10:].replace('-', 'x').replace('_', 'y').lower()}"
    sent = alice.say(f"say {word}", metadata={"client": word})
    alice.say(f"break {word}", sent.conversation, agent="broken")
    alice.send("PATCH", f"/conversations/{sent.conversation}", {"title": f"of {word}"})
    messages = alice.get(f"/conversations/{sent.conversation}").json["messages"]
    runs = {each["run"] for each in messages if each.get("run")}
    before = [copies(alice, run, f"before{n}") for n, run in enumerate(runs)]
    found = {name for each in before for name, data in each.items() if word.encode() in data}
    assert {"backup", "jsonl"} <= found  # what is looked for would be found
    assert alice.send("DELETE", f"/conversations/{sent.conversation}").status == 200
    until(lambda: not holds(alice, word))
    for n, run in enumerate(runs):
        for name, data in copies(alice, run, f"after{n}").items():
            assert word.encode() not in data, name
            assert data
    for form in ("json", "markdown"):
        gone = alice.get(f"/conversations/{sent.conversation}/export?format={form}")
        assert (gone.status, gone.code, word.encode() in gone.body) == (410, "deleted", False)
    written = logs(alice)
    assert all(run.encode() in written for run in runs)  # its calls are told there, by name alone
    assert word.encode() not in written


def test_after_a_delete_no_word_of_it_is_left(alice: Person) -> None:
    word = f"canary{alice.token[-10:].replace('-', 'x').replace('_', 'y').lower()}"
    sent = alice.say(word, client_message_id=f"id-{word[:8]}", metadata={"client": word})
    alice.say(f"more {word} " * 2000, sent.conversation)
    asked = alice.say(f"fetch {word}", sent.conversation, agent="asks")
    assert asked.end["finish_reason"] == "approval_required"
    alice.send("PATCH", f"/conversations/{sent.conversation}", {"title": f"of {word}"})
    assert holds(alice, word)
    run = alice.get(f"/conversations/{sent.conversation}").json["messages"][-2]["run"]
    before = alice.get("/ledger").json
    gone = alice.send("DELETE", f"/conversations/{sent.conversation}")
    assert (gone.status, gone.json["deleted"]) == (200, sent.conversation)
    until(lambda: not holds(alice, word))
    assert alice.get("/ledger").json == before
    assert alice.home.try_carnet("ledger", "verify").returncode == 0
    for reply in (
        alice.get(f"/conversations/{sent.conversation}"),
        alice.say("x", sent.conversation).reply,
        alice.say(word, client_message_id=f"id-{word[:8]}", metadata={"client": word}).reply,
        alice.send("DELETE", f"/conversations/{sent.conversation}"),
    ):
        assert (reply.status, reply.code) == (410, "deleted")
    assert alice.get("/conversations").json["conversations"] == []
    assert alice.get(f"/runs/{run}").status == 200
    assert number(alice.home, "SELECT COUNT(*) FROM message_word WHERE word = ?", word) == 0


def test_a_repeat_of_a_deleted_turn_is_told_so_and_not_run(alice: Person) -> None:
    sent = alice.say("once more")
    answer = alice.get(f"/conversations/{sent.conversation}").json["messages"][0]
    ran = alice.ran("once more")
    ((turn,),) = rows(alice.home, "SELECT turn FROM message WHERE id = ?", answer["id"])
    gone = alice.send("DELETE", f"/conversations/{sent.conversation}")
    assert gone.status == 200, gone.body
    ids = [("x-tangle-runid", answer["run"]), ("x-tangle-turnid", turn)]
    for stream in (False, True):
        reply = alice.home.chat("once more", "echo", token=alice.token, headers=ids, stream=stream)
        assert (reply.status, reply.code) == (410, "deleted")
    assert alice.ran("once more") == ran


def test_what_runs_is_stopped_before_it_is_deleted(alice: Person) -> None:
    stream = alice.saying("deleted while", agent="slow")
    read_until(stream, b"half")
    (listed,) = alice.get("/conversations").json["conversations"]
    gone = alice.send("DELETE", f"/conversations/{listed['id']}")
    assert gone.status == 200, gone.body
    assert b"event: error" in b"".join(stream)
    until(lambda: not holds(alice, "deleted while"))


def pages(alice: Person, operator: str, name: str) -> Iterator[tuple[str, bytes]]:
    """What everything that can be looked at says, to its owner and to an operator.

    Whatever is named is named so: a run, or a conversation.
    """
    for path, methods in alice.get("/openapi.json").json["paths"].items():
        if "get" in methods:
            place = NAMED.sub(name, path)
            for token in (alice.token, operator):
                yield place, alice.home.get(place, token=token).body


def test_no_page_has_a_word_of_it_whoever_looks(alice: Person) -> None:
    alice.as_owner("triggers", "tool:*", "memory:read")
    word = f"canary{alice.token[-10:].replace('-', 'x').replace('_', 'y').lower()}"
    sent = alice.say(f"say {word}")
    asked = alice.say(f"fetch {word}", sent.conversation, agent="asks").frames[-2].data
    alice.post(f"/approvals/{asked['request_id']}", {"decision": "denied"})
    operator = alice.home.new_token(f"{alice.name}-operator", "--scope", "*")
    place = f"/conversations/{sent.conversation}"
    until(lambda: alice.get(place).json["messages"][0]["state"] == "whole")
    runs = {each["run"] for each in alice.get(place).json["messages"] if each.get("run")}
    names = [sent.conversation, *runs]
    shown = {
        path
        for name in names
        for path, body in pages(alice, operator, name)
        if word.encode() in body
    }
    assert {"/conversations", place, f"{place}/export"} <= shown
    assert any(path.startswith("/runs/") for path in shown)
    assert alice.send("DELETE", place).status == 200
    for name in names:
        for path, body in pages(alice, operator, name):
            assert word.encode() not in body, path
    assert alice.get(f"/conversations?search={word}").json["conversations"] == []
    for run in runs:
        listed = alice.home.try_carnet("run", "show", run)
        assert word not in listed.stdout + listed.stderr


def test_of_what_a_hook_has_begun_and_waits_no_word_is_left_at_once(alice: Person) -> None:
    """What the hook was to say lies beside the conversation while that waits for somebody."""
    alice.as_owner("triggers")
    word = f"canary{alice.token[-10:].replace('-', 'x').replace('_', 'y').lower()}"
    made = alice.post("/hooks", {"name": "orders", "agent": "asks", "template": "{{ body.what }}"})
    assert made.status == 201, made.body
    assert alice.post("/hooks/orders/fire", {"what": word}).status == 202
    until(lambda: alice.get("/approvals").json["approvals"])
    recent = until(lambda: alice.get("/hooks/orders").json["recent"])
    until(lambda: alice.get("/hooks/orders").json["recent"][0]["conversation"])
    (listed,) = alice.get("/conversations").json["conversations"]
    assert recent[0]["state"] == "due"
    kept = "SELECT COUNT(*) FROM firing WHERE content = ?"
    assert number(alice.home, kept, word) == 1
    deleted = until(
        lambda: alice.send("DELETE", f"/conversations/{listed['id']}"),
        lambda reply: reply.status == 200,
    )
    assert deleted.json["deleted"] == listed["id"]
    assert number(alice.home, kept, word) == 0  # in the same moment, for whoever makes a backup
    until(lambda: not holds(alice, word))
    (ended,) = alice.get("/hooks/orders").json["recent"]
    assert (ended["state"], ended["code"]) == ("failed", "deleted")
    assert alice.get("/approvals").json["approvals"] == []
