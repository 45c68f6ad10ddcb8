"""Searching what was said before: whose it is, and what a model is shown of it."""

from collections.abc import Sequence

from carnet.core.messages.events import ToolCall, ToolResult
from carnet.core.people.identity import Ceiling
from carnet.engine.tools.past import NO_HITS, NO_PERSON, SHOWN_CONVERSATIONS, past_tool
from carnet.ports.memory.past import PastHit
from carnet.wire.dialects.engine_chat.actor import EngineActor
from tests.engine.scene import Scene

MAY = "tool:search_conversations"
CEILING = Ceiling(allow=frozenset({MAY}))


class Past:
    """What two people have said."""

    def __init__(self, count: int = 1) -> None:
        self.asked: list[tuple[str, str]] = []
        self.count = count

    async def search(self, person: str, words: str, /) -> Sequence[PastHit]:
        self.asked.append((person, words))
        hit = PastHit(conversation="conv_1", title="Budget", at="2026-11-01", text="100\na month")
        return [hit] * self.count if person == "alice" else []


async def result(past: Past, actor: EngineActor, arguments: str = '{"query":"goal"}') -> ToolResult:
    call = ToolCall("c1", "search_conversations", arguments, is_own=True)
    scene = Scene([call], ["So."], tools=[past_tool(past, MAY)])
    await scene.run(actor=actor)
    (found,) = [event for event in scene.events if isinstance(event, ToolResult)]
    return found


async def test_the_conversations_of_who_acts_are_searched_and_no_others() -> None:
    past = Past()
    hers = await result(past, EngineActor("alice", CEILING))
    assert hers.output == "2026-11-01 Budget (conv_1): 100 a month"
    assert (await result(past, EngineActor("bob", CEILING))).output == NO_HITS
    named = '{"query":"goal","person":"alice"}'
    assert (await result(past, EngineActor("bob", CEILING), named)).output == NO_HITS
    assert past.asked == [("alice", "goal"), ("bob", "goal"), ("bob", "goal")]


async def test_a_machine_and_who_may_not_search_nothing() -> None:
    past = Past()
    assert (await result(past, EngineActor("service:ci", CEILING))).output == NO_PERSON
    assert (await result(past, EngineActor("alice", Ceiling(allow=frozenset())))).status == "denied"
    assert (await result(past, EngineActor("alice", CEILING), '{"query":" "}')).status == "error"
    assert past.asked == []


async def test_what_is_shown_has_a_bound() -> None:
    shown = await result(Past(100), EngineActor("alice", CEILING))
    assert len(shown.output.splitlines()) == SHOWN_CONVERSATIONS
