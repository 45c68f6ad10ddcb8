"""What an account has paid for: its postings, its runs, and nobody else's."""

from collections.abc import Sequence
from typing import Any

import pytest

from carnet.core.people.identity import Account
from carnet.ports.calls.turns import Debit
from carnet.ports.money.payments import HeldAccount, Total
from carnet.stores.database import Row
from carnet.stores.open import Store
from tests.stores.support.scenes import (
    ALICE,
    BOB,
    NOW,
    Place,
    a_claim,
    a_finish,
    claimed,
    end_upkeep,
)

HERS = HeldAccount(ALICE.account)
HIS = HeldAccount(BOB.account)


async def paid(store: Store, run: str, payer: Any = ALICE, **more: Any) -> None:
    turn = claimed(await store.turns.claim(a_claim(run, payer=payer, **more)))
    debits = (Debit("agent:echo", 20), Debit("peer:b.example", 3))
    at = more.get("now", NOW)
    await store.turns.finish(a_finish(turn, payer=payer, debits=debits, now=at))


async def test_an_account_is_listed_its_own_postings_page_by_page(store: Store) -> None:
    for i in range(3):
        await paid(store, f"r{i}")
        await paid(store, f"b{i}", BOB, actor="token:bob")
    first, following = await store.payments.postings([HERS], limit=4)
    assert {entry.debit for entry in first} == {ALICE.account}
    rest, end = await store.payments.postings([HERS], limit=4, before=following)
    assert ([*(entry.run for entry in (*first, *rest))], end) == (
        [run for i in (2, 1, 0) for run in (f"r{i}", f"r{i}")],
        None,
    )
    of_run, _ = await store.payments.postings([HERS], limit=9, run="r1")
    assert sorted((entry.credit, entry.amount) for entry in of_run) == [
        *(("agent:echo", 20), ("peer:b.example", 3)),
    ]
    assert await store.payments.postings([HERS], limit=9, run="b1") == ([], None)
    assert await store.payments.postings([], limit=9) == ([], None)


async def test_several_accounts_are_listed_together_in_order(store: Store) -> None:
    for i in range(4):
        await paid(store, f"r{i}", (ALICE, BOB)[i % 2])
    found, following = await store.payments.postings([HERS, HIS], limit=5)
    numbers = [entry.n for entry in found]
    assert (numbers, following) == (sorted(numbers, reverse=True), numbers[-1])
    lines, begun = await store.payments.runs([HERS, HIS], limit=3)
    assert [line.run for line in lines] == ["r3", "r2", "r1"]
    more, end = await store.payments.runs([HERS, HIS], limit=3, before=begun)
    assert ([line.run for line in more], end) == (["r0"], None)


async def test_a_payer_is_told_one_line_of_a_run_that_somebody_else_called(store: Store) -> None:
    await paid(store, "r1", actor="peer:c.example")
    await paid(store, "r2", BOB, actor="token:alice")
    (line,), _ = await store.payments.runs([HERS], limit=9)
    assert (line.run, line.agent, line.payer, line.state) == ("r1", "echo", ALICE.account, "done")
    assert (line.cost, line.turns, line.depth) == (23, 1, 0)


async def test_what_two_pay_for_in_one_run_is_told_apart(store: Store) -> None:
    await paid(store, "r1")
    await paid(store, "r1", BOB, actor="token:bob")
    await paid(store, "r1", BOB, actor="token:bob2")
    (hers,), _ = await store.payments.runs([HERS], limit=9)
    (his,), _ = await store.payments.runs([HIS], limit=9)
    assert ((hers.turns, hers.cost), (his.turns, his.cost)) == ((1, 23), (2, 46))


async def test_what_was_paid_before_an_account_was_held_is_not_told(store: Store) -> None:
    await paid(store, "r1", now=NOW)
    await paid(store, "r2", now=NOW + 10)
    late = HeldAccount(ALICE.account, NOW + 5)
    entries, _ = await store.payments.postings([late], limit=9)
    lines, _ = await store.payments.runs([late], limit=9)
    assert [line.run for line in lines] == ["r2"]
    assert "r1" not in {entry.run for entry in entries}


async def test_totals_are_told_by_payer_agent_peer_and_run(store: Store) -> None:
    await paid(store, "r1")
    await paid(store, "r2")
    await paid(store, "r3", BOB, actor="token:bob")
    alice, bob = str(ALICE.account), str(BOB.account)
    assert await store.payments.totals("payer", limit=9) == [
        Total(name=alice, postings=4, amount=46),
        Total(name=bob, postings=2, amount=23),
    ]
    assert await store.payments.totals("agent", limit=9) == [
        Total(name="agent:echo", postings=3, amount=60)
    ]
    assert await store.payments.totals("peer", limit=9) == [
        Total(name="peer:b.example", postings=3, amount=9)
    ]
    assert [one.name for one in await store.payments.totals("run", limit=2)] == ["r1", "r2"]


