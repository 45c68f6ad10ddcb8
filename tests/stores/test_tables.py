"""Every table of the schema is known to prune, backups, moves and exports, on both stores."""

import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from carnet.core.sealed_call import FORM
from carnet.ports.memory.memory import MemoryKey
from carnet.runtime.replay.export import export_lines
from carnet.stores import tables
from carnet.stores.database import Row, Value
from carnet.stores.open import Store
from tests.stores.conversations.test_conversations import ALICE, sent
from tests.stores.support.scenes import Place, a_claim, a_finish, a_wait, claimed, end_upkeep

OF_SQLITE = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
OF_POSTGRES = (
    "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
    " AND table_type = 'BASE TABLE' AND table_name <> 'migration_as_applied'"
)
ONLY_POSTGRES = {"wish", "change"}
DAY = 86_400
# What it takes to fill a table that belongs to a turn, beside what a call writes itself.
FILLED = {
    "receipt": "INSERT INTO receipt (turn, attempt, jws) VALUES (1, 1, 'a.b.c')",
    "task": "INSERT INTO task (turn, id, sender) VALUES (1, 'x', 's')",
    "step": "INSERT INTO step (turn, place, name, data, crc) VALUES (1, 0, 'a', '', 0)",
    "callback": "INSERT INTO callback (turn, place, url, created) VALUES (1, 0, 'u', 1)",
    "outbound": "INSERT INTO outbound (turn, fence, ordinal, child_turn, callee, dialect, depth,"
    " state) VALUES (1, 1, 0, 't', '@x@y', '', 1, 'done')",
}


_READ = re.compile(r"\b(?:FROM|JOIN) ([a-z_]+)")
_FORGETS = re.compile(r"\bDELETE FROM ([a-z_]+)")
VIEWS = {"run_by_name": "run"}


async def _export_run(store: Store) -> None:
    async for _ in export_lines(store.records, "r1", "credits"):
        pass


async def _export_memory(store: Store) -> None:
    await store.memory.texts(MemoryKey(1, "echo"))


async def _export_conversation(store: Store) -> None:
    conversation = await store.conversations.find(ALICE, "cnv_c1")
    assert conversation is not None
    await store.conversations.branch(conversation, last=None, limit=9)


EXPORTS: dict[tables.Exported, Callable[[Store], Awaitable[None]]] = {
    "run": _export_run,
    "memory": _export_memory,
    "conversation": _export_conversation,
}


@pytest.mark.usefixtures("store")
async def test_every_table_is_named_with_its_policy(place: Place) -> None:
    found = {name for (name,) in place.rows(OF_POSTGRES if place.postgres else OF_SQLITE)}
    named = {table.name for table in tables.TABLES}
    assert found == (named if place.postgres else named - ONLY_POSTGRES)
    assert len(named) == len(tables.TABLES)
    assert set(tables.MOVED) | set(tables.LEFT_BEHIND) == named


@pytest.mark.usefixtures("store")
async def test_what_has_a_number_is_counted_by_the_database(place: Place) -> None:
    if place.postgres:
        found = place.rows(
            "SELECT table_name FROM information_schema.columns WHERE table_schema ="
            " current_schema() AND column_name = 'n' AND is_identity = 'YES'"
        )
        assert {name for (name,) in found} == set(tables.NUMBERED)


async def test_what_is_exported_is_read_for_it_and_nothing_else_is(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_upkeep(store)
    await store.turns.finish(a_wait(claimed(await store.turns.claim(a_claim()))))
    await store.conversations.begin(sent("c1"))
    read: set[str] = set()
    database = store.records._database  # noqa: SLF001  the statements as they are
    fetch = database.fetch

    async def noted(sql: str, args: Sequence[Value] = ()) -> list[Row]:
        read.update([VIEWS.get(name, name) for name in _READ.findall(sql)])
        return await fetch(sql, args)

    monkeypatch.setattr(database, "fetch", noted)
    named = {table.name for table in tables.TABLES}
    for how, export in EXPORTS.items():
        read.clear()
        await export(store)
        marked = {table.name for table in tables.TABLES if table.exported == how}
        assert read & named == marked, how


async def test_a_prune_leaves_nothing_of_a_turn_behind(store: Store, place: Place) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    await store.turns.finish(a_wait(turn))
    for statement in FILLED.values():
        place.rows(statement.replace("'', 0)", "x'', 0)" if not place.postgres else "'', 0)"))
    await store.upkeep()
    of_turns = {*tables.WITH_EVENTS, *tables.WITH_TURN}
    full = {name for name in of_turns if place.rows(f"SELECT 1 FROM {name} WHERE turn = 1")}  # noqa: S608
    assert full == of_turns
    place.clock.advance(3 * DAY)
    store.expiry.teller = lambda _, __: lambda _: ()
    await store.upkeep()  # its time is over
    last = claimed(await store.turns.claim(a_claim("last", now=place.clock.wall_us())))
    await store.turns.finish(a_finish(last, now=place.clock.wall_us()))
    place.clock.advance(3 * DAY)
    await store.prune(turn_days=2, event_days=1)
    left = {name for name in of_turns if place.rows(f"SELECT 1 FROM {name} WHERE turn = 1")}  # noqa: S608
    assert left == set()
    assert place.rows("SELECT n FROM turn") == [(2,)]


def test_what_is_forgotten_by_a_rule_of_its_own_has_one() -> None:
    source = Path(tables.__file__).parent.rglob("*.py")
    rules = {name for file in source for name in _FORGETS.findall(file.read_text())}
    assert {table.name for table in tables.TABLES if table.forgotten == "own"} <= rules


async def test_a_proof_outlives_the_words(store: Store, place: Place) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    await store.turns.finish(a_finish(turn))
    place.rows(FILLED["outbound"])
    place.clock.advance(3 * DAY)
    last = claimed(await store.turns.claim(a_claim("last", now=place.clock.wall_us())))
    await store.turns.finish(a_finish(last, now=place.clock.wall_us()))
    await store.prune(turn_days=30, event_days=1)
    assert place.rows("SELECT 1 FROM journal WHERE turn = 1") == []
    assert place.rows("SELECT child_turn FROM outbound") == [("t",)]


@pytest.mark.usefixtures("store")
async def test_the_forms_that_are_written_stand_in_the_store(place: Place) -> None:
    forms = dict(place.rows("SELECT name, value FROM meta WHERE name LIKE 'form%'"))
    assert forms == {tables.FORM_OF_CALLS: str(FORM), tables.FORM_OF_EVENTS: "2"}
