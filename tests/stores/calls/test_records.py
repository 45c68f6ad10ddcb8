"""What happened, and who may know."""

import asyncio

import msgspec
import pytest
from msgspec.structs import replace

from carnet.core.messages.events import OUTBOUND_CALL, Extension, Text, write_events
from carnet.core.messages.outbound_call import OutboundCall
from carnet.core.people.identity import Account, Payer
from carnet.errors import RunNotFound
from carnet.ports.trust.trust import Peer
from carnet.ports.world.records import JournalEntry, RunSummary
from carnet.stores.open import Store
from tests.stores.support.scenes import ALICE, BOB, Place, a_claim, a_finish, claimed, finished

NOW = 1_800_000_000_000_000


async def test_a_run_is_summed_up_in_one_line(store: Store) -> None:
    await finished(store, turn="t0", depth=1)
    await finished(store, turn="t1", depth=3, agent="critic", actor="agent:echo", parent_turn="t0")
    lines, following = await store.records.runs(reader=None, limit=9, before=None)
    assert following is None
    assert lines == [
        RunSummary(
            run="r1",
            started=NOW,
            ended=NOW + 1000,
            agent="echo",
            payer=ALICE.account,
            turns=2,
            depth=3,
            cost=400,
            state="done",
        )
    ]


async def test_a_run_goes_on_while_one_of_its_turns_does(store: Store) -> None:
    await finished(store, turn="t0")
    await store.turns.claim(a_claim(turn="t1"))
    (line,), _ = await store.records.runs(reader=None, limit=9, before=None)
    assert (line.state, line.ended, line.turns) == ("running", None, 2)


async def test_a_line_tells_the_newest_error_of_its_run(store: Store) -> None:
    for turn, code in (("t0", None), ("t1", "overloaded"), ("t2", "agent_failed"), ("t3", None)):
        begun = claimed(await store.turns.claim(a_claim(turn=turn)))
        end = {"state": "done"} if code is None else {"state": "failed", "code": code}
        await store.turns.finish(a_finish(begun, **end))
    (line,), _ = await store.records.runs(reader=None, limit=9, before=None)
    assert (line.state, line.code) == ("done", "agent_failed")


async def test_runs_come_newest_first_a_page_at_a_time(store: Store) -> None:
    for i in range(5):
        await finished(store, f"r{i}", now=NOW + i)
    first, following = await store.records.runs(reader=None, limit=2, before=None)
    assert [line.run for line in first] == ["r4", "r3"]
    assert following is not None
    second, following = await store.records.runs(reader=None, limit=9, before=following)
    assert [line.run for line in second] == ["r2", "r1", "r0"]
    assert following is None
    assert await store.records.runs(reader=None, limit=9, before=1) == ([], None)


async def test_a_reader_sees_its_own_runs_and_what_was_done_below_them(store: Store) -> None:
    mine = await finished(store, turn="t0")
    below = await finished(store, turn="t1", actor="agent:echo", parent_turn="t0")
    agents = Payer(account=Account("acme.example", "agent:echo"), quota="agent:echo")
    paid = await finished(store, turn="t2", actor="agent:echo", parent_turn="t1", payer=agents)
    await finished(store, "r2", actor="token:bob", payer=BOB)
    assert await store.records.run("r1", reader="token:alice") == [mine, below, paid]
    assert await store.records.run("r1", reader="token:bob") == []
    lines, _ = await store.records.runs(reader="token:alice", limit=9, before=None)
    assert [line.run for line in lines] == ["r1"]
    assert await store.records.runs(reader="token:carol", limit=9, before=None) == ([], None)


async def test_a_shared_run_id_shows_nobody_the_turns_of_another(store: Store) -> None:
    # A41: the id of a run travels along its chain; B repeats the ids that it saw A use.
    a = await finished(store, turn="t0", actor="peer:a.example")
    below_a = await finished(store, turn="t1", actor="agent:echo", parent_turn="t0")
    b = await finished(store, turn="t9", actor="peer:b.example")
    below_b = await finished(store, turn="t10", actor="agent:echo", parent_turn="t9")
    assert await store.records.run("r1", reader="peer:a.example") == [a, below_a]
    assert await store.records.run("r1", reader="peer:b.example") == [b, below_b]
    entries = await store.records.entries("r1", reader="peer:b.example", after=0, limit=99)
    assert {entry.turn for entry in entries} == {"t9", "t10"}


async def test_what_is_below_a_turn_id_that_two_callers_use_is_shown_to_neither(
    store: Store,
) -> None:
    a = await finished(store, turn="t0", actor="peer:a.example")
    await finished(store, turn="t1", actor="agent:echo", parent_turn="t0")
    b = await finished(store, turn="t0", actor="peer:b.example", payer=BOB)
    assert await store.records.run("r1", reader="peer:a.example") == [a]
    assert await store.records.run("r1", reader="peer:b.example") == [b]
    assert len(await store.records.run("r1", reader=None)) == 3