async def test_what_a_run_cost_is_told_after_it_was_pruned(store: Store, place: Place) -> None:
    now = place.clock.wall_us()
    await paid(store, "old", now=now)
    place.clock.advance(31 * 86_400)
    await paid(store, "old", BOB, actor="token:bob", now=place.clock.wall_us())
    await paid(store, "new", now=place.clock.wall_us())
    assert (await store.prune(turn_days=30, event_days=30)).runs == 1
    hers, _ = await store.payments.postings([HERS], limit=9, run="old")
    assert [entry.amount for entry in hers] == [3, 20]
    all_of_it = await store.records.ledger(run="old", account=None, limit=9)
    assert [entry.debit for entry in all_of_it] == [BOB.account] * 2 + [ALICE.account] * 2


async def test_postings_from_before_their_runs_had_numbers_are_told(
    store: Store, place: Place
) -> None:
    await paid(store, "r1")
    place.rows(
        "INSERT INTO ledger (n, at, run, turn, issuer, account, credit, amount)"
        " SELECT n + 10, at, run, turn, issuer, account, credit, amount FROM ledger"
    )
    found, _ = await store.payments.postings([HERS], limit=9, run="r1")
    assert [entry.amount for entry in found] == [3, 20, 3, 20]
    assert len(await store.records.ledger(run="r1", account=None, limit=9)) == 4


async def test_a_posting_with_the_number_of_another_run_is_not_told_as_its(
    store: Store, place: Place
) -> None:
    await paid(store, "r1")
    await paid(store, "r2")
    place.rows(
        "INSERT INTO ledger (n, at, run, turn, issuer, account, credit, amount, run_n)"
        " SELECT 99, at, 'forged', turn, issuer, account, credit, amount, run_n FROM ledger"
        " WHERE run = 'r2' AND amount = 3"
    )
    assert [entry.run for entry in await store.records.ledger(run="r2", account=None, limit=9)] == [
        *("r2", "r2"),
    ]


# As many postings of other runs of hers, with and without the numbers of their runs.
MANY = """
WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000)
INSERT INTO ledger (n, at, run, turn, issuer, account, credit, amount, run_n)
SELECT 1000 + n, 0, 'r' || (100 + n), 't', 'token:alice', 'alice', 'agent:echo', 0,
    CASE WHEN n % 3 = 0 THEN NULL ELSE 1000 + n END FROM c"""
MANY_RUNS = """
WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000)
INSERT INTO {} SELECT 1000 + n, 'p' || n{} FROM c"""


@pytest.mark.parametrize("is_hers", [True, False])
async def test_what_a_run_cost_is_found_by_its_own_rows(
    place: Place, store: Store, monkeypatch: pytest.MonkeyPatch, *, is_hers: bool
) -> None:
    """A87: by the number of the run, and by the name of what is older than that."""
    await paid(store, "r1")
    place.rows(MANY)
    place.rows(MANY_RUNS.format("run (n, id, issuer, account, calls, started)", ", 'b', 'b', 1, 0"))
    place.rows(MANY_RUNS.format("pruned_run (n, id)", ""))
    place.rows("ANALYZE")
    asked: list[tuple[str, list[Any]]] = []
    database = store.records._database  # noqa: SLF001  the statements as they are
    fetch = database.fetch

    async def noted(sql: str, args: Sequence[Any] = ()) -> list[Row]:
        if "AS of_run" in sql:  # upkeep asks beside it
            asked.append((sql, list(args)))
        return await fetch(sql, args)

    monkeypatch.setattr(database, "fetch", noted)
    if is_hers:
        await store.payments.postings([HERS], limit=9, run="r1")
    else:
        await store.records.ledger(run="r1", account=None, limit=9)
    ((sql, given),) = asked
    explain = "EXPLAIN" if place.postgres else "EXPLAIN QUERY PLAN"
    plan = [row[-1] for row in place.rows(f"{explain} {sql}", *given)]
    walks = ("SCAN l", "SCAN r", "Seq Scan", "ledger_pkey")
    bounded = ("SCAN run USING INDEX run_unnamed",)  # so many names wait: `sqlite.run_names`
    assert not [
        step for step in plan if step not in bounded and any(walk in step for walk in walks)
    ], "\n".join(plan)
    for index in ("ledger_run", "ledger_run_former", "pruned_run_id"):
        assert [step for step in plan if f"{index} " in step], "\n".join(plan)


@pytest.mark.parametrize("before", [None, 99])
async def test_sqlite_lists_what_an_account_paid_by_its_own_rows(
    place: Place, store: Store, monkeypatch: pytest.MonkeyPatch, before: int | None
) -> None:
    """A87: no query walks through the rows of everybody, and none sorts what it found."""
    await paid(store, "r1")
    await store.upkeep()
    end_upkeep(store)
    asked: list[tuple[str, list[Any]]] = []
    fetch = store.payments._database.fetch  # noqa: SLF001  the statements as they are

    async def noted(sql: str, args: Sequence[Any] = ()) -> list[Row]:
        asked.append((sql, list(args)))
        return await fetch(sql, args)

    monkeypatch.setattr(store.payments._database, "fetch", noted)  # noqa: SLF001
    held = [HERS, HeldAccount(Account("x", "y"))]
    await store.payments.postings(held, limit=9, before=before)
    await store.payments.runs(held, limit=9, before=before)
    for sql, given in asked:
        plan = [row[3] for row in place.rows(f"EXPLAIN QUERY PLAN {sql}", *given)]
        assert not [step for step in plan if step.startswith("SCAN")], plan
