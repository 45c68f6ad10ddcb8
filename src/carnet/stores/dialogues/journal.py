"""The journal of a driver: a SQLite file of its own, beside no gateway.

Law 1. One statement is one transaction, and on the disk when it returns. What several runs have to
       write meanwhile is the next one; who was overtaken fails alone.
Law 2. The number of an event is given by its writer. Two who write the same one are told apart by
       the key: the second fails.
Law 3. No credential is in it: who goes on with a run brings the payer's again.
Law 4. A run is that of its owner, whoever else names it: nobody reads or goes on with another's.
Law 5. It is a file of its own: neither a gateway's store nor anybody else's database.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from carnet.core.dialogue.events import (
    TEXT_KIND,
    ConversationStarted,
    DialogueEvent,
    kind_of_event,
    read_dialogue_event,
    write_dialogue_event,
)
from carnet.core.dialogue.record import DialogueRecord
from carnet.errors import StorageUnavailable, UsageInvalid
from carnet.stores.database import Row, Value
from carnet.stores.lock import RunLock
from carnet.stores.migration import unusable

LAYOUT: Final = 2  # kept as the user_version of the file

# A file whose table was made and not yet its number was ours when its driver died.
_OURS: Final = {(LAYOUT, ("dialogue_event",)), (0, ("dialogue_event",))}
_TABLES: Final = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
_CREATE: Final = (
    "CREATE TABLE IF NOT EXISTS dialogue_event (run TEXT NOT NULL, owner TEXT NOT NULL,"
    " scope TEXT NOT NULL, n INTEGER NOT NULL, kind TEXT NOT NULL, body BLOB NOT NULL,"
    " PRIMARY KEY (run, owner, scope, n)) WITHOUT ROWID"
)
_READ: Final = (
    "SELECT body FROM dialogue_event WHERE run = ? AND owner = ? AND scope = ? AND kind <> ?"
    " ORDER BY n"
)
_ALL: Final = "SELECT body FROM dialogue_event WHERE run = ? AND owner = ? AND scope = ? ORDER BY n"
_LAST: Final = (
    "SELECT COALESCE(MAX(n), 0) FROM dialogue_event WHERE run = ? AND owner = ? AND scope = ?"
)
_BEGUN: Final = (
    "SELECT run, body FROM dialogue_event WHERE scope = '' AND n = 1 AND run LIKE ? ESCAPE '!'"
)
_RUNS: Final = "SELECT DISTINCT run, owner FROM dialogue_event WHERE scope = '' ORDER BY run, owner"
_OWNERS: Final = "SELECT DISTINCT owner FROM dialogue_event WHERE run = ? ORDER BY owner"
_SCOPES: Final = (
    "SELECT DISTINCT scope FROM dialogue_event WHERE run = ? AND owner = ? ORDER BY scope"
)
_FORGET: Final = "DELETE FROM dialogue_event WHERE run = ? AND owner = ?"
_WRITE: Final = "INSERT INTO dialogue_event (run, owner, scope, n, kind, body) VALUES "
_ROW: Final = "(?, ?, ?, ?, ?, ?)"
_COLUMNS: Final = 6
TOGETHER: Final = 256  # writes of one transaction

Write = tuple[Sequence[Value], "asyncio.Future[None]"]


class Statements(Protocol):
    """A connection on a thread of its own: each statement is a transaction."""

    def fetch(self, sql: str, args: Sequence[Value]) -> Awaitable[list[Row]]:
        """Run one statement; the rows it gives."""

    async def stop(self) -> None:
        """Finish what is queued and close."""


class JournalSummary(Struct, frozen=True, kw_only=True):
    """One run of a journal, as a list shows it."""

    run_id: str
    owner: str  # whose it is, as a digest; nobody's: the driver began it by itself
    turns: int
    spent: int
    halted: str | None  # None: it was left, or runs


class DialogueJournal:
    """The runs of a driver. Opened by `stores.open.open_journal`, closed with `aclose`."""

    def __init__(self, statements: Statements, path: Path) -> None:
        """`statements` is a connection to the file at `path`."""
        self._statements = statements
        self._path = path
        self._waiting: list[Write] = []  # not yet handed over
        self._writing: asyncio.Task[None] | None = None

    async def prepare(self) -> None:
        """See that the file is ours, and make its table if it is new."""
        fetch = self._statements.fetch
        ((version,),) = await fetch("PRAGMA user_version", ())
        tables = tuple([name for (name,) in await fetch(_TABLES, ())])
        if (version, tables) not in {(0, ()), *_OURS}:
            raise unusable(f"{self._path} is no journal of conversations; name a file of its own")
        if version != LAYOUT:
            await fetch(_CREATE, ())
            await fetch(f"PRAGMA user_version = {LAYOUT}", ())

    def of(self, owner: str) -> "OwnedDialogues":
        """The runs of one owner; of nobody by an empty one."""
        return OwnedDialogues(self, owner)

    async def runs(self) -> list[JournalSummary]:
        """Every run that was begun here."""
        found: list[JournalSummary] = []
        for run, owner in await self.fetch(_RUNS, ()):
            record = DialogueRecord.of(await self.events(run, owner=owner))
            found.append(
                JournalSummary(
                    run_id=run,
                    owner=owner,
                    turns=len(record.turns),
                    spent=record.spent,
                    halted=None if record.halt is None else str(record.halt),
                )
            )
        return found

    async def begun(self, prefix: str = "") -> list[str]:
        """The ids of the runs that begin so, newest first."""
        escaped = "".join(f"!{c}" if c in "!%_" else c for c in prefix)
        rows = await self.fetch(_BEGUN, (f"{escaped}%",))
        started = [(_started(read_dialogue_event(body)), run) for run, body in rows]
        newest = dict.fromkeys(run for _, run in sorted(started, reverse=True))  # of all callers
        return [run for run in newest if run.startswith(prefix)]

    async def events(
        self, run: str, parent_turn_id: str = "", *, owner: str | None = None
    ) -> list[DialogueEvent]:
        """All that was told of a run, or of the one within a turn of it; none if it is unknown."""
        key = (run, await self._owner(run, owner), parent_turn_id)
        return [read_dialogue_event(body) for (body,) in await self.fetch(_ALL, key)]

    async def nested(self, run: str, *, owner: str | None = None) -> list[str]:
        """The turns of a run that hold a dialogue of their own."""
        rows = await self.fetch(_SCOPES, (run, await self._owner(run, owner)))
        return [scope for (scope,) in rows if scope]

    async def forget(self, run: str, *, owner: str | None = None) -> None:
        """Remove all that was kept of a run; InProgress while somebody drives it."""
        whose = await self._owner(run, owner)
        with RunLock.held(self._path, _lock_name(run, whose, "")):
            await self.fetch(_FORGET, (run, whose))

    async def owners(self, run: str) -> list[str]:
        """Whose runs have this name."""
        return [owner for (owner,) in await self.fetch(_OWNERS, (run,))]

    async def _owner(self, run: str, given: str | None) -> str:
        """Whose run is meant, by whoever has the file."""
        owners = [given] if given is not None else await self.owners(run)
        if len(owners) > 1:
            raise UsageInvalid(
                reason=f"{len(owners)} callers have a run {run}.",
                fix="Say whose with owner=, as runs() tells it.",
            )
        return owners[0] if owners else ""

    @asynccontextmanager
    async def hold(self, run: str, owner: str, scope: str) -> AsyncIterator["JournalPages"]:
        """Be the one who writes a dialogue; InProgress while somebody else is."""
        with RunLock.held(self._path, _lock_name(run, owner, scope)):
            if not owner and "" not in (await self.owners(run) or [""]):
                raise UsageInvalid(
                    reason=f"Run {run} was begun by somebody who has shown a credential.",
                    fix="Give it again with propagated_headers, or the caller: neither is kept.",
                )
            ((last,),) = await self.fetch(_LAST, (run, owner, scope))
            yield JournalPages(self, (run, owner, scope), last)

    async def write(self, args: Sequence[Value]) -> None:
        """Write the events of a run, together with those of others."""
        loop = asyncio.get_running_loop()
        written = loop.create_future()
        self._waiting.append((args, written))
        if self._writing is None:
            self._writing = loop.create_task(self._write_all())
        await written

    async def _write_all(self) -> None:
        while self._waiting:
            together, self._waiting = self._waiting[:TOGETHER], self._waiting[TOGETHER:]
            await self._write(together)
        self._writing = None

    async def _write(self, together: Sequence[Write]) -> None:
        args = [value for each, _ in together for value in each]
        try:
            await self.fetch(_WRITE + ", ".join([_ROW] * (len(args) // _COLUMNS)), args)
        except StorageUnavailable as error:
            if len(together) > 1:
                for each in together:
                    await self._write([each])
            elif not together[0][1].done():
                together[0][1].set_exception(error)
        else:
            for _, written in together:
                if not written.done():  # else nobody waits for it any more
                    written.set_result(None)

    async def fetch(self, sql: str, args: Sequence[Value]) -> list[Row]:
        """Run one statement."""
        return await self._statements.fetch(sql, args)

    async def aclose(self) -> None:
        """Finish what is queued and let go of the file."""
        if self._writing is not None:
            await self._writing
        await self._statements.stop()


def _lock_name(run: str, owner: str, scope: str) -> str:
    return f"{run}\0{owner}\0{scope}"


class OwnedDialogues:
    """The journals of one owner."""

    def __init__(self, journal: DialogueJournal, owner: str) -> None:
        self._journal = journal
        self._owner = owner

    def hold(self, run: str, scope: str) -> AbstractAsyncContextManager["JournalPages"]:
        """Be the one who writes a dialogue; InProgress while somebody else is."""
        return self._journal.hold(run, self._owner, scope)


def _started(event: DialogueEvent) -> int:
    return event.at if isinstance(event, ConversationStarted) else 0


class JournalPages:
    """The journal of one dialogue, held by who writes it."""

    def __init__(self, journal: DialogueJournal, key: tuple[str, str, str], last: int) -> None:
        """`key` is run, owner and scope; `last` the number of the event written last."""
        self._journal = journal
        self._key = key
        self._last = last

    async def read(self) -> Sequence[DialogueEvent]:
        """All its events but the text of attempts, in order."""
        rows = await self._journal.fetch(_READ, (*self._key, TEXT_KIND))
        return [read_dialogue_event(body) for (body,) in rows]

    async def append(self, events: Sequence[DialogueEvent]) -> None:
        """Write these after the others."""
        args: list[Value] = []
        for event in events:
            self._last += 1
            body = write_dialogue_event(event)
            args += [*self._key, self._last, kind_of_event(event), body]
        await self._journal.write(args)
