"""A server of tools: when it is started, what its tools are called, and what it is believed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from carnet.core.people.identity import Ceiling
from carnet.errors import ToolUnusable
from carnet.ports.engine.tools import ToolFailed
from carnet.runtime.tools import mcp
from carnet.runtime.tools.mcp import (
    LOST,
    MOST_PARAMETERS,
    MOST_TOOLS,
    McpServer,
    ServerLost,
    ServerTool,
)
from carnet.testing.wait import until_so
from carnet.wire.dialects.engine_chat.actor import EngineActor
from tests.engine.scene import tool
from tests.runtime.peer import LONG
from tests.runtime.tools.test_function import used


class Pages:
    """A server without a protocol."""

    def __init__(self, *names: str) -> None:
        self.names = names or ("read", "write")
        self.starts = 0
        self.listed = 0
        self.waiting = 0
        self.is_broken = False
        self.is_lost = False
        self.is_held = False
        self.schema: dict[str, Any] = {"type": "object"}
        self.gone = asyncio.Event()

    @asynccontextmanager
    async def connect(self) -> AsyncIterator["Pages"]:
        self.starts += 1
        if self.is_broken:
            raise OSError("no such program")
        gone = self.gone = asyncio.Event()
        try:
            yield self
        finally:
            gone.set()

    async def tools(self) -> list[ServerTool]:
        self.listed += 1
        if self.is_held:
            await asyncio.Event().wait()
        if self.is_lost:
            raise ServerLost
        return [
            ServerTool(
                name=name,
                description=f"Does {name}.",
                parameters=self.schema,
                is_read_only=name == "read",
            )
            for name in self.names
        ]

    async def call(self, name: str, arguments: dict[str, Any], correlation: str) -> str:
        if self.is_lost:
            self.gone.set()
            raise ServerLost
        if arguments.get("waits"):
            self.waiting += 1
            await asyncio.Event().wait()
        return f"{name} {arguments} for {correlation}"

    @property
    def is_over(self) -> bool:
        return self.gone.is_set()

    async def ended(self) -> None:
        await self.gone.wait()


def made(pages: Pages, **more: Any) -> McpServer:
    return McpServer("pages", pages.connect, tool("rules", approval="write"), **more)


async def test_it_is_started_by_its_first_use_and_once() -> None:
    pages = Pages()
    server = made(pages)
    assert pages.starts == 0
    first, second = await asyncio.gather(server.tools(), server.tools())
    assert len(first) == len(second) == 2
    assert await first[0].use(used(a=1)) == "read {'a': 1} for req_1"
    assert pages.starts == 1
    await server.close()
    assert pages.gone.is_set()


async def test_names_are_those_that_every_model_takes_and_the_first_of_two_counts() -> None:
    server = made(Pages("a.b", "a b", "\u00e4", 90 * "x"))
    names = [each.definition.name for each in await server.tools()]
    assert names == ["pages_a_b", "pages__", "pages_" + 58 * "x"]
    await server.close()


async def test_there_are_those_that_the_operator_wants_and_not_too_many() -> None:
    some = made(Pages("read", "write"), only=("write",))
    assert [each.definition.name for each in await some.tools()] == ["pages_write"]
    many = made(Pages(*[f"t{n}" for n in range(2 * MOST_TOOLS)]))
    assert len(await many.tools()) == MOST_TOOLS
    for server in (some, many):
        await server.close()


@pytest.mark.parametrize(("trusts", "waits"), [(False, [True, True]), (True, [False, True])])
async def test_what_it_says_of_itself_is_believed_where_the_operator_says_so(
    trusts: bool,  # noqa: FBT001
    waits: list[bool],
) -> None:
    server = made(Pages(), trusts=trusts)
    assert [each.needs_approval for each in await server.tools()] == waits
    await server.close()


async def test_a_tool_may_need_an_approval_by_its_name() -> None:
    server = made(Pages(), trusts=True, ask_before={"pages_read"})
    assert [each.needs_approval for each in await server.tools()] == [True, True]
    await server.close()


async def test_one_that_has_ended_is_started_by_the_next_use() -> None:
    pages = Pages()
    server = made(pages)
    read, _ = await server.tools()
    pages.is_lost = True
    with pytest.raises(ToolFailed, match=LOST):
        await read.use(used())
    pages.is_lost = False
    assert await read.use(used()) == "read {} for req_1"
    assert pages.starts == 2
    await server.close()


async def test_one_that_cannot_be_started_is_left_alone_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pages = Pages()
    pages.is_broken = True
    server = made(pages)
    for _ in range(3):
        with pytest.raises(ToolUnusable, match="pages"):
            await server.tools()
    assert pages.starts == 1
    monkeypatch.setattr(mcp, "PAUSE_SECONDS", 0.0)
    server = made(pages)
    with pytest.raises(ToolUnusable):
        await server.tools()
    pages.is_broken = False
    assert len(await server.tools()) == 2
    assert pages.starts == 3
    await server.close()


async def test_its_tools_are_asked_for_again_and_the_former_stay_where_it_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pages = Pages()
    server = made(pages)
    before = await server.tools()
    assert await server.tools() is before
    monkeypatch.setattr(mcp, "FRESH_SECONDS", 0.0)
    pages.names = ("other",)
    assert [each.definition.name for each in await server.tools()] == ["pages_other"]
    pages.is_lost = True
    assert [each.definition.name for each in await server.tools()] == ["pages_other"]
    await server.close()


async def test_one_that_hangs_holds_nobody_up_and_is_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pages = Pages()
    server = made(pages)
    before = await server.tools()
    monkeypatch.setattr(mcp, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(mcp, "LIST_SECONDS", 0.01)
    pages.is_held = True
    for _ in range(3):
        assert await server.tools() is before
    assert pages.listed == 2  # the others do not ask beside the one that waits
    await server.close()


async def test_one_that_tells_no_tools_in_time_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp, "START_SECONDS", 0.5)
    pages = Pages()
    server = McpServer("pages", pages.connect, tool("rules", seconds=0.01))
    pages.is_held = True
    for _ in range(2):
        with pytest.raises(ToolUnusable, match="does not answer"):
            await server.tools()
    assert pages.gone.is_set()
    assert pages.starts == pages.listed == 1  # and it is left alone for a while
    pages.is_held = False
    monkeypatch.setattr(mcp, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(mcp, "START_SECONDS", 60.0)
    assert len(await server.tools()) == 2
    assert pages.starts == 2
    await server.close()


@pytest.mark.parametrize(
    ("more", "count"),
    [({}, 2), ({"title": "x" * MOST_PARAMETERS}, 0), ({"maximum": 10**5000}, 0)],
)
async def test_a_tool_whose_schema_cannot_be_sent_is_left_out(
    more: dict[str, Any], count: int
) -> None:
    pages = Pages()
    pages.schema = {"type": "object", **more}
    server = made(pages)
    assert len(await server.tools()) == count
    await server.close()


async def test_one_caller_does_not_have_all_calls_of_a_server() -> None:
    pages = Pages()
    server = made(pages)
    read, _ = await server.tools()
    held = [asyncio.ensure_future(read.use(used(waits=True))) for _ in range(2 * mcp.MOST_CALLS)]
    await until_so(lambda: pages.waiting == mcp.MOST_OF_ONE)
    bob = replace(used(), actor=EngineActor("bob", Ceiling()))
    async with asyncio.timeout(LONG):
        assert await read.use(bob) == "read {} for req_1"
    for each in held:
        each.cancel()
    await asyncio.gather(*held, return_exceptions=True)
    await server.close()
