"""A server made with the official package: on its standard streams, or over HTTP.

`python mcp_server.py` serves the first; whoever imports it serves the second.
"""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

COMMAND = (sys.executable, str(Path(__file__)))
TOOLS = ("read_page", "delete.page", "fail", "leave", "wait", "long", "many")


def make() -> MCPServer:
    """The server with its tools."""
    server = MCPServer("pages")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def read_page(name: str) -> str:
        """Reads a page."""
        return f"The page {name} says 100. {os.environ.get('MODEL_KEY', '')}"

    @server.tool(name="delete.page")
    def delete(name: str) -> str:
        """Deletes a page."""
        return f"{name} is gone"

    @server.tool()
    def fail() -> str:
        """Fails."""
        raise ToolError("no such page")

    @server.tool()
    def leave() -> str:
        """Ends the process of the server, in the middle of a call."""
        os._exit(3)

    @server.tool()
    async def wait() -> str:
        """Never ends."""
        await asyncio.Event().wait()
        return "never"

    @server.tool()
    def long() -> str:
        """Says much."""
        return 100_000 * "x"

    @server.tool()
    def many() -> list[int]:
        """Says more than is read."""
        return 20_000 * [1]

    return server


def _listening(app: Any) -> tuple[uvicorn.Server, socket.socket, str]:
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1))
    at = socket.create_server(("127.0.0.1", 0))
    return server, at, f"http://127.0.0.1:{at.getsockname()[1]}/mcp"


def serving(*, json_response: bool = False) -> AbstractAsyncContextManager[str]:
    """Its URL, served by the loop that runs."""
    return serving_app(make().streamable_http_app(json_response=json_response))


@asynccontextmanager
async def serving_app(app: Any) -> AsyncIterator[str]:
    """The URL of any server, served by the loop that runs."""
    server, at, url = _listening(app)
    task = asyncio.get_running_loop().create_task(server.serve([at]))
    try:
        yield url
    finally:
        server.should_exit = True
        await task


@contextmanager
def served() -> Iterator[str]:
    """Its URL, served by a thread."""
    server, at, url = _listening(make().streamable_http_app())
    thread = Thread(target=lambda: asyncio.run(server.serve([at])), daemon=True)
    thread.start()
    try:
        yield url
    finally:
        server.should_exit = True
        thread.join()


if __name__ == "__main__":
    make().run("stdio")
