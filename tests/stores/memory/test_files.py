"""The contract of memory, over both databases."""

import asyncio

import pytest

from carnet.core.memory.text import LineHit
from carnet.errors import InvalidRequest, MemoryChanged, MemoryFull, PersonNotFound
from carnet.ports.memory.memory import (
    MOST_FILE_BYTES,
    ErasedFile,
    MemoryBounds,
    MemoryFile,
    MemoryKey,
    MemoryWrite,
)
from carnet.ports.trust.people import NewPerson
from carnet.stores.open import Store
from tests.stores.support.scenes import NOW, Place, a_claim

AGENT = "assistant"


class Scene:
    """Two people, and what an agent keeps for them."""

    def __init__(self, store: Store, alice: int, bob: int) -> None:
        self.store = store
        self.memory = store.memory
        self.alice = MemoryKey(alice, AGENT)
        self.bob = MemoryKey(bob, AGENT)
        self._now = NOW

    async def write(
        self,
        path: str,
        text: str,
        key: MemoryKey | None = None,
        *,
        turn: int | None = None,
        conversation: str | None = None,
        expected: int | None = None,
    ) -> MemoryFile:
        self._now += 1
        asked = MemoryWrite(
            path=path,
            data=text.encode(),
            now=self._now,
            turn=turn,
            conversation=conversation,
            expected=expected,
        )
        return await self.memory.write(key or self.alice, asked)

    async def text(self, path: str, version: int | None = None) -> str | None:
        found = await self.memory.read(self.alice, path, version)
        return None if found is None else found.text

    async def kept(self, path: str) -> list[int]:
        return [one.version for one in await self.memory.versions(self.alice, path)]


@pytest.fixture
async def scene(store: Store) -> Scene:
    people = [await store.people.add(NewPerson(name=name), NOW) for name in ("alice", "bob")]
    return Scene(store, *[person.n for person in people])


async def test_every_write_keeps_the_former(scene: Scene) -> None:
    assert await scene.write("a.md", "one") == MemoryFile(
        path="a.md", version=1, size=3, at=NOW + 1
    )
    assert (await scene.write("a.md", "two")).version == 2
    assert [await scene.text("a.md"), await scene.text("a.md", 1)] == ["two", "one"]
    assert await scene.text("a.md", 3) is None
    assert await scene.text("b.md") is None
    newest = (await scene.memory.versions(scene.alice, "a.md"))[0]
    assert (newest.version, newest.writer, newest.conversation) == (2, "person", None)


async def test_what_stands_there_already_is_no_write(scene: Scene) -> None:
    first = await scene.write("a.md", "one")
    assert await scene.write("a.md", "one") == first
    assert await scene.kept("a.md") == [1]


async def test_a_memory_begins_with_a_starter_that_is_kept_nowhere(
    scene: Scene, place: Place
) -> None:
    (listed,) = await scene.memory.list(scene.alice)
    assert (listed.path, listed.version, listed.at) == ("AGENT.md", 0, None)
    assert await scene.text("AGENT.md") == scene.memory.bounds.starter
    assert [each.path for each in await scene.memory.search(scene.alice, "read this file")]
    assert place.rows("SELECT COUNT(*) FROM memory") == [(0,)]
    await scene.write("AGENT.md", "mine")
    assert await scene.text("AGENT.md") == "mine"
    assert await scene.memory.search(scene.alice, "read this file") == []


async def test_nobody_finds_what_is_anothers(scene: Scene) -> None:
    await scene.write("a.md", "alice's needle")
    other_agent = MemoryKey(scene.alice.person, "other")
    for key in (scene.bob, other_agent):
        assert [file.path for file in await scene.memory.list(key)] == ["AGENT.md"]
        assert await scene.memory.read(key, "a.md") is None
        assert await scene.memory.versions(key, "a.md") == []
        assert await scene.memory.search(key, "needle") == []
        assert await scene.memory.undo(key, "a.md", NOW) is None
        assert await scene.memory.delete(key, "a.md", NOW) == 0
        assert await scene.memory.delete(key, None, NOW) == 0
    await scene.write("a.md", "bob's", scene.bob)
    assert await scene.text("a.md") == "alice's needle"
    assert await scene.memory.search(scene.alice, "needle") == [
        LineHit("a.md", 1, "alice's needle")
    ]
    (folder,) = await scene.memory.folders(scene.bob.person)
    assert (folder.agent, folder.files, folder.bytes) == (AGENT, 1, 5)


