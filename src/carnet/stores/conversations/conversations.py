"""Conversations over a database: the port `carnet.ports.calls.conversations`.

Law 1. What is said, the place of its answer and the mark that it is being given are one write.
       Of two who say something at once one is first; the other is told that it has to wait.
Law 2. No statement reads more than it shows: what is asked for is found by an index, of its owner.
"""

# ruff: noqa: S608  the texts are put together from our own words; every value is an argument

import asyncio
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from carnet.core.chain.turn import Turn
from carnet.core.messages.events import Text, write_events
from carnet.core.people.identity import person_of
from carnet.errors import (
    ConversationBusy,
    ConversationFull,
    ConversationNotFound,
    Deleted,
    IdempotencyMismatch,
    MessageNotFound,
    TooManyConversations,
)
from carnet.faults import point
from carnet.ports.calls.conversations import (
    AnswerPlace,
    BegunAnswer,
    KeptConversation,
    KeptMessage,
    NewAnswer,
    NewMessage,
    OpenAnswer,
    Settled,
)
from carnet.ports.world.outbox import Delivery
from carnet.stores.conversations import statements as sql
from carnet.stores.conversations.deletion import ConversationDeletion
from carnet.stores.conversations.rows import (
    CONVERSATION_WIDTH,
    DELETED,
    read_conversation,
    read_message,
)
from carnet.stores.conversations.search import ConversationSearch
from carnet.stores.conversations.words import TEXT, TITLE, index, words_of
from carnet.stores.database import Database, Row, Statement, Value, marks
from carnet.stores.outbox import put_some
from carnet.stores.turn.row import read_turn

MOST_CONVERSATIONS: Final = 10_000  # of one owner
MOST_MESSAGES: Final = 2_000  # of one conversation
MOST_BYTES: Final = 1024 * 1024  # of messages that are read at a time
LONG: Final = 16_384  # characters whose words are looked for beside the event loop


def client_hash(owner: str, client_id: str | None) -> bytes | None:
    """What a client's own id is known by."""
    if client_id is None:
        return None
    return blake2b(f"{owner}\0{client_id}".encode(), digest_size=16).digest()


