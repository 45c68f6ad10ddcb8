"""The memory of people (R46): a folder of files for each person and agent, with their versions.

Law 1. Everything is looked up by whose it is: a person and an agent. Nobody finds another's.
Law 2. Every write keeps what was there before, and says which conversation and turn it came from;
       writing what stands there already is no write.
Law 3. What is kept is bounded: files and bytes by refusing more, versions by forgetting the oldest.
Law 4. Paths were read by `core.memory.path`; nothing here reads one.
Law 5. A memory in which nothing was written has one file, the starter `AGENT.md`. It is version 0,
       and kept nowhere.
"""

import builtins
from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct

from carnet.core.memory.text import LineHit

STARTER: Final = """\
# AGENT.md

These are your notes about the person you work for. You read them, and she does too.

- Read this file first. It says what else there is and how she wants things done.
- Keep what will matter again: preferences, names, decisions, where things stand. No secrets.
- Write one file for each subject, and name it here in a line.
"""

KIB: Final = 1024
MOST_FILE_BYTES: Final = 128 * KIB  # of one file


class MemoryKey(Struct, frozen=True):
    """Whose memory, and which agent's."""

    person: int
    agent: str


class MemoryBounds(Struct, frozen=True, kw_only=True):
    """How much one memory holds, and what it begins with."""

    files: int = 200
    bytes: int = 1024 * KIB  # of all files together, as they are now
    versions: int = 20  # of each file
    former_bytes: int = 4096 * KIB  # of all former versions together
    starter: str = STARTER


class MemoryFile(Struct, frozen=True, kw_only=True):
    """A file as it is now."""

    path: str
    version: int  # 0: the starter, which nobody has written
    size: int  # bytes
    at: int | None  # when it was written


class MemoryText(Struct, frozen=True, kw_only=True):
    """What a version of a file says."""

    path: str
    version: int
    text: str
    at: int | None


class MemoryVersion(Struct, frozen=True, kw_only=True):
    """One version of a file, and where it came from."""

    version: int
    size: int
    at: int
    origin: int | None = None  # the version that it brought back
    conversation: str | None = None
    run: str | None = None
    turn: str | None = None
    erased: int | None = None  # since when nothing is left of it but this line

    @property
    def writer(self) -> str:
        """Who wrote it: the agent, in a turn, or the person herself."""
        return "person" if self.turn is None else "agent"


class MemoryFolder(Struct, frozen=True, kw_only=True):
    """What one agent keeps for a person."""

    agent: str
    files: int
    bytes: int


class MemoryWrite(Struct, frozen=True, kw_only=True):
    """What is to be written."""

    path: str
    data: bytes
    now: int
    turn: int | None = None  # the number of the turn that writes; None: the person herself
    conversation: str | None = None  # that the turn is of, by its id
    expected: int | None = None  # the version that it was made from; None: whichever there is


class ErasedFile(Struct, frozen=True, kw_only=True):
    """A file in which a conversation has written, after that was erased (R27)."""

    agent: str
    path: str
    erased: tuple[int, ...]  # versions of which nothing is left
    later: tuple[int, ...]  # versions that came after the first of them, and stay: hers to judge


class Memories(Protocol):
    """The memory of everybody."""

    async def folders(self, person: int) -> list[MemoryFolder]:
        """The agents that keep something for a person, by name."""

    async def list(self, key: MemoryKey) -> builtins.list[MemoryFile]:
        """The files of a memory, by path."""

    async def read(
        self, key: MemoryKey, path: str, version: int | None = None
    ) -> MemoryText | None:
        """A file, as it is or was; None if there is none, or nothing is left of it."""

    async def versions(self, key: MemoryKey, path: str) -> builtins.list[MemoryVersion]:
        """What is kept of a file, the newest first."""

    async def texts(self, key: MemoryKey) -> builtins.list[MemoryText]:
        """All files as they are, by path."""

    async def search(self, key: MemoryKey, question: str) -> builtins.list[LineHit]:
        """The lines that hold some words."""

    async def write(self, key: MemoryKey, asked: MemoryWrite) -> MemoryFile:
        """Write a file, and keep what it was.

        Raises MemoryChanged, MemoryFull, InvalidRequest for a path that is taken, PersonNotFound.
        """

    async def undo(
        self, key: MemoryKey, path: str, now: int, to: int | None = None
    ) -> MemoryFile | None:
        """Bring back the version before, or the one that is named; None if there is none such."""

    async def delete(
        self, key: MemoryKey, path: str | None, now: int, version: int | None = None
    ) -> int:
        """Leave nothing of a version, of a file, or of all: how many versions that were."""

    async def erase(
        self, person: int, conversation: int, now: int, turns: Sequence[int] = ()
    ) -> Sequence[ErasedFile]:
        """Leave nothing of what was written in a conversation; the files that it had written in.

        `turns` are those of it, and those that were called in them, by their numbers.
        """


class TurnMemory(Protocol):
    """The memory of whoever a turn runs for, at the agent that runs."""

    async def read(self, path: str, /) -> str | None:
        """What a file says; None if there is none."""

    async def list(self, folder: str, /) -> builtins.list[MemoryFile]:
        """The files in a folder and below it."""

    async def search(self, question: str, /) -> builtins.list[LineHit]:
        """The lines that hold some words."""

    async def write(self, path: str, text: str, /) -> MemoryFile:
        """Write a file; raises a CarnetError where that is refused."""
