"""What agents keep for a person, over HTTP: hers to read, change, undo, export and delete (R46).

Law 1. Whose memory it is comes from the token: that of its person, and of nobody else. A machine
       has none, and an operator sees nobody's.
Law 2. A path stands in one segment, its slashes written `%2F`; what it may be says
       `core.memory.path`.
Law 3. Nothing is written for an agent that is not here, so that nobody has more memories than there
       are agents; what was kept for one that has gone can be read and deleted.
Law 4. What is held of files until somebody has read them is counted among what readers hold (A74).
"""

import asyncio
from collections.abc import Callable, Container, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import msgspec
from msgspec import Struct

from carnet.core.memory.path import parse_path
from carnet.core.people.identity import Caller
from carnet.errors import (
    AgentNotFound,
    InvalidJson,
    InvalidRequest,
    MemoryFileNotFound,
    PersonRequired,
)
from carnet.guards.readers import Readers
from carnet.http.exchange import Exchange, Row, check_json_body, reply_json
from carnet.ports.memory.memory import (
    MOST_FILE_BYTES,
    Memories,
    MemoryFile,
    MemoryKey,
    MemoryText,
    MemoryVersion,
    MemoryWrite,
)
from carnet.ports.world.clock import Clock
from carnet.wire.grammar import json
from carnet.wire.grammar.query import Query, read_flag, read_number, read_query, read_word
from carnet.wire.grammar.times import when

Page = dict[str, Any]

MOST_BODY: Final = 6 * MOST_FILE_BYTES + 1024  # a character is six bytes of JSON at the most
PAGES: Final = 2  # times that a file is held: as it is kept, and as it is written
LARGE_BYTES: Final = 65_536  # that are read and written beside the event loop

SCHEMAS: Final[Page] = {
    "MemoryContent": {
        "type": "object",
        "required": ["content"],
        "additionalProperties": False,
        "properties": {
            "content": {"type": "string"},
            "version": {"type": "integer", "minimum": 0},
        },
    },
}


class MemoryContent(Struct, frozen=True, forbid_unknown_fields=True):
    """What a file is to say, and the version that it was made from."""

    content: str
    version: int | None = None


_content: Final = msgspec.json.Decoder(MemoryContent)


class OwnMemoryPages:
    """The memory of whoever asks."""

    def __init__(
        self,
        memories: Memories,
        clock: Clock,
        agents: Callable[[], Container[str]],
        readers: Readers,
    ) -> None:
        """`agents` are the names of those that keep something; `readers` bounds what is held."""
        self._readers = readers
        self._memories = memories
        self._clock = clock
        self._agents = agents

    async def folders(self, exchange: Exchange, caller: Caller) -> None:
        """GET /memory."""
        found = await self._memories.folders(_person(caller))
        lines = [{"agent": one.agent, "files": one.files, "bytes": one.bytes} for one in found]
        await reply_json(exchange, {"memory": lines})

    async def list(self, exchange: Exchange, caller: Caller, agent: str) -> None:
        """GET /memory/{agent}: the files, with `full` what they say, with `search` lines."""
        query = _query(exchange)
        key = await self._known(caller, agent)
        search = read_word(query, "search")
        files = await self._memories.list(key)
        if search is not None:
            async with self._room(caller, files):
                found = await self._memories.search(key, search)
            await reply_json(exchange, {"agent": agent, "hits": found})
        elif read_flag(query, "full"):
            async with self._room(caller, files):
                texts = await self._memories.texts(key)
                pages = [text_page(agent, text) for text in texts]
                await _reply_large(exchange, {"agent": agent, "files": pages})
        else:
            pages = [file_page(file) for file in files]
            await reply_json(exchange, {"agent": agent, "files": pages})

    def _room(
        self, caller: Caller, files: Sequence[MemoryFile]
    ) -> AbstractAsyncContextManager[None]:
        """Room for what some files say, and for that as it is written."""
        size = PAGES * sum(file.size for file in files)
        return self._readers.room(caller.actor.name, size)

    async def read(self, exchange: Exchange, caller: Caller, agent: str, name: str) -> None:
        """GET /memory/{agent}/{path}, as it is or as it was."""
        version = _version(_query(exchange))
        key, path = await self._known(caller, agent), parse_path(name)
        found = await self._memories.read(key, path, version)
        if found is None:
            raise MemoryFileNotFound
        await _reply_large(exchange, text_page(agent, found))

    async def write(self, exchange: Exchange, caller: Caller, agent: str, name: str) -> None:
        """PUT /memory/{agent}/{path}."""
        key, path = MemoryKey(_person(caller), agent), parse_path(name)
        if agent not in self._agents():
            raise AgentNotFound
        asked = await read_content(exchange)
        write = MemoryWrite(
            path=path,
            data=asked.content.encode(),
            now=self._clock.wall_us(),
            expected=asked.version,
        )
        file = await self._memories.write(key, write)
        await reply_json(exchange, {"agent": agent, **file_page(file)})

    async def delete(self, exchange: Exchange, caller: Caller, agent: str, name: str) -> None:
        """DELETE /memory/{agent}/{path}: all of it, or one version."""
        version = _version(_query(exchange))
        await self._delete(exchange, MemoryKey(_person(caller), agent), parse_path(name), version)

    async def delete_all(self, exchange: Exchange, caller: Caller, agent: str) -> None:
        """DELETE /memory/{agent}."""
        await self._delete(exchange, MemoryKey(_person(caller), agent), None, None)

    async def _delete(
        self, exchange: Exchange, key: MemoryKey, path: str | None, version: int | None
    ) -> None:
        now = self._clock.wall_us()
        deleted = await self._memories.delete(key, path, now, version)
        if not deleted:
            raise MemoryFileNotFound
        await reply_json(exchange, {"agent": key.agent, "path": path, "deleted": deleted})

    async def versions(self, exchange: Exchange, caller: Caller, agent: str, name: str) -> None:
        """GET /memory/{agent}/{path}/versions: the newest first."""
        key, path = await self._known(caller, agent), parse_path(name)
        found = await self._memories.versions(key, path)
        if not found:
            raise MemoryFileNotFound
        pages = [version_page(one) for one in found]
        await reply_json(exchange, {"agent": agent, "path": path, "versions": pages})

    async def undo(self, exchange: Exchange, caller: Caller, agent: str, name: str) -> None:
        """POST /memory/{agent}/{path}/undo: the version before, or one that is named."""
        version = _version(_query(exchange))
        key, path = MemoryKey(_person(caller), agent), parse_path(name)
        file = await self._memories.undo(key, path, self._clock.wall_us(), version)
        if file is None:
            raise MemoryFileNotFound
        await reply_json(exchange, {"agent": agent, **file_page(file)})

    async def _known(self, caller: Caller, agent: str) -> MemoryKey:
        """The memory that is asked for; of an agent that is not here only if there is one."""
        person = _person(caller)
        if agent not in self._agents():
            kept = await self._memories.folders(person)
            if all(one.agent != agent for one in kept):
                raise AgentNotFound
        return MemoryKey(person, agent)


