"""Tasks at the gate: judged like calls, counted by sender, and accepted under one id."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from carnet.core.call import Claim
from carnet.core.messages.interrupt import Interrupt, InterruptRecord, hash_state
from carnet.core.sealed_call import read_sealed_call
from carnet.errors import CallbackForbidden, SchemaInvalid, TaskNotFound, TooManyTasks
from carnet.guards.target.target import CallbackCheck
from carnet.ports.calls.tasks import StoredTask, TaskClaim
from carnet.ports.calls.turns import Answer, TurnClaim, Verdict
from carnet.testing.turns import MemoryTurns
from tests.guards.scene import claim as token_claim
from tests.guards.signed_scene import NOW, STRANGER, SignedScene, signed_claim, travelled
from tests.guards.signed_scene import document as travel_document

ASKED = Interrupt(id="int_1", state="secret", kind="input", message="What for?")


class Noting(MemoryTurns):
    """Keeps what it was asked to claim; claims may bring an answer."""

    def __init__(self) -> None:
        super().__init__()
        self.claims: list[TurnClaim] = []
        self.answer: Answer | None = None

    async def claim(self, claim: TurnClaim) -> Verdict:
        self.claims.append(claim)
        return await super().claim(replace(claim, resolution=self.answer))


class Accepted:
    """The tasks of turns, by their number."""

    def __init__(self) -> None:
        self.found: dict[int, StoredTask] = {}

    async def of_turn(self, turn: int) -> StoredTask | None:
        return self.found.get(turn)


def scene(
    *, most: int = 1000, callbacks: CallbackCheck | None = None
) -> tuple[SignedScene, Noting, Accepted]:
    turns, accepted = Noting(), Accepted()
    made = SignedScene(turns=turns, tasks=accepted, tasks_per_sender=most, callbacks=callbacks)
    return made, turns, accepted


def asked(claims: Sequence[TurnClaim]) -> TaskClaim:
    task = claims[-1].task
    assert task is not None
    return task


def task(span: str = "span-1", nonce: str = "nonce-00000001", **fields: Any) -> Claim:
    return replace(signed_claim(span=span, nonce=nonce, **fields), is_task=True)


async def test_a_task_is_claimed_with_its_sealed_call_and_no_longer_counts_as_open() -> None:
    here, turns, _ = scene()
    call = await here.gate.admit(task())
    kept = asked(turns.claims)
    assert call.task == kept.id
    assert (kept.sender, kept.skill, kept.callback) == (STRANGER, "chat", None)
    assert read_sealed_call(kept.call_bytes).admitted.ask == call.ask
    assert here.concurrency.total == 0


async def test_a_deadline_from_outside_is_kept_by_the_clock_that_all_share() -> None:
    here, turns, _ = scene()
    paper = travel_document(deadline_ms=NOW // 1000 + 5000)
    claim = signed_claim(proof=travelled(document=paper))
    await here.gate.admit(replace(claim, is_task=True, marks=()))
    deadline = read_sealed_call(asked(turns.claims).call_bytes).deadline
    assert deadline is not None
    assert deadline == pytest.approx(NOW / 1_000_000 + 5)


async def test_a_repeat_gets_the_id_of_the_first_and_none_when_that_is_forgotten() -> None:
    here, _, accepted = scene()
    first = await here.gate.admit(task())
    with pytest.raises(TaskNotFound):
        await here.gate.admit(task(nonce="nonce-00000002"))
    assert first.task is not None
    accepted.found[first.record.n] = StoredTask(id=first.task, turn=first.record, sender=STRANGER)
    again = await here.gate.admit(task(nonce="nonce-00000003"))
    assert (again.task, again.known) == (first.task, True)


async def test_a_task_that_runs_on_after_it_has_waited_keeps_its_id() -> None:
    here, turns, accepted = scene()
    first = await here.gate.admit(task())
    waiting = replace(first.record, state="waiting")
    turns.turns[1] = waiting
    turns.interrupted[1] = [InterruptRecord(interrupt=ASKED, status="open", expires=NOW + 1)]
    accepted.found[1] = StoredTask(id="first", turn=waiting, sender=STRANGER)
    turns.answer = Answer(state_hash=hash_state(ASKED.state), outcome="accepted")
    again = await here.gate.admit(task(nonce="nonce-00000002"))
    assert (again.known, again.record.attempt, again.task) == (False, 1, "first")


async def test_unfinished_tasks_are_counted_by_sender() -> None:
    here, _, _ = scene(most=1)
    await here.gate.admit(task())
    with pytest.raises(TooManyTasks):
        await here.gate.admit(task("span-2", "nonce-00000002"))


async def test_a_skill_that_is_no_task_is_refused_at_once() -> None:
    here, turns, _ = scene()
    desk = replace(signed_claim("desk", skill="open"), is_task=True)
    with pytest.raises(SchemaInvalid, match="cannot be a task"):
        await here.gate.admit(desk)
    assert turns.claims == []


async def test_what_is_asked_with_a_token_is_a_task_too_and_its_callback_is_judged() -> None:
    here, turns, _ = scene()
    plain = replace(token_claim("echo"), is_task=True)
    call = await here.gate.admit(plain)
    assert asked(turns.claims).sender == call.caller.actor.name
    with pytest.raises(CallbackForbidden):
        await here.gate.admit(replace(plain, callback="https://hooks.example/in"))
    judged: list[tuple[str, str]] = []

    class Judging:
        async def check(self, url: str, sender: str, /) -> None:
            judged.append((url, sender))

    here, _, _ = scene(callbacks=Judging())
    called = replace(token_claim("echo"), is_task=True, callback="https://hooks.example/in")
    await here.gate.admit(called)
    assert judged == [("https://hooks.example/in", call.caller.actor.name)]
