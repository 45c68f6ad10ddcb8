"""What a turn that runs notes of calls that came back to us."""

import pytest
from msgspec.structs import replace

from carnet.core.messages.outbound_call import OutboundCall
from carnet.ports.calls.admission import CameBack
from carnet.runtime.turns.execution import MOST_RETURNS, Execution
from tests.runtime.scene import TARGET, make_call

RETURNED = CameBack(
    run="run_1",
    parent_turn="run_1.t0.critic",
    turn="run_1.t0.writer",
    depth=2,
    peer="globex.example",
    to="writer",
    code="loop_detected",
)


def calling(peer: str = "globex.example", *, is_remote: bool = True) -> Execution:
    """A turn that is a call to a peer."""
    target = replace(TARGET, is_remote=is_remote, credit=f"peer:{peer}")
    return Execution(replace(make_call(), target=target), None)


def test_a_call_that_the_called_peer_made_in_it_is_its_own() -> None:
    assert calling().has_made(RETURNED)
    onward = make_call(turn="run_1.t9.critic").carnet
    sent = Execution(replace(calling().call, onward=onward), None)
    assert sent.has_made(replace(RETURNED, parent_turn="run_1.t9.critic"))
    assert not sent.has_made(RETURNED)


@pytest.mark.parametrize(
    "changed", [{"run": "run_2"}, {"parent_turn": "run_1.t1.critic"}, {"peer": "evil.example"}]
)
def test_a_call_of_somebody_else_is_not(changed: dict[str, str]) -> None:
    assert not calling().has_made(replace(RETURNED, **changed))
    assert not calling(is_remote=False).has_made(RETURNED)


def test_a_turn_notes_some_of_them_and_no_more() -> None:
    noted: list[OutboundCall] = []

    class Paper:
        def called(self, call: OutboundCall, /) -> None:
            noted.append(call)

    running = calling()
    running.note(RETURNED)  # before it runs there is nowhere to
    running.recording = Paper()  # type: ignore[assignment]  # all that is asked of it
    for _ in range(MOST_RETURNS + 1):
        running.note(RETURNED)
    assert len(noted) == MOST_RETURNS
    assert (noted[0].to, noted[0].state, noted[0].code) == ("writer", "refused", "loop_detected")