def _person(caller: Caller) -> int:
    if caller.person is None:
        raise PersonRequired
    return caller.person


def _query(exchange: Exchange) -> Query:
    return read_query(exchange.query.decode("latin-1"))


def _version(query: Query) -> int | None:
    return read_number(query, "version", 0) if "version" in query else None


async def read_content(exchange: Exchange) -> MemoryContent:
    """What is sent to be written; InvalidRequest for what is none."""
    check_json_body(exchange.headers)
    body = await exchange.read(MOST_BODY)
    if len(body) <= LARGE_BYTES:
        return _read(body)
    return await asyncio.to_thread(_read, body)


def _read(body: bytes) -> MemoryContent:
    try:
        json.read_object(body)  # strictly
        return _content.decode(body)
    except msgspec.ValidationError:
        raise InvalidRequest("content", "must be a text, beside it at most a version") from None
    except msgspec.DecodeError as error:
        raise InvalidJson(str(error)) from None


async def _reply_large(exchange: Exchange, page: Page) -> None:
    body = await asyncio.to_thread(json.write, page)
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    await exchange.reply(200, headers, body)


def file_page(file: MemoryFile) -> Page:
    """A file as it is listed."""
    return {
        "path": file.path,
        "version": file.version,
        "bytes": file.size,
        "written": when(file.at),
    }


def text_page(agent: str, text: MemoryText) -> Page:
    """A file with what it says."""
    return {
        "agent": agent,
        "path": text.path,
        "version": text.version,
        "written": when(text.at),
        "content": text.text,
    }


def version_page(one: MemoryVersion) -> Page:
    """A version, and where it came from."""
    return {
        "version": one.version,
        "bytes": one.size,
        "written": when(one.at),
        "by": one.writer,
        "brings_back": one.origin,
        "conversation": one.conversation,
        "run": one.run,
        "turn": one.turn or None,
        "erased": when(one.erased),
    }


ROUTES = (
    Row(
        method="GET",
        path="/memory",
        endpoint=OwnMemoryPages.folders,
        permission="memory:read",
        summary="The agents that keep something for whoever asks",
        answer="Page",
    ),
    Row(
        method="GET",
        path="/memory/{agent}",
        endpoint=OwnMemoryPages.list,
        permission="memory:read",
        summary="What one of them keeps: its files, with full what they say, or lines with words",
        query=("full", "search"),
        answer="Page",
    ),
    Row(
        method="DELETE",
        path="/memory/{agent}",
        endpoint=OwnMemoryPages.delete_all,
        permission="memory:write",
        summary="Delete all of it",
        answer="Page",
    ),
    Row(
        method="GET",
        path="/memory/{agent}/{path}",
        endpoint=OwnMemoryPages.read,
        permission="memory:read",
        summary="A file, as it is or was; slashes in its path are written %2F",
        query=("version",),
        answer="Page",
    ),
    Row(
        method="PUT",
        path="/memory/{agent}/{path}",
        endpoint=OwnMemoryPages.write,
        permission="memory:write",
        summary="Write a file; what it was is kept",
        body="MemoryContent",
        answer="Page",
    ),
    Row(
        method="DELETE",
        path="/memory/{agent}/{path}",
        endpoint=OwnMemoryPages.delete,
        permission="memory:write",
        summary="Delete a file with all its versions, or one version",
        query=("version",),
        answer="Page",
    ),
    Row(
        method="GET",
        path="/memory/{agent}/{path}/versions",
        endpoint=OwnMemoryPages.versions,
        permission="memory:read",
        summary="What is kept of a file, and where each version came from",
        answer="Page",
    ),
    Row(
        method="POST",
        path="/memory/{agent}/{path}/undo",
        endpoint=OwnMemoryPages.undo,
        permission="memory:write",
        summary="Bring back the version before, or the one that is named",
        query=("version",),
        answer="Page",
    ),
)
