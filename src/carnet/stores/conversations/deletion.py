"""Deleting a conversation: no word of it is left in the store (R27).

Law 1. From the first write on it is gone for its owner. The rest is done in small transactions; who
       dies in between leaves a smaller job, which is found and done. That write holds only while no
       answer is given in it: what begins a moment before would be written down after the rest.
Law 2. Of its turns the record of what they cost stays, and who called whom. What was asked and said
       gives way to a tombstone: when, how long, and a keyed digest, which tells nobody anything.
Law 3. A repeat of such a turn is told that it was deleted. It is not run, and nobody pays again.
Law 4. On SQLite what was deleted is written over, and the log is cut within a minute.
"""

# ruff: noqa: S608  the texts are put together from our own words; every value is an argument

from collections.abc import Sequence
from hmac import digest as hmac_digest
from typing import Final

from carnet.core.messages.events import Failed, write_events
from carnet.core.people.identity import person_of
from carnet.errors import Deleted
from carnet.faults import point
from carnet.ports.calls.conversations import KeptConversation
from carnet.stores.database import Database, Row, Statement, Value, marks
from carnet.stores.tables import WITH_EVENTS
from carnet.stores.triggers.firings import END_OF_DELETED
from carnet.stores.turn.row import ACCEPTED, EVENTS, OF_OURS, sealed_row
from carnet.wire.grammar import json
from carnet.wire.grammar.times import when

AT_A_TIME: Final = 20  # answers whose turns give way together
WORDS_AT_A_TIME: Final = 5_000  # a long conversation holds a million, and others wait to write
KEPT: Final = frozenset({"receipt"})  # a receipt is a proof, and holds no words

_CUT_LOG: Final = "PRAGMA wal_checkpoint(TRUNCATE)"

_GONE: Final = (
    "UPDATE conversation SET deleted = ?, title = NULL, agent = '', head = NULL, answering = NULL,"
    " unread = 0, archived = NULL, updated = ? WHERE n = ? AND owner = ? AND deleted IS NULL"
    " AND answering IS NULL"
)
_WORDS: Final = (
    "DELETE FROM message_word WHERE (owner, word, conversation, source) IN (SELECT owner, word,"
    " conversation, source FROM message_word WHERE conversation = ? LIMIT ?)"
)
# Where they lie: a planner that was told of few words would look through all of a conversation's
# for each that it deletes.
_WORDS_OF_POSTGRES: Final = (
    "DELETE FROM message_word WHERE ctid = ANY (ARRAY("
    "SELECT ctid FROM message_word WHERE conversation = ? LIMIT ?))"
)
_UNWIPED: Final = (
    "SELECT n, owner FROM conversation WHERE deleted IS NOT NULL AND size > 0 ORDER BY n LIMIT ?"
)
_LEFT: Final = "SELECT n, run FROM message WHERE conversation = ? AND state <> 'deleted' LIMIT ?"
_BLANK: Final = (
    "UPDATE message SET parts = ?, metadata = NULL, state = 'deleted', author = NULL, waits = 0,"
    " code = NULL, client_id = NULL, digest = NULL WHERE n IN ({})"
)
_WIPED: Final = "UPDATE conversation SET size = 0 WHERE n = ? AND deleted IS NOT NULL"
_RUNS: Final = f"SELECT DISTINCT t.run {OF_OURS} IN ({{}}) AND {{}}"
_TURNS: Final = (
    "SELECT n, digest, created, ended, state, wiped FROM turn WHERE run IN ({}) ORDER BY n"
)
_LOCK: Final = "SELECT n FROM turn WHERE n IN ({}) ORDER BY n"
_SIZES: Final = "SELECT turn, SUM(LENGTH(data)) FROM journal WHERE turn IN ({}) GROUP BY turn"
_JOURNAL: Final = (
    "INSERT INTO journal (turn, kind, first, last, data, crc) VALUES (?, ?, ?, ?, ?, ?)"
)
_WIPE_TURN: Final = (
    "UPDATE turn SET wiped = ?, code = ?, retryable = 0, digest = ?, facts = NULL, context = NULL,"
    " correlation = NULL WHERE n = ?"
)
_SEEN: Final = "UPDATE turn_seen SET correlation = NULL, code = ? WHERE turn IN ({})"
_CALLBACKS: Final = "DELETE FROM outbox WHERE task IN (SELECT id FROM task WHERE turn IN ({}))"
_SENT: Final = "UPDATE outbound SET sent = NULL WHERE turn IN ({})"  # a digest tells what was said
_NOTICES: Final = "DELETE FROM outbox WHERE turn IN ({})"


