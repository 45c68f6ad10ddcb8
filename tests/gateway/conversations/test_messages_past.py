"""An agent searches what its person has said before, if she allows it, on each store."""

import json

from tests.engine.process import tool_call
from tests.gateway.conversations.scene import Person
from tests.support.model import streamed

MAY = "tool:search_conversations"


def searched(alice: Person, words: str, agent: str = "keeper", **more: str) -> str:
    """What the model is told that its search has found; empty where it may not search."""
    arguments = json.dumps({"query": words, **more})
    alice.replies(tool_call("search_conversations", arguments), streamed("So."))
    assert alice.say("what was it?", agent=agent).text == "So."
    offered = [each["function"]["name"] for each in alice.model.asked[0].body.get("tools", [])]
    (found,) = [
        each["content"] for each in alice.model.asked[-1].body["messages"] if each["role"] == "tool"
    ]
    return found if "search_conversations" in offered else ""


def test_an_agent_finds_what_its_own_person_has_said_before(alice: Person) -> None:
    alice.as_owner(MAY)
    sent = alice.say("Plans of a year\nthe budget is 100 for apples", agent="echo")
    found = searched(alice, "Budget apples")
    assert sent.conversation in found
    assert "Plans of a year" in found
    assert found.endswith("the budget is 100 for apples")
    assert "No conversation holds" in searched(alice, "pears")
    alice.send("DELETE", f"/conversations/{sent.conversation}")
    assert "No conversation" in searched(alice, "budget apples")


def test_nobody_else_finds_it_and_only_who_is_asked_by_her_searches(alice: Person) -> None:
    alice.as_owner(MAY)
    alice.say("my secret garden", agent="echo")
    assert "secret garden" in searched(alice, "secret garden")
    assert searched(alice, "secret garden", agent="through") == ""  # another agent has called it
    bob = alice.another()
    bob.as_owner(MAY)
    assert "No conversation" in searched(bob, "secret garden", person=alice.name)
    carol = alice.another()
    carol.as_owner()
    assert searched(carol, "secret garden") == ""  # she has not allowed it
    machine = alice.another()
    machine.say("my secret garden", agent="echo")
    assert searched(machine, "secret garden") == ""
    ids = [("x-tangle-runid", "elsewhere-1"), ("x-tangle-forwarded-depth", "1")]
    arguments = json.dumps({"query": "secret garden"})
    alice.replies(tool_call("search_conversations", arguments), streamed("So."))
    assert alice.home.chat("go", "keeper", token=alice.token, headers=ids).status == 200
    assert "secret garden" not in json.dumps(alice.model.asked[-1].body["messages"][-1])
