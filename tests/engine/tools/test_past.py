"""Searching what was said before: whose it is, and what a model is shown of it."""

from collections.abc import Sequence

from msgspec.structs import replace

from carnet.core.messages.events import ToolCall, ToolResult
from carnet.core.people.identity import Ceiling
from carnet.engine.tools.past import NO_HITS, PAST_TOOL, SHOWN_CONVERSATIONS
from carnet.engine.tools.turn import NO_PAST
from carnet.ports.memory.past import PastHit
from carnet.wire.dialects.engine_chat.actor import EngineActor
from tests.engine.scene import Scene

MAY = "tool:search_conversations"
ALICE = EngineActor("alice", Ceiling(allow=frozenset({MAY})))


class Past:
    """What a person has said."""

    def __init__(self, count: int = 1) -> None:
        self.asked: list[str] = []
        self.count = count

    async def search(self, question: str, /) -> Sequence[PastHit]:
        self.asked.append(question)
        hit = PastHit(conversation="conv_1", title="Budget", at="2026-11-01", text="100\na month")
        return [hit] * self.count


async def result(
    past: Past | None, actor: EngineActor = ALICE, arguments: str = '{"query":"goal"}'
) -> ToolResult:
    call = ToolCall("c1", "search_conversations", arguments, is_own=True)
    scene = Scene([call], ["So."], tools=[replace(PAST_TOOL, permission=MAY)])
    await scene.run(actor=actor, past=past)
    (found,) = [event for event in scene.events if isinstance(event, ToolResult)]
    return found


async def test_the_conversations_of_who_acts_are_searched_and_no_others() -> None:
    past = Past()
    assert (await result(past)).output == "2026-11-01 Budget (conv_1): 100 a month"
    assert (await result(Past(0), arguments='{"query":"goal","person":"bob"}')).output == NO_HITS
    assert past.asked == ["goal"]


async def test_who_has_none_or_may_not_searches_nothing() -> None:
    past = Past()
    assert (await result(None)).output == NO_PAST
    assert (await result(past, EngineActor("alice", Ceiling(allow=frozenset())))).status == "denied"
    assert (await result(past, arguments='{"query":" "}')).status == "error"
    assert past.asked == []


async def test_what_is_shown_has_a_bound() -> None:
    shown = await result(Past(100))
    assert len(shown.output.splitlines()) == SHOWN_CONVERSATIONS
