"""Servers made with the official package, in a process and over HTTP, as a loop uses them."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import mcp_types as types
import pytest
from mcp import Client, MCPError

from carnet.core.messages.events import ToolResult
from carnet.core.people.identity import Secret
from carnet.engine.toolbox import MOST_OUTPUT, TOO_SLOW, Toolbox
from carnet.errors import ToolUnusable
from carnet.ports.engine.tools import LoopTool, ToolFailed
from carnet.runtime.egress.client import EgressClient
from carnet.runtime.tools.mcp import LOST, Connect, McpServer, ServerLost
from carnet.runtime.tools.mcp_client import NO_ANSWER, McpSession, connect_process, connect_url
from carnet.runtime.tools.process import Launch, environment_of
from tests.engine.scene import Scene, call, tool
from tests.runtime.tools import mcp_server
from tests.runtime.tools.test_function import used


@asynccontextmanager
async def asked(connect: Connect) -> AsyncIterator[McpServer]:
    server = McpServer("pages", connect, tool("rules"), trusts=True)
    try:
        yield server
    finally:
        await server.close()


async def named(server: McpServer) -> dict[str, LoopTool]:
    return {each.definition.name: each for each in await server.tools()}


def to(http: EgressClient, url: str) -> AbstractAsyncContextManager[McpSession]:
    return connect_url(http, url, Secret("mcp-token-1"), 60.0)


def in_a_process() -> Launch:
    environment = environment_of(os.environ, ())
    return Launch(program=mcp_server.COMMAND, folder=Path.cwd(), environment=environment)


@pytest.fixture(params=["process", "http", "http-json"])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[McpServer]:
    if request.param == "process":
        async with asked(lambda: connect_process(in_a_process())) as made:
            yield made
        return
    http = EgressClient()
    serving = mcp_server.serving(json_response=request.param == "http-json")
    async with serving as url, asked(partial(to, http, url)) as made:
        yield made
    await http.close()


async def test_a_loop_uses_its_tools(server: McpServer) -> None:
    tools = await named(server)
    assert set(tools) == {f"pages_{name.replace('.', '_')}" for name in mcp_server.TOOLS}
    read = tools["pages_read_page"]
    assert (read.permission, read.writes) == ("tool:pages_read_page", False)
    assert tools["pages_delete_page"].writes
    assert read.definition.description == "Reads a page."
    assert read.definition.parameters["required"] == ["name"]
    answer = [
        call("a", "pages_read_page", '{"name":"finances"}'),
        call("b", "pages_delete_page", '{"name":"old"}', index=1),
        call("c", "pages_fail", index=2),
        call("d", "pages_long", index=3),
    ]
    scene = Scene(answer, ["So."], tools=list((await Toolbox([], [server]).now()).tools))
    await scene.run()
    results = [event for event in scene.events if isinstance(event, ToolResult)]
    assert results[0].output.strip() == "The page finances says 100."
    assert results[1] == ToolResult("b", "ok", "old is gone")
    assert results[2].status == "error"
    assert "no such page" in results[2].output
    assert len(results[3].output) == MOST_OUTPUT


async def test_one_call_that_takes_too_long_is_cancelled_and_costs_no_other(
    server: McpServer,
) -> None:
    tools = await named(server)
    slow = LoopTool(
        definition=tools["pages_wait"].definition, use=tools["pages_wait"].use, seconds=0.2
    )
    answer = [call("a", "pages_wait"), call("b", "pages_read_page", '{"name":"x"}', index=1)]
    scene = Scene(answer, ["So."], tools=[slow, tools["pages_read_page"]])
    await scene.run()
    results = [event.output for event in scene.events if isinstance(event, ToolResult)]
    assert results[0] == TOO_SLOW
    assert "The page x says 100." in results[1]
    assert "x is gone" in str(await tools["pages_delete_page"].use(used(name="x")))


async def test_an_answer_of_too_many_values_is_not_read_and_costs_no_other(
    server: McpServer,
) -> None:
    tools = await named(server)
    with pytest.raises((TimeoutError, ToolFailed)):
        async with asyncio.timeout(5):
            await tools["pages_many"].use(used())
    assert "The page x says 100." in str(await tools["pages_read_page"].use(used(name="x")))


async def test_a_server_that_ends_is_started_again_and_its_last_call_is_not_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MODEL_KEY", "sk-1")
    async with asked(lambda: connect_process(in_a_process())) as server:
        tools = await named(server)
        with pytest.raises(ToolFailed, match=LOST):
            await tools["pages_leave"].use(used())
        # It is there again, and was given none of our secrets.
        found = str(await tools["pages_read_page"].use(used(name="x")))
        assert found.strip() == "The page x says 100."


@pytest.mark.parametrize(
    "program", [("/nowhere/at/all",), ("/bin/sh", "-c", "exit 3"), ("/bin/sh", "-c", "cat >&2")]
)
async def test_a_program_that_is_no_server_cannot_be_used(
    program: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carnet.runtime.tools.mcp.START_SECONDS", 1.0)
    launch = Launch(program=program, folder=Path.cwd(), environment={"PATH": "/bin:/usr/bin"})
    async with asked(lambda: connect_process(launch)) as server:
        with pytest.raises(ToolUnusable):
            await server.tools()


async def test_one_that_writes_a_line_without_an_end_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("carnet.runtime.tools.mcp_client.MOST_MESSAGE", 65_536)
    monkeypatch.setattr("carnet.runtime.tools.messages.MOST_PASSED_OVER", 10 * 65_536)
    launch = Launch(program=("/bin/sh", "-c", "cat /dev/zero"), folder=Path.cwd(), environment={})
    async with asked(lambda: connect_process(launch)) as server:
        with pytest.raises(ToolUnusable):
            await server.tools()


async def test_a_server_that_cannot_be_reached_cannot_be_used() -> None:
    http = EgressClient()
    try:
        async with mcp_server.serving() as url, asked(partial(to, http, url)) as server:
            read = (await named(server))["pages_read_page"]
            assert "says 100" in str(await read.use(used(name="x")))
        async with asked(partial(to, http, url)) as server:  # nobody is there any more
            with pytest.raises(ToolUnusable):
                await server.tools()
    finally:
        await http.close()


class Failing:
    """What the package gives us, where every request ends in one error."""

    def __init__(self, code: int) -> None:
        self.session = self
        self._code = code

    async def send_request(self, request: object, kind: object) -> object:
        del request, kind
        raise MCPError(self._code, "words of the server")


async def test_what_an_error_says_of_its_server() -> None:
    for code, kind, words in (
        (types.CONNECTION_CLOSED, ServerLost, "words of the server"),
        (types.INVALID_REQUEST, ToolFailed, "words of the server"),
        (types.PARSE_ERROR, ToolFailed, NO_ANSWER),
    ):
        session = McpSession(cast(Client, Failing(code)), asyncio.Event())
        with pytest.raises(kind, match=words):
            await session.call("read", {}, "req_1")
        assert not session.is_over


class Answering:
    """A server over HTTP that answers each request as it is told, once there is a session."""

    def __init__(self) -> None:
        self.status = 200
        self.code = types.INVALID_REQUEST
        self.sessions = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        asked = json.loads((await receive())["body"])  # a small one, which comes at once
        begins = asked.get("method") == "initialize"
        self.sessions += begins
        page: dict[str, Any] = {"jsonrpc": "2.0", "id": asked.get("id")}
        if begins:
            capable = {"capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
            page["result"] = {"protocolVersion": "2025-06-18", **capable}
        else:
            page["error"] = {"code": self.code, "message": "words of the server"}
        head = [(b"content-type", b"application/json")]
        head += [(b"mcp-session-id", b"s%d" % self.sessions)] if begins else []
        status = 202 if "id" not in asked else 200 if begins else self.status
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": json.dumps(page).encode()})


async def test_one_request_that_is_refused_ends_no_session_that_others_use() -> None:
    server, http = Answering(), EgressClient()
    try:
        async with mcp_server.serving_app(server) as url, to(http, url) as session:
            for status in (200, 400):
                server.status = status
                with pytest.raises(ToolFailed, match="words of the server"):
                    await session.call("read", {}, "req_1")
                assert not session.is_over
            server.status = 404  # it has forgotten the session: another must be begun
            with pytest.raises(ServerLost):
                await session.call("read", {}, "req_1")
            assert session.is_over
    finally:
        await http.close()


async def test_nothing_is_sent_past_our_own_client() -> None:
    """A public address over plain http is refused by our client before anybody is asked."""
    http = EgressClient()
    try:
        async with asked(partial(to, http, "http://192.0.2.1/mcp")) as server:
            with pytest.raises(ToolUnusable):
                await server.tools()
    finally:
        await http.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}
