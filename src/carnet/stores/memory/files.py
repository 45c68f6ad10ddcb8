"""The memory of people, as the store keeps it: the port `carnet.ports.memory.memory.Memories`.

Law 1. A write is one transaction: the file if it is new, its version, and what is forgotten for it.
       What it returns is durable.
Law 2. A write that changed nothing says why: the person has ended, the path is taken, there is no
       room, somebody else has written. Which of them is found out afterwards, beside the write.
Law 3. Much text is read beside the event loop.
"""

import asyncio
import builtins
from collections.abc import Sequence
from typing import Final

from carnet.core.memory.path import AGENT_FILE, above, folded
from carnet.core.memory.text import LineHit, find_lines
from carnet.core.people.identity import owner_of
from carnet.errors import InvalidRequest, MemoryChanged, MemoryFull, PersonNotFound
from carnet.faults import point
from carnet.ports.memory.memory import (
    MOST_FILE_BYTES,
    ErasedFile,
    MemoryBounds,
    MemoryFile,
    MemoryFolder,
    MemoryKey,
    MemoryText,
    MemoryVersion,
    MemoryWrite,
)
from carnet.stores.database import Database, Row, Statement, marks
from carnet.stores.memory import statements as sql

AT_A_TIME: Final = 500  # turns of one statement

_TAKEN: Final = "is, but for its capitals, that of another file, or a folder is called so"