async def test_the_journal_of_a_run_is_read_after_a_row(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    await finished(store, "other")
    await store.turns.append(turn, 0, 4, b"[]")
    read = store.records.entries
    first, second = await read("r1", reader="token:alice", after=0, limit=9)
    assert first == JournalEntry(
        n=1,
        turn="r1.t0.echo",
        kind="accepted",
        first=0,
        last=0,
        data=b'{"ask":"hello"}',
        turn_n=turn.n,
    )
    assert (second.kind, second.first, second.last) == ("events", 0, 4)
    assert await read("r1", reader=None, after=1, limit=9) == [second]
    assert await read("r1", reader=None, after=0, limit=1) == [first]
    assert await read("r1", reader=None, after=second.n, limit=9) == []
    assert await read("none", reader=None, after=0, limit=9) == []


CALL = OutboundCall(
    ordinal=0,
    child_turn="r1.t0.critic",
    to="@critic@globex.example",
    depth=1,
    state="done",
    dialect="samvad",
    cost=5,
    currency="credits",
    peer_status=200,
    receipt="a.b.c",
)


async def test_calls_out_are_kept_with_the_end_of_their_turn(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    refused = replace(CALL, ordinal=1, state="refused", code="peer_refused", peer_code="NO")
    await store.turns.finish(a_finish(turn, outbound=(CALL, refused)))
    assert await store.records.outbound("r1", reader="token:alice") == {turn.n: [CALL, refused]}
    assert await store.records.outbound("r1", reader="token:bob") == {}


async def test_calls_out_of_another_attempt_stay(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    failed = {"state": "failed", "code": "internal", "retryable": True}
    await store.turns.finish(a_finish(turn, outbound=(CALL,), **failed))
    again = claimed(await store.turns.claim(a_claim()))
    await store.turns.finish(a_finish(again, outbound=(CALL,)))
    assert await store.records.outbound("r1", reader=None) == {turn.n: [CALL, CALL]}


async def test_calls_out_of_the_former_layout_are_read_from_the_events(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    call = {"turn": "t1", "to": "@critic@globex.example", "depth": 1, "status": "done", "cost": 5}
    text = Text('it says "carnet.leg" here')
    await store.turns.append(turn, 0, 0, write_events([text]))
    await store.turns.append(turn, 1, 1, write_events([Extension(OUTBOUND_CALL, call)]))
    await store.turns.finish(a_finish(turn))
    found = OutboundCall(
        ordinal=0, child_turn="t1", to="@critic@globex.example", depth=1, state="done", cost=5
    )
    assert await store.records.outbound("r1", reader=None) == {turn.n: [found]}
    assert await store.records.outbound("r1", reader="token:bob") == {}


async def test_the_ledger_is_read_by_run_and_by_either_account(store: Store) -> None:
    for i in range(3):
        await finished(store, f"r{i}")
    await finished(store, "r0", payer=BOB, actor="token:bob")
    read = store.records.ledger
    everything = await read(run=None, account=None, limit=9)
    assert [entry.n for entry in everything] == [4, 3, 2, 1]
    assert [entry.n for entry in await read(run=None, account=None, limit=2)] == [4, 3]
    assert [entry.n for entry in await read(run="r0", account=None, limit=9)] == [4, 1]
    assert [entry.n for entry in await read(run="r0", account="bob@token:bob", limit=9)] == [4]
    assert len(await read(run=None, account="agent:echo", limit=9)) == 4
    assert await read(run=None, account="alice", limit=9) == []


async def test_a_watch_misses_nothing_between_two_looks(store: Store) -> None:
    with store.watch("r1") as watch:
        assert not await watch.changed(0)
        turn = claimed(await store.turns.claim(a_claim()))
        assert await watch.changed(0)
        assert not await watch.changed(0)
        await finished(store, "r2")
        assert not await watch.changed(0)
        await store.turns.append(turn, 0, 0, b"[]")
        await store.turns.finish(a_finish(turn))
        assert await watch.changed(0)
        waiting = asyncio.ensure_future(watch.changed(30))
        await store.turns.claim(a_claim(turn="t1"))
        assert await waiting


async def test_a_watch_is_woken_by_what_another_process_wrote(store: Store, place: Place) -> None:
    beside = await place.open(exclusive=False)
    with store.watch("r1") as watch:
        await beside.peers.put(Peer(domain="globex.example", url="https://globex.example"))
        await beside.close()
        await store.upkeep()
        assert await watch.changed(0)


async def test_a_turn_that_was_forgotten_is_not_found(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    with pytest.raises(RunNotFound):
        await store.turns.reload(msgspec.structs.replace(turn, n=7))


async def test_calls_out_of_everybody_come_newest_first_with_how_long_they_took(
    store: Store,
) -> None:
    away = "@critic@globex.example"
    for number, agent in enumerate(("echo", away)):  # one that calls it, and one that is the call
        begun = claimed(await store.turns.claim(a_claim(turn=f"t{number}", agent=agent)))
        call = OutboundCall(
            ordinal=0, child_turn=f"c{number}", to=away, depth=1, state="done", cost=7
        )
        await store.turns.finish(a_finish(begun, outbound=(call,)))
    whole, leg = await store.records.calls_out(9)
    assert (whole.to, whole.state, whole.cost, whole.began) == (away, "done", 7, NOW)
    assert (whole.took, leg.took) == (1000, None)
    assert await store.records.calls_out(1) == [whole]
