"""The journal of a dialogue in the steps of a turn: what is held back, and what is noted again."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from carnet.core.chain.turn import Turn
from carnet.core.dialogue.events import (
    DialogueEvent,
    TurnDiscarded,
    TurnEnded,
    TurnSkipped,
    TurnStarted,
)
from carnet.core.dialogue.transcript import SpokenTurn
from carnet.core.messages.events import CHILD, Extension, Usage
from carnet.errors import Cancelled
from carnet.ports.calls.steps import Step
from carnet.runtime.dialogue.attempt import AttemptOutput
from carnet.runtime.dialogue.hosted.pages import DialoguesWithin, TurnDialogues
from tests.runtime.scene import make_call

SKIPPED = TurnSkipped(
    run_id="r", index=1, speaker="b", turn_id="t1", attempts=1, code="x", message="", at=0
)


FAILED = TurnDiscarded(
    run_id="r", index=0, speaker="a", turn_id="t0", attempt=1, code="x", message="", at=0
)


class MemorySteps:
    """Keeps steps as long as the test lasts."""

    def __init__(self) -> None:
        self.kept: list[Step] = []

    async def of(self, turn: Turn) -> Sequence[Step]:
        del turn
        return sorted(self.kept, key=lambda step: step.place)

    async def check(self, turn: Turn) -> None:
        """It is always ours."""

    async def keep(self, turn: Turn, step: Step) -> None:
        del turn
        self.kept.append(step)


def spoken(turn: str) -> TurnEnded:
    return TurnEnded(
        run_id="r", turn=SpokenTurn(index=0, speaker="a", turn_id=turn, text="x"), at=0
    )


def journal(steps: MemorySteps) -> tuple[DialoguesWithin, AttemptOutput]:
    out = AttemptOutput()
    return DialoguesWithin(TurnDialogues(make_call().record, steps, out)), out


async def read(
    steps: MemorySteps, scope: str = "t"
) -> tuple[Sequence[DialogueEvent], AttemptOutput]:
    dialogues, out = journal(steps)
    async with dialogues.hold("r", scope) as pages:
        return await pages.read(), out


async def test_what_a_record_holds_is_held_back_until_something_else_is_kept() -> None:
    steps = MemorySteps()
    dialogues, _ = journal(steps)
    dialogues.dialogues.recorded.add("t0")
    started = TurnStarted(run_id="r", index=0, speaker="a", turn_id="t0", attempt=1, at=0)
    async with dialogues.hold("r", "t") as pages:
        await pages.append([started])
        await pages.append([spoken("t0")])
        assert steps.kept == []
        await pages.append([SKIPPED])
    assert (await read(steps))[0] == [spoken("t0"), SKIPPED]
    assert (await read(steps, "another"))[0] == []


async def test_the_end_of_who_waits_no_more_is_not_written() -> None:
    steps = MemorySteps()
    dialogues, _ = journal(steps)
    async with dialogues.hold("r", "t") as pages:
        await pages.append([replace(FAILED, code=Cancelled.code)])
        assert steps.kept == []
        await pages.append([FAILED])
    assert len((await read(steps))[0]) == 2


async def spoken_within(dialogues: DialoguesWithin, end: DialogueEvent) -> None:
    """A turn t0 that a dialogue speaks, in which x has a call made; it ends so."""
    async with dialogues.hold("r", "t") as pages:
        note = dialogues.dialogues.note
        note(dialogues.path("t0"), Usage(tokens_in=3, tokens_out=4))
        async with dialogues.hold("r", "t0") as within:
            note(dialogues.path("t0.x"), Extension(CHILD, {"to": "b", "index": 1, "cost": 5}))
            await within.append([spoken("t0.x")])
        note(dialogues.path("t1"), Usage(tokens_in=100))  # of a turn that has not ended
        await pages.append([end])


@pytest.mark.parametrize("end", [spoken("t0"), FAILED])
async def test_what_was_used_and_called_is_noted_once_by_whoever_reads(end: DialogueEvent) -> None:
    """Also where the turn is tried again, and what is within it is read as well."""
    steps = MemorySteps()
    dialogues, _ = journal(steps)
    await spoken_within(dialogues, end)
    dialogues, out = journal(steps)
    async with dialogues.hold("r", "t") as pages:
        assert await pages.read() == [end]
        for _ in range(2):
            async with dialogues.hold("r", "t0") as within:
                assert await within.read() == [spoken("t0.x")]
    assert (out.tokens_in, out.tokens_out, out.cost) == (3, 4, 5)


async def test_what_is_held_back_within_is_written_with_the_end_of_what_it_is_within() -> None:
    steps = MemorySteps()
    dialogues, _ = journal(steps)
    dialogues.dialogues.recorded.add("t0.x")
    await spoken_within(dialogues, FAILED)
    assert (await read(steps))[0] == [FAILED]
    dialogues, out = journal(steps)
    async with dialogues.hold("r", "t"), dialogues.hold("r", "t0") as within:
        assert await within.read() == [spoken("t0.x")]
    assert out.cost == 5