async def test_undo_goes_back_step_by_step_and_keeps_all(scene: Scene) -> None:
    for text in ("one", "two", "three"):
        await scene.write("a.md", text)
    undo = scene.memory.undo
    assert (await undo(scene.alice, "a.md", NOW)).version == 4  # type: ignore[union-attr]
    assert await scene.text("a.md") == "two"
    await undo(scene.alice, "a.md", NOW)
    assert await scene.text("a.md") == "one"
    assert await undo(scene.alice, "a.md", NOW) is None
    await undo(scene.alice, "a.md", NOW, to=3)
    assert await scene.text("a.md") == "three"
    await scene.write("a.md", "six")
    await undo(scene.alice, "a.md", NOW)
    assert await scene.text("a.md") == "three"
    await undo(scene.alice, "a.md", NOW)
    assert await scene.text("a.md") == "two"
    assert await undo(scene.alice, "a.md", NOW, to=99) is None


async def test_paths_that_differ_in_capitals_or_are_a_folder_are_refused(scene: Scene) -> None:
    await scene.write("Notes/a.md", "x")
    for path in ("notes/A.md", "Notes/A.md", "Notes", "notes", "Notes/a.md/b"):
        with pytest.raises(InvalidRequest, match="path"):
            await scene.write(path, "y")
    await scene.write("Notes/b.md", "z")
    await scene.write("notes", "bob's", scene.bob)


async def test_a_memory_holds_so_many_files_and_bytes(scene: Scene) -> None:
    scene.memory.bounds = MemoryBounds(files=2, bytes=10)
    await scene.write("a.md", "12345")
    await scene.write("b.md", "123")
    with pytest.raises(MemoryFull, match="2 files"):
        await scene.write("c.md", "1")
    with pytest.raises(MemoryFull, match="10 bytes in all"):
        await scene.write("b.md", "123456")
    await scene.write("b.md", "54321")
    await scene.write("c.md", "1234567890", scene.bob)
    assert [file.size for file in await scene.memory.list(scene.alice)][1:] == [5, 5]
    scene.memory.bounds = MemoryBounds()
    with pytest.raises(MemoryFull, match="of one file"):
        await scene.write("d.md", "x" * (MOST_FILE_BYTES + 1))


async def test_who_writes_at_once_does_not_pass_the_bounds_together(scene: Scene) -> None:
    scene.memory.bounds = MemoryBounds(files=4)
    writes = [scene.write(f"{n}.md", "x") for n in range(8)]
    results = await asyncio.gather(*writes, return_exceptions=True)
    assert sum(isinstance(each, MemoryFull) for each in results) == 4
    assert len(await scene.memory.list(scene.alice)) == 5  # and the starter


async def test_of_those_who_changed_the_same_version_one_has(scene: Scene) -> None:
    await scene.write("a.md", "one")
    writes = [scene.write("a.md", f"by {n}", expected=1) for n in range(4)]
    results = await asyncio.gather(*writes, return_exceptions=True)
    assert sum(isinstance(each, MemoryChanged) for each in results) == 3
    with pytest.raises(MemoryChanged):
        await scene.write("b.md", "not there", expected=1)


async def test_the_oldest_versions_are_forgotten(scene: Scene) -> None:
    scene.memory.bounds = MemoryBounds(versions=3, former_bytes=1000)
    for text in ("1", "2", "3", "4", "5"):
        await scene.write("a.md", text)
    assert await scene.kept("a.md") == [5, 4, 3]
    scene.memory.bounds = MemoryBounds(versions=20, former_bytes=25)
    for text in "abcd":
        await scene.write("b.md", text * 10)
    assert await scene.kept("b.md") == [4, 3, 2]
    assert await scene.kept("a.md") == [5]  # what stands is never forgotten


async def test_a_version_says_which_turn_and_conversation_wrote_it(
    scene: Scene, place: Place
) -> None:
    turn = await written_turn(scene, place, "r1")
    keep_conversation(place, 7, scene.alice)
    await scene.write("a.md", "by the agent", turn=turn, conversation="conversation-7")
    (version,) = await scene.memory.versions(scene.alice, "a.md")
    assert (version.writer, version.conversation) == ("agent", "conversation-7")
    assert (version.run, version.turn) == ("r1", "r1.t0.echo")
    keep_conversation(place, 8, scene.bob)
    await scene.write("a.md", "in whose?", turn=turn, conversation="conversation-8")
    newest, *_ = await scene.memory.versions(scene.alice, "a.md")
    assert newest.conversation is None  # it is not hers


async def written_turn(scene: Scene, place: Place, name: str) -> int:
    """A turn; the number of its row."""
    await scene.store.turns.claim(a_claim(name))
    ((n,),) = place.rows("SELECT t.n FROM turn t JOIN run r ON r.n = t.run WHERE r.id = ?", name)
    return int(n)


