"""Deleting a conversation, however long it is: in transactions that are small."""

import asyncio
import re
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from carnet.core.messages.outbound_call import OutboundCall
from carnet.core.people.identity import owner_of
from carnet.ports.calls.triggers import Room
from carnet.ports.world.outbox import Delivery
from carnet.stores.conversations.deletion import WORDS_AT_A_TIME
from carnet.stores.database import Statement
from carnet.stores.open import Store
from tests.stores.conversations.test_conversations import ALICE, found, kept, sent
from tests.stores.support import scenes
from tests.stores.support.scenes import NOW, Place, a_claim, claimed, end_upkeep
from tests.stores.triggers.scene import a_hook, a_person, receive

MANY = 2 * WORDS_AT_A_TIME + 1
FILL = (
    "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ?)"
    " INSERT INTO message_word (owner, word, conversation, source)"
    " SELECT 'person:1', 'word' || n, CAST(? AS BIGINT), 0 FROM c"
)


async def test_the_words_of_a_long_conversation_are_deleted_some_at_a_time(
    store: Store, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await kept(store, "a")
    other = await kept(store, "b")
    conversation = await found(store, "cnv_a")
    place.rows(FILL, MANY, conversation.n)
    end_upkeep(store)
    counts: list[int] = []
    database = store.conversations.deletion._database  # noqa: SLF001  what it is asked
    transact = database.transact

    async def counted(statements: Sequence[Statement]) -> list[int]:
        changed = await transact(statements)
        counts.append(sum(changed))
        return changed

    monkeypatch.setattr(database, "transact", counted)
    await store.conversations.deletion.delete(conversation, NOW)
    assert max(counts) == WORDS_AT_A_TIME
    left = place.rows("SELECT DISTINCT conversation FROM message_word WHERE owner = ?", ALICE)
    assert left == [(other.conversation.n,)]


async def test_a_postgres_that_believes_in_few_words_looks_for_each_where_it_lies(
    store: Store, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A87: else each of a million is looked for among all of them."""
    begun = await kept(store, "a")
    place.rows("ANALYZE")  # and they come after that
    place.rows(FILL, MANY, begun.conversation.n)
    end_upkeep(store)
    asked: list[Statement] = []
    database = store.conversations.deletion._database  # noqa: SLF001  what it is asked
    transact = database.transact

    async def noted(statements: Sequence[Statement]) -> list[int]:
        asked.extend([each for each in statements if "message_word" in each[0]])
        return await transact(statements)

    monkeypatch.setattr(database, "transact", noted)
    await store.conversations.deletion.delete(begun.conversation, NOW)
    assert len(asked) == 1 + MANY // WORDS_AT_A_TIME + 1  # the last finds none
    for sql, args in asked:
        plan = [str(row[0]) for row in place.rows(f"EXPLAIN {sql}", *args)]
        assert [step for step in plan if "Tid Scan on message_word" in step], plan
        assert not [step for step in plan if "Nested Loop" in step], plan


async def test_what_is_being_answered_is_not_deleted_and_nothing_of_it_is(
    store: Store, place: Place
) -> None:
    """What begins in that moment would be written down after all else is gone."""
    begun = await store.conversations.begin(sent("a"))
    await store.conversations.release(ALICE, begun.answer.id, None)
    read = await found(store, "cnv_a")  # before another message comes
    again = await store.conversations.begin(sent("b", conversation="cnv_a"))
    deletion = store.conversations.deletion
    assert not await deletion.delete(read, NOW)
    assert (await found(store, "cnv_a")).answering == again.answer.id
    assert place.rows("SELECT COUNT(*) FROM message WHERE state = 'deleted'") == [(0,)]
    await store.conversations.release(ALICE, again.answer.id, None)
    assert await deletion.delete(read, NOW)
    assert not await deletion.delete(read, NOW)  # it was
    assert place.rows("SELECT COUNT(*) FROM message WHERE state <> 'deleted'") == [(0,)]


async def test_with_a_conversation_ends_what_was_to_begin_it_and_nobody_elses(
    store: Store, place: Place
) -> None:
    """Of a hook that waits for somebody what it says is kept; its conversation has the same."""
    firings = store.triggers.firings
    people = [await a_person(store, name) for name in ("alice", "bob")]
    hooks = [await a_hook(store, who) for who in people]
    for key, hook in (("noted", hooks[0]), ("kept", hooks[0]), ("other", hooks[0])):
        await receive(store, hook, key, key)
    await receive(store, hooks[1], "noted", "his")
    leased = await firings.lease("w", until=NOW + 1, limit=9, room=Room(9, {}), now=NOW)
    for firing in leased:
        if firing.key in {"noted", "his"}:
            assert await firings.begun(firing, "cnv_a")
    owner = owner_of(people[0][0], "")
    begun = await kept(store, "a", owner=owner, client_id="kept")
    assert await store.conversations.deletion.delete(begun.conversation, NOW)
    states = place.rows("SELECT key, state, code, content FROM firing ORDER BY n")
    assert states == [
        *[(key, "failed", "deleted", "") for key in ("noted", "kept")],
        *[(key, "due", None, "An order came.") for key in ("other", "his")],
    ]


OUTBOX = (
    "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ?)"
    " INSERT INTO outbox (id, kind, receiver, url, body, task, secret_of, learned, turn, state,"
    " attempts, due, fence, created) SELECT 'many_' || n, 'notice', 'r', 'u', {}, 'task_' || n,"
    " 'notify', 0, 100000 + n, 'delivered', 0, 0, 0, 0 FROM c"
)


async def test_what_was_told_of_its_turns_goes_and_is_found_by_an_index(
    store: Store, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else may have a run of the same name: theirs stays."""
    mine, theirs = "token:alice", "token:bob"
    begun = await kept(store, "a", owner=mine)
    claims = [
        a_claim("conv_run_a", turn="turn_a", actor=each, payer=payer)
        for each, payer in ((mine, scenes.ALICE), (theirs, scenes.BOB))
    ]
    turns = [claimed(await store.turns.claim(each)) for each in claims]
    notice = Delivery(id="", kind="notice", url="https://n.example/", receiver="n", body=b"{}")
    await store.outbox.put([replace(notice, id=f"of_{t.actor}", turn=t.n) for t in turns], NOW)
    place.rows(OUTBOX.format("''::bytea" if place.postgres else "x''"), 5_000)
    place.rows("ANALYZE")
    end_upkeep(store)
    asked: list[Statement] = []
    database = store.conversations.deletion._database  # noqa: SLF001  what it is asked
    transact = database.transact

    async def noted(statements: Sequence[Statement]) -> list[int]:
        asked.extend([each for each in statements if "outbox" in each[0]])
        return await transact(statements)

    monkeypatch.setattr(database, "transact", noted)
    await store.conversations.deletion.delete(begun.conversation, NOW)
    left = place.rows("SELECT id FROM outbox WHERE id LIKE 'of_%'")
    assert left == [(f"of_{theirs}",)]
    explain = "EXPLAIN (COSTS OFF)" if place.postgres else "EXPLAIN QUERY PLAN"
    assert len(asked) == 2
    for sql, args in asked:
        plan = [str(row[-1]) for row in place.rows(f"{explain} {sql}", *args)]
        assert not [step for step in plan if re.search("Seq Scan on outbox|SCAN outbox", step)]


async def test_what_was_signed_of_its_calls_out_goes_and_their_receipts_stay(
    store: Store, place: Place
) -> None:
    """It holds a digest of what was said; of somebody else's run of that name it stays."""
    begun = await kept(store, "a", owner="token:alice")
    call = OutboundCall(
        ordinal=0, child_turn="c", to="x", depth=1, state="done", sent="digest", receipt="proof"
    )
    for payer, actor in ((scenes.ALICE, "token:alice"), (scenes.BOB, "token:bob")):
        claim = a_claim("conv_run_a", turn="turn_a", actor=actor, payer=payer)
        turn = claimed(await store.turns.claim(claim))
        await store.turns.finish(scenes.a_finish(turn, payer=payer, outbound=(call,)))
    await store.conversations.deletion.delete(begun.conversation, NOW)
    rows = place.rows("SELECT sent, receipt FROM outbound ORDER BY turn")
    assert rows == [(None, "proof"), ("digest", "proof")]


async def test_a_turn_has_one_tombstone_also_where_the_upkeep_goes_on_with_the_deleting(
    store: Store, place: Place
) -> None:
    """The upkeep of each gateway finishes what a process has left, or is about to."""
    begun = await kept(store, "a", owner="token:alice")
    turn = claimed(
        await store.turns.claim(a_claim("conv_run_a", turn="turn_a", actor="token:alice"))
    )
    await store.turns.finish(scenes.a_finish(turn))
    place.rows("UPDATE conversation SET deleted = 1, size = 1 WHERE n = ?", begun.conversation.n)
    deletion = store.conversations.deletion
    await asyncio.gather(*[deletion.finish(NOW) for _ in range(5)])
    kinds = place.rows("SELECT kind, COUNT(*) FROM journal WHERE turn = ? GROUP BY kind", turn.n)
    assert sorted(kinds) == [("accepted", 1), ("events", 1)]
    digest = place.rows("SELECT digest FROM turn WHERE n = ?", turn.n)
    await deletion._wipe(begun.conversation.n, "token:alice", NOW)  # noqa: SLF001  once more
    assert place.rows("SELECT digest FROM turn WHERE n = ?", turn.n) == digest
