"""The journal of a dialogue in the steps of a turn: what is held back, and what is noted again."""

from collections.abc import Sequence

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
from carnet.runtime.dialogue.hosted.pages import TurnDialogues
from tests.runtime.scene import make_call

SKIPPED = TurnSkipped(
    run_id="r", index=1, speaker="b", turn_id="t1", attempts=1, code="x", message="", at=0
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


def journal(steps: MemorySteps) -> tuple[TurnDialogues, AttemptOutput]:
    out = AttemptOutput()
    return TurnDialogues(make_call().record, steps, out), out


async def read(
    steps: MemorySteps, scope: str = "t"
) -> tuple[Sequence[DialogueEvent], AttemptOutput]:
    dialogues, out = journal(steps)
    async with dialogues.hold("r", scope) as pages:
        return await pages.read(), out


async def test_what_a_record_holds_is_held_back_until_something_else_is_kept() -> None:
    steps = MemorySteps()
    dialogues, _ = journal(steps)
    dialogues.recorded.add("t0")
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
    gone = TurnDiscarded(
        run_id="r", index=0, speaker="a", turn_id="t0", attempt=1, code="x", message="", at=0
    )
    async with dialogues.hold("r", "t") as pages:
        await pages.append([replace(gone, code=Cancelled.code)])
        assert steps.kept == []
        await pages.append([gone])
    assert len((await read(steps))[0]) == 2


async def test_what_was_used_and_called_is_noted_again_with_the_end_that_is_read() -> None:
    steps = MemorySteps()
    dialogues, _ = journal(steps)
    async with dialogues.hold("r", "t") as pages:
        dialogues.note("t0", Usage(tokens_in=3, tokens_out=4))
        async with dialogues.hold("r", "t0") as within:
            dialogues.note("t0.x", Extension(CHILD, {"to": "b", "cost": 5}))
            await within.append([spoken("t0.x")])
        dialogues.note("t1", Usage(tokens_in=100))  # of a turn that has not ended
        await pages.append([spoken("t0")])
    events, out = await read(steps)
    assert events == [spoken("t0")]
    assert (out.tokens_in, out.tokens_out, out.cost) == (3, 4, 5)
    _, of_within = await read(steps, "t0")
    assert (of_within.tokens_in, of_within.cost) == (None, 5)
