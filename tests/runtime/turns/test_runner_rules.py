"""A call that rules answer runs on where it waits, for as long as somebody reads it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

from msgspec.structs import replace

from carnet.core.call import Call
from carnet.core.messages.events import Done, Failed, Text, Waiting, joined_text
from carnet.core.messages.interrupt import Interrupt, hash_state
from carnet.ports.calls.agent import Target
from carnet.ports.calls.turns import Answer, Claimed, TurnClaim
from carnet.runtime.turns.execution import MOST_WAITS
from carnet.runtime.visit.visit import Visit
from carnet.testing.wait import until_so
from tests.guards.scene import claim, target
from tests.runtime.stage import Stage, native, streamed

ASKS = Interrupt(kind="approval", message="May I?")


class Ruled(Stage):
    """A stage where what begins with "May I" is agreed to."""

    def __init__(self, *agents: Target) -> None:
        super().__init__(*agents)
        self.answered: list[str] = []
        self.journal.by_rule = self.by_rule

    async def by_rule(self, call: Call, asked: Sequence[Interrupt]) -> Call | None:
        runs_on = None
        for each in asked:
            if each.message.startswith("May I"):
                runs_on = await self.agree(call, each) or runs_on
        return runs_on

    async def agree(self, call: Call, asked: Interrupt) -> Call | None:
        self.answered.append(asked.message)
        verdict = await self.turns.claim(
            TurnClaim(
                admitted=call.admitted,
                key=call.record.key,
                digest=claim("x").digest,
                most_run_calls=0,
                now=1,
                request=b"",
                resolution=Answer(
                    state_hash=hash_state(asked.state), outcome="accepted", interrupt=asked.id
                ),
            )
        )
        return replace(call, record=verdict.turn) if isinstance(verdict, Claimed) else None


async def asks_twice(visit: Visit) -> str:
    await visit.interrupt(approval="May I begin?")
    await visit.interrupt(approval="May I end?")
    return visit.text


async def test_one_question_after_another_is_answered_in_the_same_call() -> None:
    stage = Ruled(target("asks", price=7, agent=native(asks_twice)))
    events = await stage.ask("asks")
    assert (joined_text(events), events[-1]) == ("hi", Done())
    assert stage.answered == ["May I begin?", "May I end?"]
    assert [debit.amount for debit in stage.turns.debits] == [7]
    assert stage.journal.running == 0


async def test_what_no_rule_answers_is_asked_and_only_that() -> None:
    async def asks(visit: Visit) -> str:
        first = visit.interrupt(approval="May I?")
        second = visit.interrupt(input="Which?")
        await asyncio.gather(first, second)
        return visit.text

    stage = Ruled(target("asks", agent=native(asks)))
    events = await stage.ask("asks")
    assert isinstance(events[-1], Waiting)
    assert [each.message for each in events[-1].interrupts] == ["Which?"]


async def test_an_agent_that_asks_for_ever_fails() -> None:
    async def asks(visit: Visit) -> str:
        while True:
            await visit.interrupt(approval="May I go on?")

    stage = Ruled(target("asks", agent=native(asks)))
    events = await stage.ask("asks")
    assert isinstance(events[-1], Failed)
    assert events[-1].code == "too_many_questions"
    assert len(stage.answered) == MOST_WAITS


async def test_a_stream_goes_on_where_it_was() -> None:
    async def speaks(_: Visit) -> AsyncIterator[str | Interrupt]:
        yield "one "
        yield ASKS
        yield "two"

    stage = Ruled(target("speaks", agent=native(speaks)))
    events = await stage.read(await stage.gate.admit(streamed("speaks")))
    assert [event for event in events if isinstance(event, Text)] == [Text("one "), Text("two")]
    assert events[-1] == Done()


async def test_who_leaves_a_stream_that_runs_on_ends_it() -> None:
    runs: list[str] = []

    async def speaks(_: Visit) -> AsyncIterator[str | Interrupt]:
        yield "one "
        yield ASKS
        runs.append("on")
        yield "two"
        await asyncio.Event().wait()

    stage = Ruled(target("speaks", agent=native(speaks)))
    call = await stage.gate.admit(streamed("speaks"))
    async with aclosing(stage.journal.batches(call)) as batches:
        async for batch in batches:
            if Text("two") in batch:
                break
    await until_so(lambda: stage.journal.running == 0)
    assert (runs, stage.turns.turns[1].code) == (["on"], "cancelled")


async def test_what_is_cancelled_while_a_rule_is_asked_does_not_run_on() -> None:
    stage = Ruled(target("asks", agent=native(asks_twice)))
    agree = stage.agree

    async def agree_and_stop(call: Call, asked: Interrupt) -> Call | None:
        stage.journal.stop([call.record.n])
        return await agree(call, asked)

    stage.agree = agree_and_stop  # type: ignore[method-assign]  # it is told to stop just then
    events = await stage.ask("asks")
    assert isinstance(events[-1], Failed)
    assert (events[-1].code, stage.answered) == ("cancelled", ["May I begin?"])
