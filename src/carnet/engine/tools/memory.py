"""The tools by which a model reads and writes the memory of the person it works for (R46).

Law 1. Whose memory it is does not come from the model: it is that of the turn, and no argument
       names a person or an agent.
Law 2. What a path is says `core.memory.path`; what is none is told to the model as that.
Law 3. Before somebody approves a write, she is shown what would change.
Law 4. What these tools give is bounded; a long file is read in parts.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from carnet.core.memory.path import parse_folder, parse_path
from carnet.core.memory.text import MOST_QUESTION, change_of
from carnet.core.messages.parameters import Tool
from carnet.errors import CarnetError
from carnet.ports.engine.tools import Approval, LoopTool, ToolFailed, ToolUse
from carnet.ports.memory.memory import MemoryFile, TurnMemory

READS: Final = "memory:read"
WRITES: Final = "memory:write"
MOST_READ: Final = 30_000  # characters of one answer of read_file
LARGE_TEXT: Final = 16_384  # characters that are compared beside the event loop

NO_FILE: Final = "There is no file {path}. list_files shows which there are."
NO_FILES: Final = "There are no files."
NOTHING_FOUND: Final = "No line holds all of these words."
MORE: Final = "\n[cut here: read on with offset {offset}]"

_PATH: Final = {"type": "string", "description": "The path of a file, such as /AGENT.md."}


async def read_file(use: ToolUse, /) -> object:
    """What a file says, from an offset on."""
    path, offset = _path(use), use.arguments.get("offset", 0)
    if type(offset) is not int or offset < 0:
        raise ToolFailed("'offset' is a whole number, 0 or more.")
    text = await _memory(use).read(path)
    if text is None:
        raise ToolFailed(NO_FILE.format(path=f"/{path}"))
    part = text[offset : offset + MOST_READ]
    end = offset + len(part)
    return part + MORE.format(offset=end) if end < len(text) else part


async def list_files(use: ToolUse, /) -> object:
    """The files of a folder and below it."""
    given = use.arguments.get("path", "")
    if not isinstance(given, str):
        raise ToolFailed("'path' is a text.")
    folder = _read(lambda: parse_folder(given))
    files = await _memory(use).list(folder)
    return "\n".join([_line(file) for file in files]) or NO_FILES


async def search_files(use: ToolUse, /) -> object:
    """The lines of all files that hold some words."""
    query = use.arguments.get("query")
    if not isinstance(query, str) or not query.strip() or len(query) > MOST_QUESTION:
        raise ToolFailed(f"'query' is a text of 1 to {MOST_QUESTION} characters.")
    found = await _memory(use).search(query)
    return "\n".join([f"/{hit.path}:{hit.line}: {hit.text}" for hit in found]) or NOTHING_FOUND


async def write_file(use: ToolUse, /) -> object:
    """Write a file, new or in the place of what it says."""
    path, content = _path(use), _content(use)
    try:
        file = await _memory(use).write(path, content)
    except CarnetError as error:
        if error.status >= _OURS:
            raise
        raise ToolFailed(f"{error.safe_text} {error.next_step}") from None
    return f"Written: /{file.path}, version {file.version}, {file.size} bytes."


async def preview_write(use: ToolUse, /) -> object:
    """What a write would change."""
    path, content = _path(use), _content(use)
    before = await _memory(use).read(path)
    if len(content) + len(before or "") <= LARGE_TEXT:
        return change_of(before, content)
    return await asyncio.to_thread(change_of, before, content)


_OURS: Final = 500


def _memory(use: ToolUse) -> TurnMemory:
    if use.memory is None:
        raise AssertionError("a tool of memory is used where there is none")
    return use.memory


def _path(use: ToolUse) -> str:
    given = use.arguments.get("path")
    if not isinstance(given, str):
        raise ToolFailed("'path' is a text, such as /AGENT.md.")
    return _read(lambda: parse_path(given))


def _content(use: ToolUse) -> str:
    content = use.arguments.get("content")
    if not isinstance(content, str):
        raise ToolFailed("'content' is the whole text of the file.")
    try:
        content.encode()
    except UnicodeEncodeError:
        raise ToolFailed("'content' holds half of a character.") from None
    return content


def _read(parse: Any) -> str:
    try:
        return str(parse())
    except CarnetError as error:
        raise ToolFailed(error.safe_text) from None


def _line(file: MemoryFile) -> str:
    return f"/{file.path} ({file.size} bytes)"


def _tool(name: str, description: str, use: Any, **properties: Any) -> LoopTool:
    needed = [each for each, schema in properties.items() if not schema.pop("optional", False)]
    schema = {
        "type": "object",
        "properties": properties,
        "required": needed,
        "additionalProperties": False,
    }
    return LoopTool(
        definition=Tool(name, description, schema), use=use, permission=READS, needs_memory=True
    )


_TOOLS: Final[Mapping[str, LoopTool]] = {
    tool.definition.name: tool
    for tool in (
        _tool(
            "read_file",
            "Reads a file of your memory about the person you work for. /AGENT.md comes first.",
            read_file,
            path=dict(_PATH),
            offset={
                "type": "integer",
                "minimum": 0,
                "description": "The character to begin at, for a long file.",
                "optional": True,
            },
        ),
        _tool(
            "list_files",
            "Lists the files of your memory, all or those of a folder.",
            list_files,
            path={
                "type": "string",
                "description": "A folder, such as /finances; all without it.",
                "optional": True,
            },
        ),
        _tool(
            "search_files",
            "Finds the lines of your memory that hold all of some words.",
            search_files,
            query={"type": "string", "description": "The words."},
        ),
        replace(
            _tool(
                "write_file",
                "Writes a file of your memory: its whole text, in the place of what it says. "
                "The person may be asked first; what it said is kept.",
                write_file,
                path=dict(_PATH),
                content={"type": "string", "description": "The whole text of the file."},
            ),
            permission=WRITES,
            writes=True,
            label="Write {path}",
            preview=preview_write,
        ),
    )
}


def memory_tool(name: str, approval: Approval) -> LoopTool:
    """One of them by its name; `approval` says when somebody must agree to a use."""
    return replace(_TOOLS[name], approval=approval)
