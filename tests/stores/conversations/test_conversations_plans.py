"""What is asked for of conversations reads no more when there are many of them."""

# ruff: noqa: S608  the statements are put together from our own words

import re
from collections.abc import Sequence
from typing import Any

import pytest

from carnet.gateway.conversations.answers import Answers
from carnet.ports.calls.conversations import ConversationFilter
from carnet.stores.database import Row
from carnet.stores.open import Store
from tests.stores.conversations.test_conversations import ALICE, ANY, found, kept, sent
from tests.stores.support.scenes import NOW, Place, a_claim, end_upkeep

MANY = 5_000
_COUNT = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ?) "
_FILL = (
    f"""{_COUNT}INSERT INTO conversation (n, id, owner, agent, cause, created, updated)
    SELECT 100 + n, 'cnv_' || n, 'person:' || n % 2, 'echo', 'message', n, n FROM c""",
    f"""{_COUNT}INSERT INTO message (n, id, conversation, owner, role, parts, state, created)
    SELECT 100 + n, 'old_' || n, 100 + n, 'person:' || n % 2, 'user', {{blob}}, 'whole', n
    FROM c""",
    f"""{_COUNT}INSERT INTO message_word (owner, word, conversation, source)
    SELECT 'person:' || n % 2, 'hello', 100 + n, 0 FROM c""",
)
# The indexes of what is open hold nothing else.
_WALKS = re.compile(
    r"Seq Scan on (conversation|message)"
    r"|SCAN (conversation|message|message_word|turn|[cmwotr])\b(?!.*(_answering|_waits))"
)
_SORTS = re.compile(r"^\s*(?:->\s+)?Sort|TEMP B-TREE")


async def look_at_everything(store: Store) -> None:
    page = await store.conversations.list(ALICE, ANY, limit=20, before=None)
    await store.conversations.list(ALICE, ANY, limit=20, before=page.following)
    for words in (("hello",), ("hello", "budget")):
        await store.conversations.list(
            ALICE, ConversationFilter(words=words), limit=20, before=None
        )
    await kept(store, "b", "more", conversation="cnv_a", client_id="c1")
    await kept(store, "b", "more", conversation="cnv_a", client_id="c1")
    conversation = await found(store, "cnv_a")
    branch = await store.conversations.branch(conversation, last=None, limit=9)
    await store.conversations.beside(conversation, [*[each.n for each in branch], None])
    await store.conversations.turn_of(ALICE, branch[0])
    await store.conversations.change(conversation, title="new", now=NOW)
    await store.conversations.given_up(after=0, limit=9, begun=NOW, ended=NOW)
    await store.conversations.gone_on(after=0, limit=9, most=99)


async def test_no_look_at_conversations_walks_through_all_of_them(
    place: Place, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A87: neither a list, a search, a look at one of them nor a new message."""
    await kept(store, "a", "hello budget", owner=ALICE)
    for statement in _FILL:
        blob = "''::bytea" if place.postgres else "x''"
        place.rows(statement.format(blob=blob), MANY)
    place.rows("ANALYZE")
    end_upkeep(store)
    asked: list[tuple[str, list[Any]]] = []
    database = store.conversations._database  # noqa: SLF001  the statements as they are
    fetch, transact = database.fetch, database.transact

    async def noted(sql: str, args: Sequence[Any] = ()) -> list[Row]:
        asked.append((sql, list(args)))
        return await fetch(sql, args)

    async def noted_all(statements: Sequence[Any]) -> list[int]:
        asked.extend((sql, list(args)) for sql, args in statements)
        return await transact(statements)

    monkeypatch.setattr(database, "fetch", noted)
    monkeypatch.setattr(database, "transact", noted_all)
    await look_at_everything(store)
    explain = "EXPLAIN (COSTS OFF)" if place.postgres else "EXPLAIN QUERY PLAN"
    for sql, args in asked:
        if "conversation" not in sql:
            continue
        plan = [str(row[-1]) for row in place.rows(f"{explain} {sql}", *args)]
        bad = [step for step in plan if _WALKS.search(step)]
        if "LIMIT" in sql and not re.search("RECURSIVE|ORDER BY t.n", sql):  # read in its order
            bad += [step for step in plan if _SORTS.search(step)]
        assert not bad, (sql, plan)
    assert len(asked) > 20


async def test_a_list_that_finds_little_ends_before_it_is_full_and_goes_on(store: Store) -> None:
    from carnet.stores.conversations import search  # noqa: PLC0415  its bounds are changed

    for i in range(9):
        agent = "rare" if i == 1 else "echo"
        await store.conversations.begin(sent(f"c{i}", agent=agent, now=NOW + i))
    patch = pytest.MonkeyPatch()
    with patch.context() as changed:
        changed.setattr(search, "SLICE", 2)
        changed.setattr(search, "MOST_SLICES", 2)
        for matching in (
            ConversationFilter(agent="rare"),
            ConversationFilter(agent="rare", words=("hello",)),
        ):
            pages, before = [], None
            while True:
                page = await store.conversations.list(ALICE, matching, limit=5, before=before)
                pages += [each.id for each in page.found]
                before = page.following
                if before is None:
                    break
            assert pages == ["cnv_c1"]


async def test_what_waits_of_everybody_is_looked_at_together(
    place: Place, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A87: however many wait, a look asks as often as for one."""
    end_upkeep(store)
    clock = place.clock
    answers = Answers(store.conversations, store.turns, store.watch, clock)
    asked: list[str] = []
    database = store.conversations._database  # noqa: SLF001  the statements as they are
    fetch = database.fetch

    async def noted(sql: str, args: Sequence[Any] = ()) -> list[Row]:
        asked.extend([sql] if "message" in sql or "turn" in sql else [])
        return await fetch(sql, args)

    monkeypatch.setattr(database, "fetch", noted)
    await answers.keep()
    of_none = len(asked)
    for n in range(20):
        await kept(store, f"w{n}", owner=f"token:t{n}")
        await store.turns.claim(a_claim(f"conv_run_w{n}", turn=f"turn_w{n}", actor=f"token:t{n}"))
    place.rows("UPDATE turn SET state = 'waiting'")
    place.rows("UPDATE message SET waits = 1 WHERE role = 'assistant'")
    asked.clear()
    await answers.keep()
    assert (of_none, len(asked)) == (2, 3)