class ConversationDeletion:
    """Deletes conversations of one store."""

    def __init__(self, database: Database, key: bytes) -> None:
        """`key` is what digests are keyed with."""
        self._database = database
        self._key = key
        self._words = _WORDS_OF_POSTGRES if database.is_shared else _WORDS
        self._is_due = True  # of a process before, perhaps

    async def turns(self, conversation: KeptConversation) -> Sequence[tuple[int, str]]:
        """The turns of a conversation, and how each stands."""
        rows = await self._database.fetch(
            "SELECT DISTINCT run FROM message WHERE conversation = ? AND run IS NOT NULL",
            (conversation.n,),
        )
        found: list[tuple[int, str]] = []
        names = [name for (name,) in rows]
        for at in range(0, len(names), AT_A_TIME):
            turns = await self._turns_in(conversation.owner, names[at : at + AT_A_TIME])
            found += [(row[0], row[4]) for row in turns]
        return found

    async def delete(self, conversation: KeptConversation, now: int) -> bool:
        """Leave nothing of a conversation but that it was there; False while it is answered."""
        n, owner, id = conversation.n, conversation.owner, conversation.id
        statements: list[Statement] = [(_GONE, (now, now, n, owner))]
        person = person_of(owner)
        if person is not None:  # what has begun it says what was said
            ended = (Deleted.code, now, person, id, n, n, now)
            statements.append((END_OF_DELETED, ended))
        point("conversation.before_delete")
        gone, *_ = await self._transact(statements)
        point("conversation.deleted")
        if gone:
            await self._wipe(n, owner, now)
        return gone > 0

    async def finish(self, now: int) -> None:
        """Go on with what a process has left that died."""
        for n, owner in await self._database.fetch(_UNWIPED, (AT_A_TIME,)):
            await self._wipe(n, owner, now)

    async def scrub(self) -> None:
        """Cut the log, if something was deleted since; a server looks after its own."""
        if not self._is_due:
            return
        self._is_due = False
        if not self._database.is_shared:
            ((is_busy, *_),) = await self._database.fetch(_CUT_LOG)
            self._is_due = bool(is_busy)

    async def _wipe(self, n: int, owner: str, now: int) -> None:
        while left := await self._database.fetch(_LEFT, (n, AT_A_TIME)):
            names = sorted({run for _, run in left if run is not None})
            turns = await self._turns_in(owner, names)
            statements = await self._tombstones(turns, now)
            numbers: list[Value] = [number for number, _ in left]
            statements.append((_BLANK.format(marks(len(numbers))), (b"", *numbers)))
            await self._transact(statements)
            point("conversation.deleted")
        # With those that were being written down meanwhile.
        while (await self._transact([(self._words, (n, WORDS_AT_A_TIME))]))[0]:
            point("conversation.deleted")
        await self._transact([(_WIPED, (n,))])

    async def _turns_in(self, owner: str, names: Sequence[Value]) -> Sequence[Row]:
        """The turns of runs that the owner has begun, with those that were made in them."""
        if not names:
            return ()
        person = person_of(owner)
        whose = "t.person IS NULL AND t.actor = ?" if person is None else "t.person = ?"
        query = _RUNS.format(marks(len(names)), whose)
        found = await self._database.fetch(query, (*names, owner if person is None else person))
        runs: list[Value] = [run for (run,) in found]
        if not runs:
            return ()
        return await self._database.fetch(_TURNS.format(marks(len(runs))), runs)

    async def _tombstones(self, turns: Sequence[Row], now: int) -> list[Statement]:
        turns = [row for row in turns if row[5] is None]  # a digest is keyed once
        numbers: list[Value] = [row[0] for row in turns]
        if not numbers:
            return []
        listed = marks(len(numbers))
        rows = await self._database.fetch(_SIZES.format(listed), numbers)
        sizes: dict[int, int] = {turn: int(size) for turn, size in rows}
        # Who finishes what another has begun waits here, and takes the other's tombstones away.
        statements: list[Statement] = [(_LOCK.format(listed) + self._database.row_lock, numbers)]
        statements += [(sql.format(listed), numbers) for sql in (_CALLBACKS, _NOTICES, _SENT)]
        statements += [
            (f"DELETE FROM {table} WHERE turn IN ({listed})", numbers)
            for table in WITH_EVENTS
            if table not in KEPT
        ]
        for n, digest, created, ended, *_ in turns:
            keyed = hmac_digest(self._key, bytes(digest), "sha256")
            stone = {
                "deleted": when(now),
                "digest": keyed.hex(),
                "bytes": sizes.get(n, 0),
                "created": when(created),
                "ended": when(ended),
            }
            ending = write_events([Failed(Deleted.code)])
            statements += [
                (_JOURNAL, sealed_row(n, ACCEPTED, 0, 0, json.write(stone))),
                (_JOURNAL, sealed_row(n, EVENTS, 0, 0, ending)),
                (_WIPE_TURN, (now, Deleted.code, keyed, n)),
            ]
        statements.append((_SEEN.format(listed), (Deleted.code, *numbers)))
        return statements

    async def _transact(self, statements: Sequence[Statement]) -> Sequence[int]:
        """Run them; the log is cut after that. How many rows each has changed."""
        self._is_due = True
        return await self._database.transact(statements)
