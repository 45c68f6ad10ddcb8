"""A conversation that is deleted leaves no word behind, on each store (R27)."""

from carnet.testing.wait import until
from tests.faults.stores import number, rows, stored
from tests.gateway.conversations.scene import Person, read_until


def holds(alice: Person, word: str) -> bool:
    """Whether a word is anywhere in what the gateway keeps."""
    files = [file for file in (alice.home.folder / "var").rglob("*") if file.is_file()]
    found = any(word.encode() in file.read_bytes() for file in files)
    return found or word.encode() in stored(alice.home)


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
    alice.send("DELETE", f"/conversations/{sent.conversation}")
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
