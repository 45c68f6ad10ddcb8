"""The journal, read in pieces on both stores."""

from carnet.core.messages.events import PIECE_BYTES, Text, write_events
from carnet.stores.open import Store
from tests.stores.support.scenes import a_claim, claimed

HALF = write_events([Text("x" * (PIECE_BYTES // 2))])
LARGE = write_events([Text("y" * (3 * PIECE_BYTES))])


async def test_events_are_read_a_piece_at_a_time_and_none_is_missed(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    rows = [HALF, HALF, HALF, LARGE, HALF]
    for place, row in enumerate(rows):
        await store.turns.append(turn, place, place, row)
    assert await store.turns.events(turn) == rows
    assert await store.turns.size(turn) == sum(map(len, rows))
    found: list[bytes] = []
    while piece := await store.turns.events(turn, len(found), is_piece=True):
        assert sum(map(len, piece)) <= PIECE_BYTES or piece == [LARGE]
        found += piece
    assert found == rows


async def test_entries_are_as_many_as_fit_and_a_large_one_is_told_before_it_is_read(
    store: Store,
) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    for place, row in enumerate([HALF, HALF, LARGE]):
        await store.turns.append(turn, place, place, row)
    after, sizes = 0, []
    while entries := await store.records.entries("r1", reader=None, after=after, limit=9):
        sizes.append([len(entry.data) for entry in entries if entry.kind == "events"])
        after = entries[-1].n
    assert sizes == [[len(HALF)], [len(HALF)], [0]]
    (large,) = await store.records.entries("r1", reader=None, after=after - 1, limit=9)
    assert (large.data, large.size) == (b"", len(LARGE))
    (whole,) = await store.records.entries(
        "r1", reader=None, after=after - 1, limit=9, most_bytes=len(LARGE)
    )
    assert (whole.data, whole.size) == (LARGE, None)
