"""Whose child a turn is, where several callers have used the same ids."""

from carnet.core.chain.turn import IN_PROCESS, Turn
from carnet.core.people.identity import Account
from carnet.runtime.replay.record import RecordedRun, RecordedTurn

RUN = "conv_1"


def turn(n: int, agent: str, *, actor: str, payer: str, id: str, asked: str) -> RecordedTurn:
    return RecordedTurn(
        turn=Turn(
            n=n,
            agent=agent,
            run=RUN,
            turn=id,
            actor=actor,
            payer=Account("acme.example", payer),
            created=n,
            ended=100,
            state="done",
            correlation=asked,
        )
    )


def test_two_callers_that_share_a_run_are_each_answered_from_their_own_record() -> None:
    roots = [
        turn(1, "front", actor="token:a", payer="a", id="turn_x", asked="one"),
        turn(2, "front", actor="token:b", payer="b", id="turn_x", asked="two"),
    ]
    child = f"{RUN}.t0.critic"
    children = [
        turn(3, "critic", actor=f"{IN_PROCESS}front", payer="b", id=child, asked="two"),
        turn(4, "critic", actor=f"{IN_PROCESS}front", payer="a", id=child, asked="one"),
    ]
    run = RecordedRun(RUN, [*roots, *children])
    assert run.child(roots[0].turn, child) is children[1]
    assert run.child(roots[1].turn, child) is children[0]
    assert run.children(roots[0].turn) == [children[1]]
    assert run.above("critic") == {1, 2, 3, 4}
