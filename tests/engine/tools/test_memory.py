"""The tools of memory: what a model is told, and what whoever approves a write is shown."""

import builtins
import json
from typing import Any

import pytest

from carnet.core.memory.text import LineHit, find_lines
from carnet.core.messages.events import Done, ToolCall, ToolResult, Waiting
from carnet.core.people.identity import Ceiling
from carnet.engine.tools.memory import MOST_READ, memory_tool
from carnet.engine.tools.turn import NO_MEMORY
from carnet.errors import MemoryFull, StorageUnavailable
from carnet.ports.memory.memory import MemoryFile
from carnet.wire.dialects.engine_chat.actor import EngineActor
from tests.engine.scene import YES, Scene

NAMES = ("read_file", "list_files", "search_files", "write_file")
ALICE = EngineActor("alice", Ceiling(allow=frozenset({"memory:read", "memory:write"})))
READER = EngineActor("bob", Ceiling(allow=frozenset({"memory:read"})))


class Files:
    """A memory, as a turn has it."""

    def __init__(self, **files: str) -> None:
        self.files = {"AGENT.md": "# Be brief", "finances/AGENT.md": "Budget goal: 100"} | files
        self.fails: Exception | None = None

    async def read(self, path: str, /) -> str | None:
        return self.files.get(path)

    async def list(self, folder: str, /) -> builtins.list[MemoryFile]:
        return [
            MemoryFile(path=path, version=1, size=len(text), at=None)
            for path, text in self.files.items()
            if path.startswith(folder)
        ]

    async def search(self, question: str, /) -> builtins.list[LineHit]:
        return find_lines(self.files.items(), question)

    async def write(self, path: str, text: str, /) -> MemoryFile:
        if self.fails is not None:
            raise self.fails
        self.files[path] = text
        return MemoryFile(path=path, version=2, size=len(text), at=1)


def used(name: str, **arguments: Any) -> Scene:
    call = ToolCall("c1", name, json.dumps(arguments), is_own=True)
    tools = [memory_tool(each, "never") for each in NAMES]
    return Scene([call], ["So."], tools=tools)


async def result(name: str, memory: Files | None = None, **arguments: Any) -> ToolResult:
    scene = used(name, **arguments)
    assert await scene.run(actor=ALICE, memory=memory or Files()) == Done("stop")
    (found,) = [event for event in scene.events if isinstance(event, ToolResult)]
    return found


async def test_a_file_is_read_with_a_slash_first_or_without() -> None:
    for path in ("/AGENT.md", "AGENT.md"):
        assert await result("read_file", path=path) == ToolResult("c1", "ok", "# Be brief")
    missing = await result("read_file", path="/nothing.md")
    assert (missing.status, missing.output) == (
        "error",
        "There is no file /nothing.md. list_files shows which there are.",
    )


async def test_a_long_file_is_read_in_parts() -> None:
    memory = Files(**{"long.md": "x" * MOST_READ + "y"})
    first = await result("read_file", memory, path="long.md")
    assert first.output.endswith(f"[cut here: read on with offset {MOST_READ}]")
    assert (await result("read_file", memory, path="long.md", offset=MOST_READ)).output == "y"


async def test_files_are_listed_and_searched() -> None:
    listed = "/AGENT.md (10 bytes)\n/finances/AGENT.md (16 bytes)"
    assert (await result("list_files")).output == listed
    assert (await result("list_files", path="/finances/")).output == listed.partition("\n")[2]
    assert (await result("list_files", path="/other")).output == "There are no files."
    found = await result("search_files", query="GOAL budget")
    assert found.output == "/finances/AGENT.md:1: Budget goal: 100"
    assert (await result("search_files", query="nothing")).status == "ok"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read_file", {"path": "../AGENT.md"}),
        ("read_file", {"path": "a\0"}),
        ("read_file", {"path": 1}),
        ("read_file", {}),
        ("read_file", {"path": "AGENT.md", "offset": -1}),
        ("list_files", {"path": "/../"}),
        ("list_files", {"path": 1}),
        ("search_files", {"query": " "}),
        ("search_files", {"query": "x" * 251}),
        ("write_file", {"path": "/etc/../passwd", "content": "x"}),
        ("write_file", {"path": "a.md", "content": {}}),
        ("write_file", {"path": "a.md", "content": "\ud800"}),
    ],
    ids=str,
)
async def test_what_is_no_path_or_no_text_is_an_error_for_the_model(
    name: str, arguments: dict[str, Any]
) -> None:
    memory = Files()
    before = dict(memory.files)
    assert (await result(name, memory, **arguments)).status == "error"
    assert memory.files == before


async def test_a_write_that_is_refused_is_told_to_the_model_and_a_fault_ends_the_turn() -> None:
    memory = Files()
    memory.fails = MemoryFull(limit=5, what="files")
    shown = await result("write_file", memory, path="b.md", content="x")
    assert shown.status == "error"
    assert shown.output.startswith("This memory holds no more than 5 files. Shorten or delete")
    memory.fails = StorageUnavailable("down")
    scene = used("write_file", path="b.md", content="x")
    assert isinstance(await scene.failed(actor=ALICE, memory=memory), StorageUnavailable)


async def test_who_approves_a_write_is_shown_what_would_change_and_may_change_it() -> None:
    call = ToolCall("c1", "write_file", '{"path":"/AGENT.md","content":"# Be long"}', is_own=True)
    tools = [memory_tool("write_file", "write")]
    memory, scene = Files(), Scene([call], ["So."], tools=tools)
    end = await scene.run(actor=ALICE, memory=memory)
    assert isinstance(end, Waiting)
    (asked,) = end.interrupts
    assert asked.message == "Write /AGENT.md"
    assert asked.more == {
        "tool": "write_file",
        "arguments": {"path": "/AGENT.md", "content": "# Be long"},
        "preview": "from line 1: 10 bytes become 9\n-# Be brief\n+# Be long",
    }
    assert memory.files["AGENT.md"] == "# Be brief"
    edited = {"path": "/AGENT.md", "content": "# Be kind"}
    again = Scene([call], ["So."], tools=tools)
    resolved = {"c1": type(YES)(outcome="accepted", value=edited)}
    assert await again.run(actor=ALICE, memory=memory, resolved=resolved) == Done("stop")
    assert memory.files["AGENT.md"] == "# Be kind"


async def test_a_machine_has_no_memory_and_who_may_not_write_does_not() -> None:
    scene = used("read_file", path="AGENT.md")
    await scene.run(actor=ALICE)
    assert ToolResult("c1", "denied", NO_MEMORY) in scene.events
    assert [tool.name for tool in scene.model.asked[0].tools] == []
    memory, scene = Files(), used("write_file", path="AGENT.md", content="x")
    await scene.run(actor=READER, memory=memory)
    assert [tool.name for tool in scene.model.asked[0].tools] == list(NAMES[:3])
    assert memory.files["AGENT.md"] == "# Be brief"
