"""How MCP servers are spoken with: the one file that knows the `mcp` package.

It is an extra (`carnet[mcp]`), and imported where a server is configured: it takes its time.

Law 1. A server over HTTP is asked through our own HTTP client, which judges addresses, follows no
       redirect and bounds what comes; the package opens no connection of its own (ADR 14).
Law 2. A server in a process has pipes and nothing else, and a line of it has a greatest length. How
       many values a message has is bounded in both ways (`runtime.tools.messages`).
Law 3. One request that fails costs no other one on the same server.
Law 4. What a server asks of us (a model, a person, files) it is not given.
"""

import asyncio
import logging
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Final

import anyio
import httpx2
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from carnet.core.people.identity import Secret
from carnet.errors import CarnetError, EgressRefused, ToolUnusable
from carnet.ports.engine.tools import ToolFailed
from carnet.ports.world.http_client import Bounds, HttpAnswer, HttpClient, NotSent, Outbound
from carnet.runtime.tools.mcp import MOST_PAGES, MOST_TOOLS, ServerLost, ServerTool
from carnet.runtime.tools.messages import TooMuch, WholeLines, lines_of
from carnet.runtime.tools.process import Launch, leave, running
from carnet.version import __version__
from carnet.wire.grammar import json

logger = logging.getLogger("carnet.engine")
logging.getLogger("mcp").setLevel(logging.WARNING)  # it writes arguments to its log

MOST_MESSAGE: Final = 4 * 1024 * 1024  # bytes of one message of a server
MOST_ERROR_LINE: Final = 1_000  # characters of a line that a server writes beside its answers

CORRELATION: Final = "carnet/correlation_id"  # beside a call: the name of the request

NO_ANSWER: Final = "The server of this tool gave what is not an answer."

_INFO: Final = types.Implementation(name="carnet", version=__version__)
_NOT_SENT: Final = -32_098  # a code of ours: a request that never left
SESSION: Final = "mcp-session-id"
_SHOWN: Final = ("content-type", SESSION)  # header fields that the package reads
_EVENTS: Final = "text/event-stream"
_NOT_FOUND: Final = 404
_NOT_ALLOWED: Final = 405
_UNAVAILABLE: Final = 503

Incoming = MemoryObjectSendStream[SessionMessage | Exception]
Outgoing = MemoryObjectReceiveStream[SessionMessage]


# ------------------------------------------------------------------ sessions


