"""The record of a call out, and how it is read from turns of the former layout."""

import pytest

from carnet.core.outbound import OutboundCall, read_leg


def test_a_leg_of_the_former_layout_is_read_as_a_call_out() -> None:
    leg = {
        "turn": "r.t0.critic",
        "to": "@critic@globex.example",
        "depth": 1,
        "status": "refused",
        "cost": 5,
        "code": "peer_refused",
        "receipt": "a.b.c",
    }
    assert read_leg(leg, 3) == OutboundCall(
        ordinal=3,
        child_turn="r.t0.critic",
        to="@critic@globex.example",
        depth=1,
        state="refused",
        cost=5,
        code="peer_refused",
        receipt="a.b.c",
    )


def test_what_is_no_leg_is_refused() -> None:
    with pytest.raises(ValueError, match="no record of a call out"):
        read_leg({"turn": "r.t0.critic"}, 0)
