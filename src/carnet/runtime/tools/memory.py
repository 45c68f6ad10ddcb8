"""The memory of the person for whom a turn runs, at the agent that runs: in this process.

`OwnPast` is what she has said before, in her conversations.

Law 1. Whose it is comes from the turn's caller and from nothing else. A machine has none.
Law 2. What is written names the turn that wrote it, and the conversation that the turn is of. (Of a
       turn that another agent has called, the run leads to it.)
Law 3. Her conversations are for the agent that she asks herself, with a token of hers: for none
       that was called by another, here or elsewhere.
"""

import asyncio
import builtins
from collections.abc import Callable, Sequence
from typing import Final

from carnet.core.call import Call
from carnet.core.memory.text import MOST_LINE, LineHit
from carnet.ports.calls.conversations import (
    MOST_SEARCHED,
    ConversationFilter,
    Conversations,
    KeptConversation,
    KeptMessage,
)
from carnet.ports.memory.memory import Memories, MemoryFile, MemoryKey, MemoryWrite
from carnet.ports.memory.past import PastHit
from carnet.ports.trust.people import People
from carnet.ports.world.clock import Clock
from carnet.wire.grammar.times import when

MOST_CONVERSATIONS: Final = 20  # that are found at a time
WITH_TEXT: Final = 5  # of them are looked into
LOOKED_AT: Final = 20  # messages of each, the newest

Words = Callable[[str], Sequence[str]]  # those of a text, as conversations are found by them


class OwnMemory:
    """What one turn may read and write."""

    def __init__(
        self,
        memories: Memories,
        key: MemoryKey,
        turn: int | None,
        clock: Clock,
        conversation: str | None = None,
    ) -> None:
        """`turn` is the number of its row; None where no gateway has asked.

        `conversation` is the one of the person that the turn answers in, by its id.
        """
        self._conversation = conversation
        self._memories = memories
        self._key = key
        self._turn = turn
        self._clock = clock

    async def read(self, path: str, /) -> str | None:
        """What a file says; None if there is none."""
        found = await self._memories.read(self._key, path)
        return None if found is None else found.text

    async def list(self, folder: str, /) -> builtins.list[MemoryFile]:
        """The files in a folder and below it."""
        files = await self._memories.list(self._key)
        return [file for file in files if file.path.startswith(folder)]

    async def search(self, question: str, /) -> builtins.list[LineHit]:
        """The lines that hold some words."""
        return await self._memories.search(self._key, question)

    async def write(self, path: str, text: str, /) -> MemoryFile:
        """Write a file; raises a CarnetError where that is refused."""
        now = self._clock.wall_us()
        asked = MemoryWrite(
            path=path,
            data=text.encode(),
            now=now,
            turn=self._turn,
            conversation=self._conversation,
        )
        return await self._memories.write(self._key, asked)


class MemoryOfCalls:
    """Finds the memory that belongs to a call of one agent."""

    def __init__(self, memories: Memories, agent: str, clock: Clock) -> None:
        """`agent` is the name of the one that answers."""
        self._memories = memories
        self._agent = agent
        self._clock = clock

    def __call__(self, call: Call) -> OwnMemory | None:
        """That of the person who calls, or for whom somebody does; None for a machine."""
        person = call.caller.person
        if person is None:
            return None
        key = MemoryKey(person, self._agent)
        thread = call.ask.thread
        conversation = None if thread is None else thread.conversation
        return OwnMemory(self._memories, key, call.record.n, self._clock, conversation)


class MemoryOfActors:
    """Finds the memory for who asks a loop directly, past every gateway: at one agent."""

    def __init__(self, memories: Memories, people: People, agent: str, clock: Clock) -> None:
        """`agent` is the one whose memory that is."""
        self._memories = memories
        self._people = people
        self._agent = agent
        self._clock = clock

    def __call__(self, actor: str) -> OwnMemory | None:
        """That of the person of this name; None for a machine, whose name is none of hers."""
        person = self._people.find(actor)
        if person is None:
            return None
        return OwnMemory(self._memories, MemoryKey(person.n, self._agent), None, self._clock)


class OwnPast:
    """The conversations of one person, but for the one that she is in."""

    def __init__(
        self, conversations: Conversations, owner: str, words: Words, *, present: str | None
    ) -> None:
        """`present` is the one that the turn answers in, by its id."""
        self._conversations = conversations
        self._owner = owner
        self._words = words
        self._present = present

    async def search(self, question: str, /) -> Sequence[PastHit]:
        """Those that hold all words; the newest first."""
        words = tuple(self._words(question)[:MOST_SEARCHED])
        if not words:
            return ()
        page = await self._conversations.list(
            self._owner, ConversationFilter(words=words), limit=MOST_CONVERSATIONS + 1, before=None
        )
        found = [each for each in page.found if each.id != self._present]
        hits = [await self._hit(each, words) for each in found[:WITH_TEXT]]
        return hits + [_named(each) for each in found[WITH_TEXT:MOST_CONVERSATIONS]]

    async def _hit(self, conversation: KeptConversation, words: Sequence[str]) -> PastHit:
        branch = await self._conversations.branch(conversation, last=None, limit=LOOKED_AT)
        return _named(conversation, await asyncio.to_thread(_part, branch, words))


class PastOfCalls:
    """Finds the conversations that a call of an agent may search."""

    def __init__(self, conversations: Conversations, words: Words) -> None:
        self._conversations = conversations
        self._words = words

    def __call__(self, call: Call) -> OwnPast | None:
        """Those of the person who asks the agent herself; None for everybody else."""
        caller, thread = call.caller, call.ask.thread
        is_called = call.carnet.depth > 0 or caller.origin is not None
        if caller.person is None or caller.token is None or caller.standing or is_called:
            return None
        present = None if thread is None else thread.conversation
        return OwnPast(self._conversations, caller.owner, self._words, present=present)


def _named(conversation: KeptConversation, text: str = "") -> PastHit:
    return PastHit(
        conversation=conversation.id,
        title=conversation.title or "",
        at=when(conversation.updated) or "",
        text=text,
    )


def _part(branch: Sequence[KeptMessage], words: Sequence[str]) -> str:
    """The line of some messages that holds most of the words; the first of several."""
    lines = [line for message in branch for line in message.text.splitlines()]
    counts = [sum(word in line.casefold() for word in words) for line in lines]
    most = max(counts, default=0)
    return lines[counts.index(most)].strip()[:MOST_LINE] if most else ""
