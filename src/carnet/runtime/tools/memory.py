"""The memory of the person for whom a turn runs, at the agent that runs: in this process.

Law 1. Whose it is comes from the turn's caller and from nothing else. A machine has none.
Law 2. What is written names the turn that wrote it, and the conversation that the turn is of. (Of a
       turn that another agent has called, the run leads to it.)
"""

import builtins

from carnet.core.call import Call
from carnet.core.memory.text import LineHit
from carnet.ports.memory.memory import Memories, MemoryFile, MemoryKey, MemoryWrite
from carnet.ports.trust.people import People
from carnet.ports.world.clock import Clock


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
