"""The tools of an MCP server: it is started once, shared by all, and started again when it ends.

It knows nothing of the protocol; whoever connects (`runtime.tools.mcp_client`) does.

Law 1. A server runs from the first use of it until we end, whoever uses it. One that has ended is
       started again by the next use; what was under way when it ended is not repeated, since nobody
       knows what came of it, and the model is told.
Law 2. A server that cannot be started is tried again after `PAUSE_SECONDS` at the earliest, and
       whoever needs it meanwhile is refused at once: `ToolUnusable`.
       One that does not tell its tools in the time of a use is ended: something holds it for all.
Law 3. Its tools are named after it, `SERVER_tool`, in signs that every model takes. Of two that
       would have one name the first counts.
Law 4. Whatever it says of its tools is bounded, and a description is words for a model. That a tool
       changes nothing is believed where the operator says so.
Law 5. Nobody has all of the calls that it is asked at once. One at a time asks for its tools:
       whoever has a list waits a moment for a new one, and goes on with the old one.
"""

import asyncio
import contextvars
import logging
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.messages.parameters import Tool
from carnet.errors import ToolUnusable
from carnet.ports.engine.tools import LoopTool, ToolFailed, ToolUse
from carnet.runtime.tools.room import FairRoom
from carnet.wire.grammar import json

logger = logging.getLogger("carnet.engine")

START_SECONDS: Final = 60.0  # for a server to start and to tell its tools
PAUSE_SECONDS: Final = 30.0  # before one that could not be started is tried again
FRESH_SECONDS: Final = 60.0  # after which its tools are asked for again
LIST_SECONDS: Final = 2.0  # that somebody who has a list waits for another
MOST_CALLS: Final = 64  # of one server, that wait for its answers
MOST_OF_ONE: Final = 16  # of them for one actor
MOST_TOOLS: Final = 256  # of one server
MOST_PAGES: Final = 64  # in which it tells them
MOST_DESCRIPTION: Final = 4_000  # characters
MOST_NAME: Final = 64
MOST_PARAMETERS: Final = 32_768  # bytes of the schema of a tool, which every model is sent

LOST: Final = "The server of this tool ended before it answered. It may be used again."

_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]", re.ASCII)


class ServerLost(Exception):
    """A server is gone, and nobody knows what came of what it was asked."""


class ServerTool(Struct, frozen=True, kw_only=True):
    """A tool as its server tells it."""

    name: str
    description: str
    parameters: dict[str, Any]
    is_read_only: bool  # by its own word


