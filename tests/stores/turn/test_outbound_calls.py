"""Calls out in a table of their own: the journal points to them, readers are shown them."""

from carnet.core.messages.events import Done, Event, Text, write_events
from carnet.core.messages.outbound_call import OutboundCall, outbound_event, pointer
from carnet.stores.open import Store
from tests.stores.support.scenes import Place, a_claim, a_finish, claimed

CALL = OutboundCall(
    ordinal=0,
    child_turn="r1.t0.critic",
    to="@critic@globex.example",
    depth=1,
    state="done",
    dialect="tangle",
    cost=300,
    receipt="what-they-signed",
)


async def test_a_receipt_lies_beside_the_journal_and_is_read_with_it(
    store: Store, place: Place
) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    events: list[Event] = [Text("so"), pointer(turn.fence, 0), Done()]
    ended = await store.turns.finish(
        a_finish(turn, events=write_events(events), last=2, outbound=(CALL,))
    )
    kept = place.rows("SELECT data FROM journal WHERE kind = 'events'")
    assert all(b"what-they-signed" not in bytes(data) for (data,) in kept)
    shown = write_events([Text("so"), outbound_event(CALL), Done()])
    assert await store.turns.events(ended) == [shown]
    entries = await store.records.entries("r1", reader=None, after=0, limit=10)
    assert [entry.data for entry in entries if entry.kind == "events"] == [shown]
    assert await store.records.outbound("r1", reader=None) == {turn.n: [CALL]}
