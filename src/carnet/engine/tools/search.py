"""`find_tools`: how a model finds the tools that it is not always told of.

Law 1. What is found is what who acts may use, and no more: a search tells nothing of the rest.
Law 2. It depends on the question and the tools alone, so that a turn that runs again finds the
       same.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from carnet.core.messages.parameters import Tool
from carnet.ports.engine.tools import LoopTool

FIND_TOOLS: Final = "find_tools"
MOST_FOUND: Final = 10
MOST_WORDS: Final = 32  # of one question
MOST_QUESTION: Final = 4_000  # characters of it
MOST_LOOKED: Final = 32  # questions of a conversation that are looked for again, the newest
MOST_REMEMBERED: Final = 1024  # texts of tools whose words are
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
    if not isinstance(query, str):
        return []
    words = frozenset(_words(query[:MOST_QUESTION])[:MOST_WORDS])
    scored = [(_score(tool, words), tool) for tool in tools]
    fitting = [(score, tool) for score, tool in scored if score]
    fitting.sort(key=lambda each: -each[0])
    return [tool for _, tool in fitting[:MOST_FOUND]]


def words_of_found(tools: Sequence[LoopTool]) -> object:
    """What a model is told of what was found."""
    if not tools:
        return NOTHING_FOUND
    definitions = [tool.definition for tool in tools]
    return {"tools": [{"name": each.name, "description": each.description} for each in definitions]}


def _score(tool: LoopTool, words: frozenset[str]) -> int:
    name, description = tool.definition.name, tool.definition.description
    return _IN_NAME * len(words & _words_of(name)) + len(words & _words_of(description))


@lru_cache(MOST_REMEMBERED)
def _words_of(text: str) -> frozenset[str]:
    """The words of a tool, which are the same for every question."""
    return frozenset(_words(text))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
