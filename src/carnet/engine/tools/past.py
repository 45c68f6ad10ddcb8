"""`search_conversations`: how a model finds what was said before, in other conversations.

Law 1. Whose conversations are looked through does not come from the model: it is the person for
       whom the turn runs, and no argument names another. A machine has none.
Law 2. It needs a permission of its own, `tool:search_conversations`, so that a person who has not
       given it to a token is not searched with that one.
Law 3. What is found is bounded, and is data from outside for the model, as the result of any tool.
"""

from typing import Final

from carnet.core.memory.text import MOST_LINE, MOST_QUESTION
from carnet.core.messages.parameters import Tool
from carnet.ports.engine.tools import LoopTool, ToolFailed, ToolUse
from carnet.ports.memory.past import PastHit

NAME: Final = "search_conversations"
SHOWN_CONVERSATIONS: Final = 20  # that are shown of one search
NO_HITS: Final = "No conversation holds all of these words."

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


async def _search(use: ToolUse, /) -> object:
    query = use.arguments.get("query")
    if not isinstance(query, str) or not query.strip() or len(query) > MOST_QUESTION:
        raise ToolFailed(f"'query' is a text of 1 to {MOST_QUESTION} characters.")
    if use.past is None:
        raise AssertionError("what was said before is searched where nothing was")
    found = await use.past.search(query)
    return "\n".join([_line(hit) for hit in found[:SHOWN_CONVERSATIONS]]) or NO_HITS


PAST_TOOL: Final = LoopTool(definition=DEFINITION, use=_search, needs_past=True)


def _line(hit: PastHit) -> str:
    words = f"{hit.at} {hit.title} ({hit.conversation}): {hit.text}".replace("\n", " ")
    return words[: 2 * MOST_LINE]