class ServerSession(Protocol):
    """A server that answers."""

    async def tools(self) -> list[ServerTool]:
        """What it has; ServerLost where it is gone."""

    async def call(self, name: str, arguments: dict[str, Any], correlation: str) -> str:
        """What a tool of it gave; ToolFailed, ServerLost, or ToolUnusable if it was not asked."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""

    async def ended(self) -> None:
        """Wait until it has."""


Connect = Callable[[], AbstractAsyncContextManager[ServerSession]]


class McpServer:
    """One server. Used and closed within one event loop."""

    def __init__(
        self,
        name: str,
        connect: Connect,
        rules: LoopTool,
        *,
        only: Sequence[str] = (),
        ask_before: Collection[str] = (),
        trusts: bool = False,
    ) -> None:
        """A server that is not started yet.

        Args:
            name: What its tools are named after.
            connect: Starts it, and asks it who it is.
            rules: For the use of each of its tools; a permission of None is that of its name.
            only: The tools there are; empty for all of them.
            ask_before: Names of tools that somebody must approve before each use.
            trusts: Whether it is believed what changes nothing.
        """
        self._room = FairRoom(MOST_CALLS, each=MOST_OF_ONE)
        self._name = name
        self._connect = connect
        self._rules = rules
        self._only = frozenset(only)
        self._ask_before = ask_before
        self._trusts = trusts
        self._keeping: set[asyncio.Task[None]] = set()  # the last of them holds it open
        self._ready: asyncio.Future[ServerSession] | None = None
        self._listed: list[LoopTool] | None = None
        self._listing: asyncio.Task[None] | None = None
        self._listed_at = 0.0  # when its tools were asked for last
        self._is_held = False  # it did not answer then
        self._failure = "it has not answered"  # that of the last time
        self._refused_until = 0.0

    async def tools(self) -> Sequence[LoopTool]:
        """Those that it has, or had when it last answered; ToolUnusable where it never did."""
        listing = self._asked()
        if listing is not None:
            seconds = None if self._listed is None else LIST_SECONDS
            await asyncio.wait({listing}, timeout=seconds)
            if listing.done() and not listing.cancelled():
                listing.result()  # what nobody has foreseen
        if self._listed is None:
            raise ToolUnusable(f"the server of {self._name}: {self._failure}")
        return self._listed

    def _asked(self) -> "asyncio.Task[None] | None":
        """What asks for its tools, for who is to wait for it."""
        loop = asyncio.get_running_loop()
        if self._listing is not None:
            return self._listing if self._listed is None else None
        fresh = PAUSE_SECONDS if self._is_held else FRESH_SECONDS
        is_known = self._is_held or self._listed is not None
        if is_known and loop.time() - self._listed_at < fresh:
            return None
        # In a context of its own: others wait for it as well.
        self._listing = loop.create_task(self._list(), context=contextvars.Context())
        return self._listing

    async def _list(self) -> None:
        self._is_held = False
        try:
            async with asyncio.timeout(max(START_SECONDS, self._rules.seconds)):
                found = await (await self._session()).tools()
            self._listed = list(self._tools(found))
        except (ToolUnusable, ServerLost, ToolFailed) as error:
            self._fail(f"{error}")
        except TimeoutError:
            self._is_held = True
            self._fail("it does not answer")
            await self._end()
        finally:
            self._listing = None
            self._listed_at = asyncio.get_running_loop().time()

    def _fail(self, words: str) -> None:
        self._failure = words
        logger.warning("tools are not fresh", extra={"tool": self._name, "detail": words})

    async def close(self) -> None:
        """End it."""
        if self._listing is not None:
            self._listing.cancel()
        await self._end()

    async def _end(self) -> None:
        self._ready = None
        for task in list(self._keeping):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    # ------------------------------------------------------------------ its tools

    def _tools(self, found: Iterable[ServerTool]) -> Iterable[LoopTool]:
        names: set[str] = set()
        for tool in list(found)[:MOST_TOOLS]:
            name = _OTHER.sub("_", f"{self._name}_{tool.name}")[:MOST_NAME]
            if self._only and tool.name not in self._only:
                continue
            if name in names:
                logger.warning("two tools have one name", extra={"tool": name})
                continue
            if not _is_short(tool.parameters):
                logger.warning("parameters of a tool are too long", extra={"tool": name})
                continue
            names.add(name)
            rules = self._rules
            yield replace(
                rules,
                definition=Tool(name, tool.description[:MOST_DESCRIPTION], tool.parameters),
                use=partial(self._use, tool.name),
                permission=rules.permission or f"tool:{name}",
                approval="always" if name in self._ask_before else rules.approval,
                writes=not (self._trusts and tool.is_read_only),
            )

    async def _use(self, name: str, use: ToolUse, /) -> object:
        async with self._room.place(use.actor.id):
            session = await self._session()
            try:
                return await session.call(name, use.arguments, use.correlation)
            except ServerLost as lost:
                logger.warning("server lost", extra={"tool": self._name, "detail": str(lost)})
                raise ToolFailed(LOST) from None

    # ------------------------------------------------------------------ its life

    async def _session(self) -> ServerSession:
        """The server, started where it is not there; ToolUnusable where it cannot be."""
        ready = self._ready
        if ready is None or (ready.done() and (ready.exception() or ready.result().is_over)):
            loop = asyncio.get_running_loop()
            if loop.time() < self._refused_until:
                raise ToolUnusable(f"the server of {self._name} could not be started just now")
            ready = self._ready = loop.create_future()
            # In a context of its own: it outlives the turn that needed it first.
            task = loop.create_task(self._keep(ready), context=contextvars.Context())
            self._keeping.add(task)
            task.add_done_callback(self._keeping.discard)
        return await asyncio.shield(ready)

    async def _keep(self, ready: "asyncio.Future[ServerSession]") -> None:
        """Start it, and hold it open until it ends."""
        loop = asyncio.get_running_loop()
        error: BaseException | None = None
        try:
            async with asyncio.timeout(START_SECONDS) as starting, self._connect() as session:
                starting.reschedule(None)
                ready.set_result(session)
                await session.ended()
        except (Exception, BaseExceptionGroup) as raised:  # noqa: BLE001  whatever it is, it ended
            error = raised
        finally:
            if not ready.done():
                self._refused_until = loop.time() + PAUSE_SECONDS
                ready.set_exception(_unusable(self._name, error))
                ready.exception()  # whoever waits is told; nobody may be left
        detail = f"{type(error).__name__}: {error}" if error is not None else None
        logger.warning("server ended", extra={"tool": self._name, "detail": detail})


def _is_short(parameters: dict[str, Any]) -> bool:
    """Whether models can be sent it: not much, and nothing that JSON has no word for."""
    try:
        return len(json.write(parameters)) <= MOST_PARAMETERS
    except (ValueError, OverflowError, RecursionError):
        return False


def _unusable(name: str, error: BaseException | None) -> ToolUnusable:
    return ToolUnusable(f"the server of {name} cannot be started: {type(error).__name__}: {error}")