def keep_conversation(place: Place, n: int, key: MemoryKey) -> str:
    """A conversation of a person; its id."""
    place.rows(
        "INSERT INTO conversation (n, id, owner, agent, cause, created, updated)"
        " VALUES (?, ?, ?, 'assistant', 'message', 1, 1)",
        *(n, f"conversation-{n}", f"person:{key.person}"),
    )
    return f"conversation-{n}"


async def test_what_a_conversation_wrote_is_erased_and_what_came_after_is_listed(
    scene: Scene, place: Place
) -> None:
    """R27: also what an agent wrote that was called in it, and what was brought back of it."""
    turn = await written_turn(scene, place, "r1")
    below = await written_turn(scene, place, "r2")  # of an agent that was called in it
    one = keep_conversation(place, 7, scene.alice)
    other = keep_conversation(place, 8, scene.alice)
    await scene.write("a.md", "before")
    await scene.write("a.md", "canary", turn=turn, conversation=one)
    await scene.write("a.md", "after", conversation=other)
    await scene.write("b.md", "canary", turn=below)
    await scene.write("c.md", "canary", turn=turn, conversation=one)
    await scene.write("c.md", "mine")
    await scene.memory.undo(scene.alice, "c.md", NOW)
    await scene.write("d.md", "of another", conversation=other)
    erased = await scene.memory.erase(scene.alice.person, 7, NOW, [turn, below])
    assert list(erased) == [
        ErasedFile(agent=AGENT, path="a.md", erased=(2,), later=(3,)),
        ErasedFile(agent=AGENT, path="b.md", erased=(1,), later=()),
        ErasedFile(agent=AGENT, path="c.md", erased=(1, 3), later=(2,)),
    ]
    texts = {file.path: file.text for file in await scene.memory.texts(scene.alice)}
    del texts["AGENT.md"]
    assert texts == {"a.md": "after", "c.md": "mine", "d.md": "of another"}
    kept = place.rows("SELECT data FROM memory_version WHERE data IS NOT NULL")
    assert b"canary" not in [bytes(data) for (data,) in kept]
    assert await scene.memory.erase(scene.alice.person, 7, NOW) == []
    assert await scene.memory.erase(scene.bob.person, 8, NOW) == []
    assert await scene.text("d.md") == "of another"
    marked = [one.erased for one in await scene.memory.versions(scene.alice, "a.md")]
    assert marked == [None, NOW, None]


async def test_of_what_is_deleted_nothing_is_left(scene: Scene, place: Place) -> None:
    for text in ("one", "two", "three"):
        await scene.write("a.md", text)
    await scene.write("b.md", "x")
    assert await scene.memory.delete(scene.alice, "a.md", NOW, version=3) == 1
    assert await scene.text("a.md") == "two"
    assert await scene.memory.delete(scene.alice, "a.md", NOW, version=3) == 0
    assert await scene.memory.delete(scene.alice, "a.md", NOW) == 3
    assert await scene.text("a.md") is None
    assert await scene.memory.delete(scene.alice, None, NOW) == 1
    assert place.rows("SELECT COUNT(*) FROM memory") == [(0,)]
    assert place.rows("SELECT COUNT(*) FROM memory_version") == [(0,)]


async def test_with_a_person_her_memory_ends_and_is_forgotten_in_time(
    scene: Scene, place: Place
) -> None:
    await scene.write("a.md", "canary")
    await scene.write("b.md", "bob's", scene.bob)
    alice = scene.store.people.find("alice")
    assert alice is not None
    things = await scene.store.people.belongings(alice)
    assert [(thing.kind, thing.name) for thing in things] == [("memory", "assistant/a.md")]
    ended = await scene.store.people.end("alice", NOW)
    assert ended is not None
    assert [(thing.kind, thing.name) for thing in ended.things] == [("memory", "assistant/a.md")]
    assert await scene.text("a.md") is None
    with pytest.raises(PersonNotFound):
        await scene.write("a.md", "again")
    kept = place.rows("SELECT data FROM memory_version WHERE data IS NOT NULL")
    assert [bytes(data) for (data,) in kept] == [b"bob's"]
    place.rows("UPDATE person SET ended = 1 WHERE name = 'alice'")
    place.rows("UPDATE memory_version SET erased = 1 WHERE erased IS NOT NULL")
    await scene.store.prune(turn_days=30, event_days=7)
    assert place.rows("SELECT path FROM memory") == [("b.md",)]
    assert place.rows("SELECT COUNT(*) FROM memory_version") == [(1,)]