class StoredConversations:
    """The conversations of one store."""

    def __init__(self, database: Database, key: bytes) -> None:
        """`key` is what the digests of deleted turns are keyed with."""
        self._database = database
        self.deletion = ConversationDeletion(database, key)
        self._search = ConversationSearch(database)
        self.list = self._search.list
        self.most_conversations = MOST_CONVERSATIONS
        self.most_messages = MOST_MESSAGES

    async def begin(self, new: NewMessage) -> BegunAnswer:
        """Keep what was said and a place for the answer, which is being given from now on."""
        sent = await self._sent(new)  # nearly always nothing is
        if sent is not None:
            return sent
        parent = await self._parent(new)
        id = new.conversation or new.new_conversation
        statements = [*self._begins(new, id, parent), *await _indexed(new, id)]
        point("message.before_keep")
        counts = await self._database.transact(statements)
        point("message.kept")
        if not counts[1]:
            return await self._sent(new) or await self._refuse(new)
        return await self._begun(new.owner, new.id, is_new=True)

    def _begins(
        self, new: NewMessage, id: str, parent: tuple[str, tuple[Value, ...]]
    ) -> list[Statement]:
        owner, answer, now = new.owner, new.answer, new.now
        hashed = client_hash(owner, new.client_id)
        form, above = parent
        content = (write_events([Text(new.content)]), new.metadata)
        is_new = new.conversation is None
        if is_new:
            row = (id, owner, new.agent, new.title, new.trigger, now, now, answer)
            bounds = (owner, owner, self.most_conversations, owner, hashed)
            first: Statement = (sql.NEW, (*row, *bounds))
        else:
            taken = (answer, now, new.agent, id, owner, self.most_messages, owner, hashed)
            first = (f"{sql.TAKE} AND {sql.NOT_SENT}", taken)
        client = (new.client_id, hashed, new.digest, now)
        return [
            first,
            (sql.SAY.format(parent=form), (new.id, *above, *content, *client, id, owner, answer)),
            (sql.PLACE, (answer, new.agent, b"", new.run, new.turn, now, new.id, owner, answer)),
            (sql.HEAD, (answer, 2, id, owner, answer, answer)),
            (sql.LET_GO, (id, answer, answer)),
            *([(sql.UNBORN, (id,))] if is_new else []),
        ]

    async def _parent(self, new: NewMessage) -> tuple[str, tuple[Value, ...]]:
        """What a message follows: how a statement names it, and its arguments."""
        if new.edits is None or new.conversation is None:
            return "c.head", ()
        conversation = await self.find(new.owner, new.conversation)
        found = None if conversation is None else await self.message(conversation, new.edits)
        if found is None or found.role != "user":
            raise ConversationNotFound if conversation is None else MessageNotFound
        return "CAST(? AS BIGINT)", (found.parent,)

    async def _sent(self, new: NewMessage) -> BegunAnswer | None:
        """What was sent under the same id of the client."""
        if new.client_id is None:
            return None
        hashed = client_hash(new.owner, new.client_id)
        rows = await self._database.fetch(sql.SENT, (new.owner, hashed))
        if not rows:
            return None
        ((id, digest, state),) = rows
        if state == "deleted":
            raise Deleted
        begun = await self._begun(new.owner, id, is_new=False)
        is_there = new.conversation in {None, begun.conversation.id}
        if digest != new.digest or not is_there:
            raise IdempotencyMismatch
        return begun

    async def _begun(self, owner: str, id: str, *, is_new: bool) -> BegunAnswer:
        rows = await self._database.fetch(sql.BOTH, (id, owner))
        if not rows:
            raise ConversationNotFound
        question = read_message(rows[0][CONVERSATION_WIDTH:])
        answers = await self._database.fetch(sql.FIRST, (question.conversation, question.n))
        if not answers:
            raise MessageNotFound
        return BegunAnswer(read_conversation(rows[0]), question, read_message(answers[0]), is_new)

    async def _refuse(self, new: NewMessage) -> BegunAnswer:
        """Why nothing was written."""
        if new.conversation is None:
            raise TooManyConversations(limit=self.most_conversations)
        found = await self.find(new.owner, new.conversation)
        if found is None:
            raise ConversationNotFound
        if found.size >= self.most_messages:
            raise ConversationFull(limit=self.most_messages)
        raise ConversationBusy

    async def begin_answer(self, new: NewAnswer) -> BegunAnswer:
        """Keep a place for another answer, which is being given from now on."""
        conversation = await self.find(new.owner, new.conversation)
        if conversation is None:
            raise ConversationNotFound
        question = await self.message(conversation, new.to)
        if question is None or question.role != "user":
            raise MessageNotFound
        if conversation.size >= self.most_messages:
            raise ConversationFull(limit=self.most_messages)
        is_there = await self.message(conversation, new.id) is not None
        own, now = (new.conversation, new.owner), new.now
        place: Statement = (
            sql.PLACE,
            (new.id, new.agent, b"", new.run, new.turn, now, new.to, new.owner, new.id),
        )
        if is_there:
            anew = (new.agent, new.run, new.turn, new.id, new.owner, *own, new.id)
            place = (sql.ANEW, anew)
        point("message.before_keep")
        take = (new.id, now, new.agent, *own, self.most_messages, new.id)
        _, taken, *_ = await self._database.transact(
            [
                (sql.LOCK, (new.id, new.owner)),
                (f"{sql.TAKE} AND {sql.NOT_WHOLE}", take),
                place,
                (sql.HEAD, (new.id, 0 if is_there else 1, *own, new.id, new.id)),
                (sql.ASKED, ("unanswered", new.id, new.owner)),
            ]
        )
        point("message.kept")
        if not taken:
            raise ConversationBusy
        found = await self.find(new.owner, new.conversation)
        answer = None if found is None else await self.message(found, new.id)
        if found is None or answer is None:
            raise MessageNotFound
        return BegunAnswer(found, question, answer, is_new=True)

    async def settle(
        self, owner: str, answer: str, settled: Settled, notices: Sequence[Delivery] = ()
    ) -> None:
        """Write an answer down, and who is told; it is not being given any more."""
        used = (settled.tokens_in or 0, settled.tokens_out or 0, settled.cost or 0)
        counted = [value for amount in used for value in (amount, answer)]
        rows = await self._database.fetch(sql.BOTH, (answer, owner))
        if not rows or rows[0][DELETED] is not None:
            return
        id = rows[0][1]
        words = await _words(settled.text)
        amounts = (settled.tokens_in, settled.tokens_out, settled.cost)
        row = (settled.parts, settled.state, int(settled.waits), settled.code, *amounts)
        unread = (answer, settled.state, int(settled.waits), int(not settled.is_seen))
        point("message.before_settle")
        await self._database.transact(
            [
                (sql.LOCK, (answer, owner)),
                (sql.SETTLE, (settled.now, *unread, answer, *counted, answer, owner)),
                (sql.ANSWERED, (*row, settled.now, answer, owner)),
                (sql.ASKED, (settled.state, answer, owner)),
                *_relayed(owner, answer, settled),
                *index(owner, id, words, TEXT),
                *[each for notice in notices for each in put_some(notice, settled.now)],
            ]
        )
        point("message.settled")

    async def place_of(self, owner: str, answer: KeptMessage) -> AnswerPlace | None:
        """Where an answer of hers is given that has not been written down; None for another."""
        rows = await self._database.fetch(sql.ANSWER_PLACE, (answer.id, owner))
        for id, cause, before in rows:
            return AnswerPlace(id, is_triggered=cause != "message" and before is None)
        return None

    async def release(self, owner: str, answer: str, code: str | None) -> None:
        """Note that an answer is not being given: nothing of it was said."""
        of = (answer, owner)
        await self._database.transact(
            [
                (f"{sql.RELEASE} AND answering = ?", (owner, *of, answer)),
                (sql.CODE, (code, *of)),
            ]
        )

    async def find(self, owner: str, conversation: str) -> KeptConversation | None:
        """One of hers. Raises Deleted for one that she has deleted."""
        rows = await self._database.fetch(sql.FIND, (conversation, owner))
        if not rows:
            return None
        if rows[0][DELETED] is not None:
            raise Deleted
        return read_conversation(rows[0])

    async def message(self, conversation: KeptConversation, message: str) -> KeptMessage | None:
        """One message of a conversation."""
        if "\0" in message:  # which is in no id, and not every database can be asked for
            return None
        rows = await self._database.fetch(sql.MESSAGE, (message, conversation.n))
        return read_message(rows[0]) if rows else None

    async def branch(
        self, conversation: KeptConversation, *, last: int | None, limit: int
    ) -> list[KeptMessage]:
        """The messages that lead to one (its number), that one first; fewer if they are long."""
        first = conversation.head if last is None else last
        if first is None:
            return []
        sizes = await self._database.fetch(sql.BRANCH, (first, conversation.n, limit))
        numbers, room = list[Value](), MOST_BYTES
        for n, size in sizes:
            room -= size
            if numbers and room < 0:
                break
            numbers.append(n)
        if not numbers:
            return []
        rows = await self._database.fetch(sql.NUMBERED.format(marks(len(numbers))), numbers)
        found = {row[0]: read_message(row) for row in rows}
        return [found[n] for n in numbers if n in found]

    async def beside(
        self, conversation: KeptConversation, parents: Sequence[int | None]
    ) -> list[tuple[int | None, str]]:
        """What follows some messages, in any branch: the number of each, and the id after it."""
        known: list[Value] = [parent for parent in parents if parent is not None]
        found: list[Row] = []
        if known:
            query = sql.BESIDE.format(marks(len(known)))
            found += await self._database.fetch(query, (conversation.n, *known))
        if None in parents:
            found += await self._database.fetch(sql.FIRST_ONES, (conversation.n,))
        return [(parent, id) for parent, id in found]

    async def turn_of(self, owner: str, answer: KeptMessage) -> Turn | None:
        """The turn that an answer is given in, if it has begun.

        Its run and turn are not enough: somebody else may have chosen the same.
        """
        person = person_of(owner)
        whose = "t.person IS NULL AND t.actor = ?" if person is None else "t.person = ?"
        args = (answer.run, answer.turn, owner if person is None else person)
        rows = await self._database.fetch(sql.TURN.format(whose), args)
        return read_turn(rows[0]) if rows else None

    async def change(
        self,
        conversation: KeptConversation,
        *,
        title: str | None = None,
        archived: bool | None = None,
        unread: bool | None = None,
        head: int | None = None,
        now: int,
    ) -> KeptConversation:
        """Rename it, put it away, mark it, or show another branch."""
        changes: dict[str, Value] = {}
        if archived is not None:
            changes["archived"] = now if archived else None
        if unread is not None:
            changes["unread"] = max(1, conversation.unread) if unread else 0
        changes |= {} if title is None else {"title": title}
        changes |= {} if head is None else {"head": head}
        own, statements = (conversation.id, conversation.owner), list[Statement]()
        if changes:
            sets = ", ".join([f"{name} = ?" for name in changes])
            update = f"UPDATE conversation SET {sets} WHERE {sql.OWN}"
            statements.append((update, (*changes.values(), *own)))
        if title is not None:
            of_title = "DELETE FROM message_word WHERE conversation = ? AND source = ?"
            statements.append((of_title, (conversation.n, TITLE)))
            statements += index(own[1], own[0], words_of(title), TITLE)
        if statements:
            await self._database.transact(statements)
        found = await self.find(conversation.owner, conversation.id)
        if found is None:
            raise ConversationNotFound
        return found

    async def given_up(
        self, *, after: int, limit: int, begun: int, ended: int
    ) -> Sequence[OpenAnswer]:
        """Answers that should be being given, of everybody, and are not, by their numbers."""
        rows = await self._database.fetch(sql.GIVEN, (after, begun, ended, limit))
        return _open(rows, is_given=True)

    async def gone_on(
        self, *, after: int, limit: int, most: int
    ) -> tuple[Sequence[OpenAnswer], int]:
        """Of the next `most` answers that wait those whose turns have ended; and where to go on."""
        ((count, last),) = await self._database.fetch(sql.LAST_WAITING, (after, most))
        if not count:
            return [], 0
        rows = await self._database.fetch(sql.WAITING, (after, last, limit))
        found = _open(rows, is_given=False)
        if len(found) == limit:
            return found, found[-1].n
        return found, last if count == most else 0


def _open(rows: Sequence[Row], *, is_given: bool) -> list[OpenAnswer]:
    return [
        OpenAnswer(n, owner, id, since, is_given, read_message(tuple(row)))
        for n, owner, id, since, *row in rows
    ]


def _relayed(owner: str, answer: str, settled: Settled) -> list[Statement]:
    """What writes down what others have said who were mentioned; their ids follow its own."""
    statements: list[Statement] = []
    before, now = answer, settled.now
    for place, each in enumerate(settled.relayed, 1):
        id, state = f"{answer}.{place}", "whole" if each.code is None else "failed"
        row = (id, each.author, each.parts, state, each.code, now, now, before, owner)
        # One that has waited may have said some of them before: those are counted already.
        head = (sql.RELAYED_HEAD, (id, answer, owner, before))
        statements += [(sql.RELAYED, row), head]
        before = id
    return statements


async def _words(text: str) -> tuple[str, ...]:
    return await asyncio.to_thread(words_of, text) if len(text) > LONG else words_of(text)


async def _indexed(new: NewMessage, id: str) -> list[Statement]:
    words = index(new.owner, id, await _words(new.content), TEXT)
    if new.conversation is None:
        words += index(new.owner, id, words_of(new.title), TITLE)
    return words
