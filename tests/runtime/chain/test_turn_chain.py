"""What the code of an agent calls by itself, with `carnet.connect` or a driver, in its turn."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import carnet
from carnet.core.call import Call
from carnet.core.messages.events import Done, Extension, Text, joined_text
from carnet.core.messages.output import Sink
from carnet.core.people.identity import Secret
from carnet.errors import Cancelled, ChainMismatch, PeerNotListed
from carnet.ports.engine.loop import Engine, LoopTurn
from carnet.ports.engine.tools import ToolUse
from carnet.runtime.agents.engine import EngineAgent
from carnet.runtime.agents.python import Native
from carnet.runtime.skills.definition import define
from carnet.runtime.tools.function import FunctionTool
from carnet.runtime.visit.dispatch import Dispatching
from carnet.runtime.visit.loop_visit import CallsOut
from carnet.testing.turns import MemoryTurns
from carnet.wire.dialects.openai.members import Passing
from tests.assembly.dialogue.speakers import Speaker
from tests.runtime.peer import Peer, answering, reply
from tests.runtime.peers.globex import Globex, answer
from tests.runtime.scene import collect, completion, make_call
from tests.runtime.stage import gate_and_journal

BEARER = "Bearer sk-tan-user-123"
DEPTH = carnet.DepthExceeded.code


def dispatch() -> Dispatching:
    made = Dispatching()
    made.connect(*gate_and_journal(MemoryTurns()))
    return made


def native(agent: Any, **more: Any) -> Native:
    return Native(agent, dispatch(), last_depth=3, **more)


class Doors:
    """Ways of one agent to dial out: each says what came of it."""

    def __init__(self, folder: Path, url: str, auth: str | None = None) -> None:
        self._folder = folder
        self._url = url
        self._auth = auth

    async def dialled(self, run: str | None = None) -> str:
        try:
            async with carnet.connect(self._url, key=self._folder / "k", auth=self._auth) as client:
                within = client if run is None else client.within(trace_id=run)
                return str((await within.call("chat", text="Well?"))["text"])
        except carnet.CarnetError as error:
            return error.code

    async def streamed(self) -> str:
        try:
            async with carnet.connect(self._url, key=self._folder / "k") as client:
                return "".join(
                    [each.text async for each in client.stream("chat") if isinstance(each, Text)]
                )
        except carnet.CarnetError as error:
            return error.code

    async def conversed(self) -> str:
        people = [carnet.Participant(target=self._url, name="critic"), Speaker("b")]
        try:
            result = await carnet.run_conversation(people, max_turns=1)
        except carnet.CarnetError as error:
            return error.code
        return result.halted.code or result.text

    # The kinds of functions that an agent may be, and what they may do to leave their context.

    async def awaits(self, _: carnet.Visit) -> str:
        return await self.dialled()

    async def yields(self, _: carnet.Visit) -> AsyncIterator[str]:
        yield await self.dialled()

    async def tasks(self, _: carnet.Visit) -> str:
        return await asyncio.create_task(self.dialled())

    async def threads(self, _: carnet.Visit) -> str:
        return await asyncio.to_thread(asyncio.run, self.dialled())

    def plain(self, _: carnet.Visit) -> str:
        return asyncio.run(self.dialled())

    def generates(self, _: carnet.Visit) -> Iterator[str]:
        yield asyncio.run(self.dialled())

    async def reads(self, _: carnet.Visit) -> str:
        return await self.streamed()

    async def steps(self, visit: carnet.Visit) -> str:
        return str(await visit.step("dial", self.dialled))

    async def drives(self, _: carnet.Visit) -> str:
        return await self.conversed()

    def drives_plainly(self, _: carnet.Visit) -> str:
        return asyncio.run(self.conversed())


CLIENTS = ("awaits", "yields", "tasks", "threads", "plain", "generates")
EVERY = (*CLIENTS, "reads", "steps", "drives", "drives_plainly")


@pytest.mark.parametrize("door", CLIENTS)
async def test_what_an_agent_connects_to_is_a_call_out_of_its_turn(
    tmp_path: Path, door: str
) -> None:
    async with Globex(answer(text="well"), is_carnet=True) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        events = await collect(native(getattr(Doors(tmp_path, url), door)), make_call(depth=1))
        (sent,) = [request.headers for request in peer.posts]
    assert joined_text(events) == "well"
    assert (sent[carnet.RUN_ID], sent[carnet.FORWARDED_DEPTH]) == ("run_1", "2")
    assert sent[carnet.PARENT_TURN_ID] == "run_1.t0.critic"
    (noted,) = [event.payload for event in events if isinstance(event, Extension)]
    assert (noted["to"], noted["turn"], noted["depth"], noted["status"]) == (
        *(url, sent[carnet.TURN_ID], 2),
        "done",
    )


@pytest.mark.parametrize("door", EVERY)
async def test_the_last_hop_dials_nobody_whatever_its_code_says(tmp_path: Path, door: str) -> None:
    async with Globex(answer(text="well")) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        events = await collect(native(getattr(Doors(tmp_path, url), door)), make_call(depth=3))
        assert peer.requests == []
    assert joined_text(events) == DEPTH
    noted = [event.payload for event in events if isinstance(event, Extension)]
    if not door.startswith("drives"):  # a driver writes what it does in its own journal
        assert [(each["status"], each["code"], each["depth"]) for each in noted] == [
            ("refused", DEPTH, 4)
        ]


async def test_a_driver_in_a_turn_goes_on_with_its_chain(tmp_path: Path) -> None:
    async with Peer(answering(reply(completion("well")))) as peer:

        async def drives(visit: carnet.Visit) -> str:
            doors = Doors(tmp_path, peer.url)
            return await doors.conversed() + await doors.conversed() + visit.text

        events = await collect(native(drives), make_call(depth=1, text="."))
        sent = [request.headers for request in peer.requests]
    assert joined_text(events) == "wellwell."
    assert {each[carnet.RUN_ID] for each in sent} == {"run_1"}
    assert {each[carnet.FORWARDED_DEPTH] for each in sent} == {"2"}
    assert {each[carnet.PARENT_TURN_ID] for each in sent} == {"run_1.t0.critic"}
    assert len({each[carnet.TURN_ID] for each in sent}) == 2


async def test_no_two_calls_out_of_a_turn_share_an_id_and_a_rerun_makes_the_same(
    tmp_path: Path,
) -> None:
    async with Globex(answer(text="well"), is_carnet=True) as peer:
        doors = Doors(tmp_path, f"http://127.0.0.1:{peer.port}")

        async def dials(visit: carnet.Visit) -> str:
            try:
                await visit.peer("nobody").ask("?")  # which has the first place
            except carnet.CarnetError:
                await doors.dialled()
            return await doors.dialled()

        for _ in range(2):
            await collect(native(dials), make_call(depth=1))
        turns = [request.headers[carnet.TURN_ID] for request in peer.posts]
    assert turns[:2] == turns[2:]
    assert len(set(turns)) == 2
    assert ".t0." not in turns[0] + turns[1]


async def test_who_has_ended_calls_nobody_and_no_turn_names_another_run(tmp_path: Path) -> None:
    async with Globex(answer(text="well")) as peer:
        doors = Doors(tmp_path, f"http://127.0.0.1:{peer.port}")
        ended, left = asyncio.Event(), list[asyncio.Task[str]]()

        async def later() -> str:
            await ended.wait()
            return await doors.dialled()

        async def leaves(_: carnet.Visit) -> str:
            left.append(asyncio.create_task(later()))
            return await doors.dialled(run="run_2")

        events = await collect(native(leaves), make_call(depth=1))
        ended.set()
        assert await left[0] == Cancelled.code
        assert peer.requests == []
    assert joined_text(events) == ChainMismatch.code


@pytest.mark.parametrize(
    ("auth", "auth_source", "came"),
    [
        (None, "forward-user", PeerNotListed.code),
        ("forward-user", "forward-user", PeerNotListed.code),  # in a gateway the operator lists
        ("agent-owned", "forward-user", "well"),
        (None, "agent-owned", "well"),
    ],
)
async def test_a_payers_credential_leaves_to_nobody_whom_the_operator_has_not_listed(
    tmp_path: Path, auth: str | None, auth_source: str, came: str
) -> None:
    async with Globex(answer(text="well")) as peer:
        doors = Doors(tmp_path, f"http://127.0.0.1:{peer.port}", auth)
        call = make_call(depth=1, credential=Secret(BEARER))
        events = await collect(native(doors.awaits, auth_source=auth_source), call)
        assert joined_text(events) == came
        assert len(peer.posts) == (came == "well")
        assert all(carnet.FORWARDED_AUTHORIZATION not in each.headers for each in peer.posts)


async def test_nor_does_a_driver_in_a_turn_send_it(tmp_path: Path) -> None:
    async with Peer(answering(reply(completion("well")))) as peer:
        doors = Doors(tmp_path, peer.url)
        call = make_call(depth=1, credential=Secret(BEARER))
        events = await collect(native(doors.drives), call)
        assert joined_text(events) == PeerNotListed.code
        assert peer.requests == []


def engine(
    *functions: Callable[..., Any],
) -> Engine:
    """A loop that uses each of its tools at once, and says what they gave."""
    tools = [FunctionTool(function) for function in functions]

    async def answers(turn: LoopTurn, sink: Sink, /) -> Done:
        uses = [
            tool(
                ToolUse(
                    arguments={}, call=f"c{place}", actor=turn.actor, correlation="c", place=place
                )
            )
            for place, tool in enumerate(tools)
        ]
        await sink.write(Text(" ".join([str(each) for each in await asyncio.gather(*uses)])))
        return Done()

    return answers


async def loop_asked(call: Call, *functions: Callable[..., Any]) -> str:
    agent = EngineAgent(
        engine(*functions),
        CallsOut(dispatch=dispatch(), last_depth=3),
        system=None,
        passing=Passing(),
        steps=None,
    )
    return joined_text(await collect(agent, call))


async def test_functions_that_are_tools_of_a_loop_go_on_with_its_turn(tmp_path: Path) -> None:
    async with Globex(answer(text="well"), is_carnet=True) as peer:
        doors = Doors(tmp_path, f"http://127.0.0.1:{peer.port}")

        async def awaits() -> str:
            return await doors.dialled() + await doors.dialled()

        def plain() -> str:
            return asyncio.run(doors.dialled())

        async def drives() -> str:
            return await doors.conversed()

        final = await loop_asked(make_call(depth=3), awaits, plain, drives)
        assert (final, peer.requests) == (f"{DEPTH}{DEPTH} {DEPTH} {DEPTH}", [])
        for _ in range(2):
            assert await loop_asked(make_call(depth=1), awaits, plain) == "wellwell well"
        sent = [request.headers for request in peer.posts]
    assert {each[carnet.FORWARDED_DEPTH] for each in sent} == {"2"}
    assert {each[carnet.RUN_ID] for each in sent} == {"run_1"}
    turns = [each[carnet.TURN_ID] for each in sent]
    assert len(set(turns[:3])) == 3
    assert set(turns[:3]) == set(turns[3:])


async def test_a_skill_goes_on_with_its_turn_too(tmp_path: Path) -> None:
    async with Globex(answer(text="well")) as peer:
        doors = Doors(tmp_path, f"http://127.0.0.1:{peer.port}")
        agent = carnet.agent("dials")

        @agent.skill("chat")
        def dial(text: str) -> dict[str, str]:
            return {"text": text + asyncio.run(doors.dialled())}

        events = await collect(native(define(agent, "dials")), make_call(depth=3, text="?"))
        assert joined_text(events) == f"?{DEPTH}"
        assert peer.requests == []
