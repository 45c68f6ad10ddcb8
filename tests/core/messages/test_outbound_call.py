"""The record of a call out, and how it is read from turns of the former layout."""

import pytest

from carnet.core.messages.events import Done, Event, Text, read_events, write_events
from carnet.core.messages.outbound_call import (
    OutboundCall,
    outbound_event,
    pointer,
    points,
    read_outbound_event,
    with_records,
)


def test_an_event_of_the_former_layout_is_read_as_an_outbound_call() -> None:
    outbound = {
        "turn": "r.t0.critic",
        "to": "@critic@globex.example",
        "depth": 1,
        "status": "refused",
        "cost": 5,
        "code": "peer_refused",
        "receipt": "a.b.c",
    }
    assert read_outbound_event(outbound, 3) == OutboundCall(
        ordinal=3,
        child_turn="r.t0.critic",
        to="@critic@globex.example",
        depth=1,
        state="refused",
        cost=5,
        code="peer_refused",
        receipt="a.b.c",
    )


def test_an_event_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="no record of a call out"):
        read_outbound_event({"turn": "r.t0.critic"}, 0)


def test_a_batch_that_points_to_calls_out_is_read_with_them_in_their_place() -> None:
    first, second = [
        OutboundCall(
            ordinal=ordinal, child_turn=f"r.t{ordinal}.a", to="@a@b.example", depth=1, state="done"
        )
        for ordinal in range(2)
    ]
    events: list[Event] = [Text("so"), pointer(3, 0), pointer(3, 1), Done()]
    read = with_records(write_events(events), {(3, 0): first, (3, 1): second})
    assert read_events(read) == [Text("so"), outbound_event(first), outbound_event(second), Done()]
    assert points(read)
    assert not points(write_events([Text("so"), Done()]))
    payload = outbound_event(second).payload
    assert read_outbound_event(payload, 1) == second


def test_a_call_out_that_is_no_longer_kept_stays_pointed_to() -> None:
    events: list[Event] = [pointer(1, 0), Done()]
    assert read_events(with_records(write_events(events), {})) == events