class McpSession:
    """A server that answers."""

    def __init__(self, client: Client, gone: asyncio.Event) -> None:
        """`gone` is set when it has ended."""
        self._client = client
        self._gone = gone

    async def tools(self) -> list[ServerTool]:
        """What it has, page by page."""
        found: list[ServerTool] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            params = types.PaginatedRequestParams(cursor=cursor)
            try:
                page = await self._client.session.list_tools(params=params)
            except (MCPError, ValidationError) as error:
                raise self._failure(error) from None
            found += [_read(tool) for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None or len(found) >= MOST_TOOLS:
                break
        return found

    async def call(self, name: str, arguments: dict[str, Any], correlation: str) -> str:
        """What a tool gave, as text."""
        meta: Any = {CORRELATION: correlation}
        params = types.CallToolRequestParams(name=name, arguments=arguments, _meta=meta)
        request = types.CallToolRequest(params=params)
        try:
            result = await self._client.session.send_request(request, types.CallToolResult)
        except (MCPError, ValidationError) as error:
            raise self._failure(error) from None
        text = _text(result)
        if result.is_error:
            raise ToolFailed(text)
        return text

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._gone.is_set()

    async def ended(self) -> None:
        """Wait until it has."""
        await self._gone.wait()

    def _failure(self, error: MCPError | ValidationError) -> Exception:
        if isinstance(error, ValidationError):
            return ToolFailed(NO_ANSWER)
        if error.code == _NOT_SENT:
            return ToolUnusable(error.message)
        is_forgotten = self._gone.is_set() and error.code == types.INVALID_REQUEST
        if is_forgotten or error.code == types.CONNECTION_CLOSED:
            return ServerLost(error.message)
        if error.code == types.PARSE_ERROR:  # in words of the package, with what it could not read
            logger.info("server gave no answer", extra={"detail": error.message[:MOST_ERROR_LINE]})
            return ToolFailed(NO_ANSWER)
        return ToolFailed(error.message)


def _read(tool: types.Tool) -> ServerTool:
    hints = tool.annotations
    return ServerTool(
        name=tool.name,
        description=tool.description or tool.title or "",
        parameters=tool.input_schema,
        is_read_only=hints is not None and hints.read_only_hint is True,
    )


def _text(result: types.CallToolResult) -> str:
    """What a result says; what is no text is named by its kind."""
    texts = [
        part.text if isinstance(part, types.TextContent) else f"[{part.type}: not shown]"
        for part in result.content
    ]
    if not texts and result.structured_content is not None:
        return json.write_text(result.structured_content)
    return "\n".join(texts)


# ------------------------------------------------------------------ in a process


@asynccontextmanager
async def connect_process(launch: Launch) -> AsyncIterator[McpSession]:
    """A server on the standard streams of a program."""
    gone = asyncio.Event()
    async with running(launch, limit=MOST_MESSAGE, has_input=True) as process:
        streams = _streams(process, gone)
        async with Client(streams, client_info=_INFO, cache=None) as client:
            yield McpSession(client, gone)


@asynccontextmanager
async def _streams(
    process: Process, gone: asyncio.Event
) -> AsyncIterator[
    tuple[
        MemoryObjectReceiveStream[SessionMessage | Exception],
        MemoryObjectSendStream[SessionMessage],
    ]
]:
    """Its pipes, as the package wants them."""
    incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as group:
        group.start_soon(_take, process, incoming, gone)
        group.start_soon(_give, process, outgoing)
        group.start_soon(_note, process)
        try:
            yield read, write
        finally:
            with anyio.CancelScope(shield=True):
                await leave(process)
            group.cancel_scope.cancel()
            for stream in (read, write, incoming, outgoing):
                stream.close()


async def _take(process: Process, incoming: Incoming, gone: asyncio.Event) -> None:
    assert process.stdout is not None  # noqa: S101  it was started with pipes
    async with incoming:
        try:
            async for line in lines_of(process.stdout):
                with suppress(ValidationError):  # what is no message is none
                    message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                    await incoming.send(SessionMessage(message))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        finally:
            gone.set()  # before whoever waits for an answer is told that there is none


async def _give(process: Process, outgoing: Outgoing) -> None:
    assert process.stdin is not None  # noqa: S101
    with suppress(OSError):  # it has ended: whoever reads from it notices
        async with outgoing:
            async for item in outgoing:
                line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(line.encode() + b"\n")
                await process.stdin.drain()


async def _note(process: Process) -> None:
    """What a server writes beside its answers is for the operator."""
    assert process.stderr is not None  # noqa: S101
    while chunk := await process.stderr.read(MOST_ERROR_LINE):
        words = chunk.decode(errors="replace").strip()
        if words:
            logger.info("server says", extra={"detail": words})


# ------------------------------------------------------------------ over HTTP


@asynccontextmanager
async def connect_url(
    http: HttpClient, url: str, token: Secret | None, seconds: float
) -> AsyncIterator[McpSession]:
    """A server over streamable HTTP; `seconds` is the most that one request may take."""
    gone = asyncio.Event()
    way = EgressTransport(http, url, token, seconds, on_forgotten=gone.set)
    async with httpx2.AsyncClient(transport=way, trust_env=False) as client:
        streams = streamable_http_client(
            url, http_client=client, max_sse_event_size=MOST_MESSAGE, terminate_on_close=False
        )
        async with Client(streams, client_info=_INFO, cache=None) as connected:
            yield McpSession(connected, gone)


class EgressTransport(httpx2.AsyncBaseTransport):
    """Sends what the package asks for through our HTTP client."""

    def __init__(
        self,
        http: HttpClient,
        url: str,
        token: Secret | None,
        seconds: float,
        *,
        on_forgotten: Callable[[], None],
    ) -> None:
        """`url` is the only place that is asked.

        `on_forgotten` is called when the server does not know the session any more: another one
        must be begun. That is said by the status alone, since a code may be about one request.
        """
        self._on_forgotten = on_forgotten
        self._http = http
        self._url = url
        self._place = httpx2.URL(url)
        self._secrets = (
            {} if token is None else {"authorization": Secret(f"Bearer {token.reveal()}")}
        )
        self._bounds = Bounds(total_seconds=seconds, max_bytes=MOST_MESSAGE)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The answer; a request that fails has one that says so, for that request alone."""
        if request.method != "POST":  # nobody listens to what a server says unasked
            return httpx2.Response(_NOT_ALLOWED)
        if request.url != self._place:
            return _failed(_NOT_SENT, "the server named another address")
        names = ("accept", "content-type")
        kept = {
            name: value
            for name, value in request.headers.items()
            if name in names or name.startswith("mcp-")
        }
        outbound = Outbound(
            url=self._url,
            body=request.content,
            headers=kept,
            secrets=self._secrets,
            bounds=self._bounds,
        )
        exchange = self._http.send(outbound)
        try:
            answer = await exchange.__aenter__()
        except CarnetError as error:
            is_refused = isinstance(error, EgressRefused) or isinstance(error.__cause__, NotSent)
            code = _NOT_SENT if is_refused else types.CONNECTION_CLOSED
            return _failed(code, f"{type(error).__name__}: {error}")
        if answer.status == _NOT_FOUND and SESSION in kept:
            self._on_forgotten()
        found = [(name, answer.header(name)) for name in _SHOWN]
        headers = [(name, value) for name, value in found if value is not None]
        return httpx2.Response(answer.status, headers=headers, stream=_Body(exchange, answer))


class _Body(httpx2.AsyncByteStream):
    """The body of an answer, as it comes."""

    def __init__(
        self, exchange: AbstractAsyncContextManager[HttpAnswer], answer: HttpAnswer
    ) -> None:
        self._exchange = exchange
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        kind = self._answer.header("content-type") or ""
        lines = WholeLines(are_events=kind.lower().startswith(_EVENTS))
        try:
            while chunk := await self._answer.next():
                if whole := lines.feed(chunk):
                    yield whole
            yield lines.close()
        except (CarnetError, TooMuch) as error:
            raise httpx2.StreamError(f"{type(error).__name__}: {error}") from None

    async def aclose(self) -> None:
        await self._exchange.__aexit__(None, None, None)


def _failed(code: int, words: str) -> httpx2.Response:
    """An answer that the package reads as an error of one request."""
    error = {"code": code, "message": words}
    return httpx2.Response(_UNAVAILABLE, json={"jsonrpc": "2.0", "id": None, "error": error})
