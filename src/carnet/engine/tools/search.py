"""`find_tools`: how a model finds the tools that it is not always told of.

Law 1. What is found is what who acts may use, and no more: a search tells nothing of the rest.
Law 2. It depends on the question and the tools alone, so that a turn that runs again finds the
       same.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from carnet.core.messages.parameters import Tool
from carnet.ports.engine.tools import LoopTool

FIND_TOOLS: Final = "find_tools"
MOST_FOUND: Final = 10
MOST_WORDS: Final = 32  # of one question
NOTHING_FOUND: Final = "No tool was found. Try other words."

DEFINITION: Final = Tool(
    FIND_TOOLS,
    "Finds further tools by words of their names and descriptions. What it finds can be used then.",
    {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "What the tool should do."}},
        "required": ["query"],
    },
)

_WORD: Final = re.compile(r"[^\W_]+")
_IN_NAME: Final = 3  # what a word in a name counts, against one in a description


def matching(tools: Sequence[LoopTool], arguments: Mapping[str, Any]) -> list[LoopTool]:
    """Those that fit a question best, at most `MOST_FOUND`; the order of equals is kept."""
    query = arguments.get("query")
    words = _words(query)[:MOST_WORDS] if isinstance(query, str) else []
    scored = [(_score(tool, set(words)), tool) for tool in tools]
    fitting = [(score, tool) for score, tool in scored if score]
    fitting.sort(key=lambda each: -each[0])
    return [tool for _, tool in fitting[:MOST_FOUND]]


def words_of_found(tools: Sequence[LoopTool]) -> object:
    """What a model is told of what was found."""
    if not tools:
        return NOTHING_FOUND
    definitions = [tool.definition for tool in tools]
    return {"tools": [{"name": each.name, "description": each.description} for each in definitions]}


def _score(tool: LoopTool, words: set[str]) -> int:
    name, description = _words(tool.definition.name), _words(tool.definition.description)
    return _IN_NAME * len(words & set(name)) + len(words & set(description))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