class StoredMemory:
    """The memory of everybody whom a store knows."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.bounds = MemoryBounds()

    async def folders(self, person: int) -> builtins.list[MemoryFolder]:
        """The agents that keep something for a person, by name."""
        rows = await self._database.fetch(sql.FOLDERS, (person,))
        return [MemoryFolder(agent=agent, files=files, bytes=size) for agent, files, size in rows]

    async def list(self, key: MemoryKey) -> builtins.list[MemoryFile]:
        """The files of a memory, by path."""
        rows = await self._database.fetch(sql.FILES, (key.person, key.agent))
        found = [_file(row) for row in rows]
        if all(file.path != AGENT_FILE for file in found):
            size = len(self.bounds.starter.encode())
            found.append(MemoryFile(path=AGENT_FILE, version=0, size=size, at=None))
        return sorted(found, key=lambda file: file.path)

    async def read(
        self, key: MemoryKey, path: str, version: int | None = None
    ) -> MemoryText | None:
        """A file, as it is or was; None if there is none, or nothing is left of it."""
        args = (key.person, key.agent, path)
        if version is None:
            rows = await self._database.fetch(sql.TEXT, args)
        else:
            rows = await self._database.fetch(sql.TEXT_AT, (*args, version))
        if rows:
            return _text((path, *rows[0]))
        return self._starter if path == AGENT_FILE and not version else None

    @property
    def _starter(self) -> MemoryText:
        return MemoryText(path=AGENT_FILE, version=0, text=self.bounds.starter, at=None)

    async def versions(self, key: MemoryKey, path: str) -> builtins.list[MemoryVersion]:
        """What is kept of a file, the newest first."""
        rows = await self._database.fetch(sql.VERSIONS, (key.person, key.agent, path))
        return [_version(row) for row in rows]

    async def texts(self, key: MemoryKey) -> builtins.list[MemoryText]:
        """All files as they are, by path."""
        rows = await self._database.fetch(sql.TEXTS, (key.person, key.agent))
        found = await asyncio.to_thread(lambda: [_text(row) for row in rows])
        if all(file.path != AGENT_FILE for file in found):
            found.append(self._starter)
        return sorted(found, key=lambda file: file.path)

    async def search(self, key: MemoryKey, question: str) -> builtins.list[LineHit]:
        """The lines that hold some words."""
        files = [(file.path, file.text) for file in await self.texts(key)]
        return await asyncio.to_thread(find_lines, files, question)

    async def write(self, key: MemoryKey, asked: MemoryWrite) -> MemoryFile:
        """Write a file, and keep what it was."""
        return await self._write(key, asked)

    async def _write(
        self, key: MemoryKey, asked: MemoryWrite, origin: int | None = None
    ) -> MemoryFile:
        bounds, size = self.bounds, len(asked.data)
        if size > min(MOST_FILE_BYTES, bounds.bytes):
            raise MemoryFull(limit=min(MOST_FILE_BYTES, bounds.bytes), what="bytes of one file")
        whose, path = (key.person, key.agent), asked.path
        low = folded(path)
        taken = [low, *[folded(folder) for folder in above(path)]]
        add = (*whose, path, low, key.person, *whose, bounds.files)
        write = (
            *(
                asked.data,
                size,
                asked.conversation,
                owner_of(key.person, ""),
                asked.turn,
                asked.now,
            ),
            origin,
            *(*whose, path),
            *(key.person, int(origin is not None), asked.data),
            *(int(asked.expected is None), asked.expected or 0, bounds.bytes - size),
        )
        point("memory.begin")
        _, _, written, *_ = await self._database.transact(
            [
                self._locked(key.person),
                (
                    sql.ADD.format(marks(len(taken))),
                    (*add, *whose, *taken, len(low) + 1, f"{low}/"),
                ),
                (sql.WRITE, write),
                (sql.THIN_OUT, (*whose, path, *whose, path, bounds.versions)),
                (sql.FORGET_FORMER, (*whose, bounds.former_bytes)),
                (sql.FORGET_EMPTY, (key.person,)),
            ]
        )
        point("memory.kept")
        stands = await self._find(key, path)
        if not written:
            await self._refuse(key, asked, stands)
        if stands is None:  # deleted meanwhile
            raise MemoryChanged
        return stands

    async def _refuse(self, key: MemoryKey, asked: MemoryWrite, stands: MemoryFile | None) -> None:
        """Say why nothing was written; nothing where it stands there already."""
        if not await self._database.fetch(sql.IS_LIVE, (key.person,)):
            raise PersonNotFound
        if asked.expected is not None and asked.expected != (stands.version if stands else 0):
            raise MemoryChanged
        found = None if stands is None else await self.read(key, asked.path)
        if found is not None and found.text.encode() == asked.data:
            return
        files = await self._database.fetch(sql.FILES, (key.person, key.agent))
        if stands is None and len(files) < self.bounds.files and self._is_room(files, asked):
            raise InvalidRequest("path", _TAKEN)
        if stands is None and len(files) >= self.bounds.files:
            raise MemoryFull(limit=self.bounds.files, what="files")
        raise MemoryFull(limit=self.bounds.bytes, what="bytes in all")

    def _is_room(self, files: Sequence[Row], asked: MemoryWrite) -> bool:
        others = sum(size for path, _, size, _ in files if path != asked.path)
        return bool(others + len(asked.data) <= self.bounds.bytes)

    async def undo(
        self, key: MemoryKey, path: str, now: int, to: int | None = None
    ) -> MemoryFile | None:
        """Bring back the version before, or the one that is named; None if there is none such.

        What was brought back stands where it came from: undone again, the one before that comes.
        """
        kept = [one for one in await self.versions(key, path) if one.erased is None]
        if not kept:
            return None
        stands = kept[0]
        before = stands.origin if stands.origin is not None else stands.version
        by_number = {one.version: one for one in kept}
        earlier = [number for number in by_number if number < before]
        wanted = to if to is not None else max(earlier, default=None)
        found = None if wanted is None else await self.read(key, path, wanted)
        if wanted is None or wanted not in by_number or found is None:
            return None
        origin = by_number[wanted].origin
        asked = MemoryWrite(path=path, data=found.text.encode(), now=now, expected=stands.version)
        return await self._write(key, asked, wanted if origin is None else origin)

    async def delete(
        self, key: MemoryKey, path: str | None, now: int, version: int | None = None
    ) -> int:
        """Leave nothing of a version, of a file, or of all: how many versions that were."""
        whose = (key.person, key.agent)
        gone: Statement
        if path is None:
            gone = (sql.DELETE_ALL, whose)
        elif version is None:
            gone = (sql.DELETE_FILE, (*whose, path))
        else:
            gone = (sql.ERASE_VERSION, (now, *whose, path, version))
        point("memory.begin")
        _, deleted, *_ = await self._database.transact(
            [self._locked(key.person), gone, *self._emptied(key.person)]
        )
        point("memory.kept")
        return deleted

    async def erase(
        self, person: int, conversation: int, now: int, turns: Sequence[int] = ()
    ) -> Sequence[ErasedFile]:
        """Leave nothing of what was written in a conversation; the files that it had written in."""
        for at in range(0, len(turns), AT_A_TIME):
            some = turns[at : at + AT_A_TIME]
            attach = sql.ATTACH.format(marks(len(some)))
            await self._database.execute(attach, (conversation, person, *some))
        asked = (conversation, conversation, person, conversation)
        rows = await self._database.fetch(sql.WRITTEN_IN, asked)
        point("memory.begin")
        await self._database.transact(self._erasing(person, conversation, now))
        point("memory.kept")
        files: dict[tuple[str, str], tuple[builtins.list[int], builtins.list[int]]] = {}
        for agent, path, version, is_of_it in rows:
            erased, later = files.setdefault((agent, path), ([], []))
            if is_of_it:
                erased.append(version)
            elif erased:
                later.append(version)
        return [
            ErasedFile(agent=agent, path=path, erased=tuple(erased), later=tuple(later))
            for (agent, path), (erased, later) in files.items()
        ]

    def _erasing(self, person: int, conversation: int, now: int) -> builtins.list[Statement]:
        erase = (sql.ERASE, (now, person, conversation, conversation))
        return [self._locked(person), erase, *self._emptied(person)]

    def _locked(self, person: int) -> Statement:
        return sql.LOCK.format(self._database.row_lock), (person,)

    def _emptied(self, person: int) -> builtins.list[Statement]:
        return [(sql.FORGET_ERASED, (person,)), (sql.FORGET_EMPTY, (person,))]

    async def _find(self, key: MemoryKey, path: str) -> MemoryFile | None:
        rows = await self._database.fetch(sql.TEXT, (key.person, key.agent, path))
        if not rows:
            return None
        version, data, at = rows[0]
        return MemoryFile(path=path, version=version, size=len(data), at=at)


def _file(row: Row) -> MemoryFile:
    path, version, size, at = row
    return MemoryFile(path=path, version=version, size=size, at=at)


def _text(row: Row) -> MemoryText:
    path, version, data, at = row
    return MemoryText(path=path, version=version, text=bytes(data).decode(), at=at)


def _version(row: Row) -> MemoryVersion:
    version, size, at, origin, conversation, run, turn, number, erased = row
    if turn is None and number is not None:
        turn = ""  # it is no longer kept
    return MemoryVersion(
        version=version,
        size=size,
        at=at,
        origin=origin,
        conversation=conversation,
        run=run,
        turn=turn,
        erased=erased,
    )
