"""`search_conversations`: how a model finds what was said before, in other conversations.

No configuration offers it yet: it needs a store of conversations behind `PastConversations`.

Law 1. Whose conversations are looked through does not come from the model: it is the person for
       whom the turn runs, by the name that Auth gave her. A machine has none.
Law 2. It needs a permission of its own, so that a person who has not given it to a token is not
       searched with that one.
Law 3. What is found is bounded, and is data from outside for the model, as the result of any tool.
"""

from typing import Final

from carnet.core.memory.text import MOST_LINE, MOST_QUESTION
from carnet.core.messages.parameters import Tool
from carnet.ports.engine.tools import LoopTool, ToolFailed, ToolUse
from carnet.ports.memory.past import PastConversations, PastHit

NAME: Final = "search_conversations"
SHOWN_CONVERSATIONS: Final = 20  # that are shown of one search
NO_HITS: Final = "No conversation holds all of these words."
NO_PERSON: Final = "Conversations are those of people, and this call is made for none."

_OF_MACHINE: Final = ":"  # what the name of a machine holds, and that of no person

DEFINITION: Final = Tool(
    NAME,
    "Finds earlier conversations with the person you work for, by words that were said in them.",
    {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "The words."}},
        "required": ["query"],
        "additionalProperties": False,
    },
)


class PastSearch:
    """Uses the tool."""

    def __init__(self, past: PastConversations) -> None:
        """Look for it here."""
        self._past = past

    async def __call__(self, use: ToolUse, /) -> object:
        """Find what fits a question."""
        query = use.arguments.get("query")
        if not isinstance(query, str) or not query.strip() or len(query) > MOST_QUESTION:
            raise ToolFailed(f"'query' is a text of 1 to {MOST_QUESTION} characters.")
        if _OF_MACHINE in use.actor.id:
            raise ToolFailed(NO_PERSON)
        found = await self._past.search(use.actor.id, query)
        return "\n".join([_line(hit) for hit in found[:SHOWN_CONVERSATIONS]]) or NO_HITS


def past_tool(past: PastConversations, permission: str) -> LoopTool:
    """The tool over a store of conversations, for who holds a permission."""
    return LoopTool(definition=DEFINITION, use=PastSearch(past), permission=permission)


def _line(hit: PastHit) -> str:
    words = f"{hit.at} {hit.title} ({hit.conversation}): {hit.text}".replace("\n", " ")
    return words[: 2 * MOST_LINE]
