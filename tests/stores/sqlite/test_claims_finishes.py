"""Appending and ending: only by the owner, and every amount in two places."""

import asyncio
import sqlite3

import asyncpg
import pytest

from carnet.core.messages.events import write_events
from carnet.errors import Internal
from carnet.ports.calls.turns import Debit, Fenced
from carnet.ports.world.records import LedgerEntry
from carnet.stores.open import Store
from tests.stores.support.scenes import (
    ALICE,
    ANSWER,
    BOB,
    Place,
    a_claim,
    a_finish,
    claimed,
    finished,
)


async def test_a_finish_freezes_the_costs(store: Store) -> None:
    first = claimed(await store.turns.claim(a_claim(turn="t0")))
    second = claimed(await store.turns.claim(a_claim(turn="t1")))
    debits = (Debit("agent:echo", 200), Debit("peer:globex.example", 50))
    child = await store.turns.finish(a_finish(second, debits=debits))
    assert (child.cost, child.run_cost, child.state) == (250, 250, "done")
    parent = await store.turns.finish(
        a_finish(first, debits=(Debit("agent:a", 1),), children_cost=250)
    )
    assert (parent.cost, parent.run_cost) == (251, 251)
    assert (parent.tokens_in, parent.tokens_out, parent.ended) == (3, 5, first.created + 1000)
    assert await store.turns.reload(first) == parent
    assert await store.turns.reload(second) == child


async def test_turns_of_one_run_that_end_together_see_one_another_in_order(store: Store) -> None:
    turns = [claimed(await store.turns.claim(a_claim(turn=f"t{i}"))) for i in range(5)]
    ended = await asyncio.gather(*[store.turns.finish(a_finish(turn)) for turn in turns])
    assert [turn.run_cost for turn in ended] == [200, 400, 600, 800, 1000]


async def test_the_events_of_an_answer_are_what_was_appended_and_finished(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    await store.turns.append(turn, 0, 1, b'[["text","a"],["text","b"]]')
    await store.turns.append(turn, 2, 2, b'[["text","c"]]')
    await store.turns.finish(a_finish(turn, first=3, last=4))
    assert await store.turns.events(turn) == [
        b'[["text","a"],["text","b"]]',
        b'[["text","c"]]',
        write_events(ANSWER),
    ]


async def test_a_late_writer_is_fenced(store: Store, place: Place) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    await store.turns.finish(a_finish(turn, state="unknown", debits=(), events=b""))
    again = claimed(await store.turns.claim(a_claim()))
    before = place.counts()
    with pytest.raises(Fenced):
        await store.turns.append(turn, 0, 0, b"[]")
    with pytest.raises(Fenced):
        await store.turns.finish(a_finish(turn))
    assert place.counts() == before
    assert await store.turns.reload(turn) == again


async def test_a_turn_ends_once(store: Store, place: Place) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    answers = await asyncio.gather(
        *[store.turns.finish(a_finish(turn)) for _ in range(3)], return_exceptions=True
    )
    assert [type(answer) for answer in answers[1:]] == [Fenced, Fenced]
    with pytest.raises(Fenced):
        await store.turns.finish(a_finish(turn))
    with pytest.raises(Fenced):
        await store.turns.append(turn, 2, 2, b"[]")
    assert place.rows("SELECT COUNT(*), SUM(amount) FROM ledger") == [(1, 200)]


async def test_fenced_rows_do_not_hold_up_the_others(store: Store) -> None:
    turns = [claimed(await store.turns.claim(a_claim(f"r{i}"))) for i in range(3)]
    await store.turns.finish(a_finish(turns[1]))
    ended = await asyncio.gather(
        *[store.turns.finish(a_finish(turn)) for turn in turns], return_exceptions=True
    )
    assert [isinstance(answer, Fenced) for answer in ended] == [False, True, False]
    again = await asyncio.gather(
        *[store.turns.append(turn, 9, 9, b"[]") for turn in turns], return_exceptions=True
    )
    assert all(isinstance(answer, Fenced) for answer in again)


async def test_a_turn_cannot_finish_as_running(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    with pytest.raises(ValueError, match="cannot finish as running"):
        await store.turns.finish(a_finish(turn, state="running"))


async def test_every_amount_stands_in_the_ledger_the_quota_and_the_run(
    store: Store, place: Place
) -> None:
    for i in range(20):
        payer = (ALICE, BOB)[i % 2]
        turn = claimed(await store.turns.claim(a_claim(f"r{i % 7}", turn=f"t{i}", payer=payer)))
        debits = (Debit("agent:echo", i), Debit("peer:globex.example", 2 * i))
        await store.turns.finish(a_finish(turn, payer=payer, debits=debits))
    by_payer = "SELECT issuer, SUM(amount) FROM ledger GROUP BY issuer ORDER BY issuer"
    by_quota = "SELECT name, spent FROM purse ORDER BY name"
    by_run = "SELECT issuer, SUM(cost) FROM run GROUP BY issuer ORDER BY issuer"
    by_turn = (
        "SELECT r.issuer, SUM(t.cost) FROM turn t JOIN run r ON r.n = t.run"
        " GROUP BY r.issuer ORDER BY r.issuer"
    )
    sums = place.rows(by_payer)
    assert sums == [("token:alice", 270), ("token:bob", 300)]
    assert place.rows(by_quota) == place.rows(by_run) == place.rows(by_turn) == sums


async def test_a_call_at_price_zero_has_its_ledger_entry(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    await store.turns.finish(a_finish(turn, debits=(Debit("agent:echo", 0),)))
    assert await store.records.ledger(run="r1", account=None, limit=9) == [
        LedgerEntry(
            n=1,
            at=turn.created + 1000,
            run="r1",
            turn="r1.t0.echo",
            debit=ALICE.account,
            credit="agent:echo",
            amount=0,
        )
    ]


@pytest.mark.parametrize("change", ["UPDATE ledger SET amount = 0", "DELETE FROM ledger"])
async def test_the_ledger_is_append_only(store: Store, place: Place, change: str) -> None:
    await finished(store)
    errors = (sqlite3.IntegrityError, asyncpg.PostgresError)
    with pytest.raises(errors, match="append-only"):
        place.rows(change)
    assert place.rows("SELECT SUM(amount) FROM ledger") == [(200,)]


async def test_a_damaged_journal_row_is_reported_and_not_served(store: Store, place: Place) -> None:
    ended = await finished(store)
    other = await finished(store, "r2")
    place.damage(2, b"hello", b"jello")
    with pytest.raises(Internal, match="journal row 2 of turn 1 is damaged"):
        await store.turns.events(ended)
    with pytest.raises(Internal, match="journal row 2"):
        await store.records.entries("r1", reader=None, after=0, limit=9)
    assert await store.turns.events(other) == [write_events(ANSWER)]


@pytest.mark.parametrize("change", ["turn = 2", "first = 1", "last = 7", "kind = 'odd'", "crc = 0"])
async def test_no_field_of_a_journal_row_can_change_alone(
    store: Store, place: Place, change: str
) -> None:
    for turn in ("t1", "t2"):
        await finished(store, turn=turn)
    place.rows(f"UPDATE journal SET {change} WHERE n = 2")  # noqa: S608
    with pytest.raises(Internal, match="journal row 2"):
        await store.records.entries("r1", reader=None, after=0, limit=9)
