"""Functions that decide on the course of a conversation, or are told of it, and do not answer."""

import asyncio
from typing import Any

import pytest

import carnet
from tests.assembly.dialogue.speakers import Speaker


class Silent:
    """A function that never answers, from the so-manieth time on."""

    def __init__(self, answer: Any, *, first: int = 0) -> None:
        self.asked = asyncio.Event()
        self._answer = answer
        self._left = first

    async def __call__(self, _: object) -> Any:
        self._left -= 1
        if self._left >= 0:
            return self._answer
        self.asked.set()
        return await asyncio.Event().wait()


def scenes() -> dict[str, tuple[Silent, Any, dict[str, Any]]]:
    """Who is silent, who takes part, and what else is given."""
    pair = [Speaker("a", cost=1), Speaker("b", cost=1)]
    silent, auth = Silent(0, first=1), Silent("agent-owned", first=1)
    return {
        "halt_on": (silent, pair, {"halt_on": silent}),
        "order": (silent, pair, {"order": silent}),
        "on_event": (silent, pair, {"on_event": silent}),
        "auth": (auth, [carnet.Participant(target=each, auth=auth) for each in pair], {}),
    }


@pytest.mark.parametrize("who", list(scenes()))
async def test_a_deadline_holds_against(who: str) -> None:
    _, people, given = scenes()[who]
    result = await carnet.run_conversation(people, max_turns=9, deadline=0.1, **given)
    assert result.halted == carnet.Halt(kind="deadline")


@pytest.mark.parametrize("who", list(scenes()))
async def test_an_abort_holds_against(who: str) -> None:
    silent, people, given = scenes()[who]
    abort = asyncio.Event()
    run = asyncio.ensure_future(carnet.run_conversation(people, max_turns=9, abort=abort, **given))
    await silent.asked.wait()
    abort.set()
    assert (await run).halted == carnet.Halt(kind="abort")


async def test_who_is_told_of_it_is_told_of_its_end_when_its_time_is_over() -> None:
    seen: list[str] = []

    async def note(event: object) -> None:
        seen.append(type(event).__name__)

    async def slow(_: carnet.Visit) -> str:
        await asyncio.Event().wait()
        return "never"

    people = [Speaker("a", slow), Speaker("b")]
    await carnet.run_conversation(people, max_turns=2, deadline=0.05, on_event=note)
    assert seen[-2:] == ["TurnDiscarded", "ConversationEnded"]


async def test_an_order_may_be_asynchronous() -> None:
    async def always_b(_: carnet.DialogueState) -> str:
        return "b"

    people = [Speaker("a"), Speaker("b")]
    result = await carnet.run_conversation(people, order=always_b, max_turns=2)
    assert [turn.speaker for turn in result.transcript] == ["b", "b"]
