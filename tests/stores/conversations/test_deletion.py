"""Deleting a conversation, however long it is: in transactions that are small."""

from collections.abc import Sequence

import pytest

from carnet.stores.conversations.deletion import WORDS_AT_A_TIME
from carnet.stores.database import Statement
from carnet.stores.open import Store
from tests.stores.conversations.test_conversations import ALICE, found, kept
from tests.stores.support.scenes import NOW, Place

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
