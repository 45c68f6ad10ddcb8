"""With a conversation goes what agents wrote in it to their memory, on each store (R27)."""

import json

from carnet.testing.wait import until
from tests.engine.process import tool_call
from tests.faults.stores import rows
from tests.gateway.conversations.scene import Person, StreamReply
from tests.gateway.conversations.test_messages_deleted import holds
from tests.support.model import streamed

MAY = ("memory:read", "memory:write")


def write(alice: Person, path: str, content: str, agent: str = "keeper") -> StreamReply:
    """Have an agent write a file in a new conversation, and say yes to it."""
    arguments = json.dumps({"path": path, "content": content})
    alice.replies(tool_call("write_file", arguments), streamed("Noted."))
    sent = alice.say("keep this", agent=agent)
    (asked,) = [each.data for each in sent.frames if each.event == "approval-request"]
    decided = alice.post(f"/approvals/{asked['request_id']}", {"outcome": "accepted"})
    assert decided.status == 200, decided.body
    place = f"/conversations/{sent.conversation}"
    until(lambda: alice.get(place).json["messages"][0]["state"] == "whole")
    return sent


def versions(alice: Person, path: str) -> list[tuple[int, str | None, bool]]:
    """Each version of a file: in which conversation it was written, and whether it is erased."""
    found = alice.get(f"/memory/keeper/{path}/versions").json["versions"]
    return [(one["version"], one["conversation"], one["erased"] is not None) for one in found]


def test_with_a_conversation_goes_what_agents_wrote_in_it(alice: Person) -> None:
    alice.as_owner(*MAY)
    word = f"canary{alice.token[-10:].replace('-', 'x').replace('_', 'y').lower()}"
    first = write(alice, "a.md", f"{word} " * 2000)
    later = write(alice, "a.md", "the plain truth")
    assert versions(alice, "a.md") == [
        (2, later.conversation, False),
        (1, first.conversation, False),
    ]
    shown = alice.home.carnet("memory", "history", "keeper", "a.md", "--as", alice.token).stdout
    assert first.conversation in shown
    called = write(alice, "b.md", f"{word} by an agent that was called", agent="through")
    assert holds(alice, word)
    gone = alice.send("DELETE", f"/conversations/{first.conversation}").json
    assert gone["memory"] == [{"agent": "keeper", "path": "a.md", "later": [2]}]
    gone = alice.send("DELETE", f"/conversations/{called.conversation}").json
    assert gone["memory"] == [{"agent": "keeper", "path": "b.md", "later": []}]
    kept = rows(alice.home, "SELECT data FROM memory_version WHERE data IS NOT NULL")
    assert not [data for (data,) in kept if word.encode() in bytes(data)]
    assert versions(alice, "a.md") == [
        (2, later.conversation, False),
        (1, first.conversation, True),
    ]
    assert alice.get("/memory/keeper/a.md").json["content"] == "the plain truth"
    assert alice.get("/memory/keeper/b.md").status == 404
    gone = alice.send("DELETE", f"/conversations/{later.conversation}").json
    assert gone["memory"] == [{"agent": "keeper", "path": "a.md", "later": []}]
    assert alice.get("/memory").json["memory"] == []
    until(lambda: not holds(alice, word))  # the later one was shown what it would change
