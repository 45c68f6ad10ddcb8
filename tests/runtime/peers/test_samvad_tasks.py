"""Agents elsewhere whose skills are to be had as tasks alone, called like any other."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from carnet.core.messages.events import RESULT, Done, Extension, Text, Usage
from carnet.errors import PeerRefused, PeerResponseInvalid, ProviderError
from carnet.ports.world.http_client import NotSent
from carnet.testing.wait import until_so
from carnet.wire import travel
from carnet.wire.crypto import ed25519
from carnet.wire.dialects import samvad
from tests.runtime.agents.test_samvad_peer import asking, call_record, reaching
from tests.runtime.peer import LONG
from tests.runtime.peers.globex import ADD, THEIRS, WELL, card, refusal
from tests.runtime.peers.task_peer import TASK, UNKNOWN, Taskful, task_record
from tests.runtime.scene import collect, fail, make_call

LATER = replace(ADD, id="later", modes=("async",), input_schema={"required": ["text"]})
PAGE = card(skills=(LATER,))
DONE = task_record("done", result={"text": "well"})


def peer_of(*looks: bytes, **more: Any) -> Taskful:
    return Taskful(*looks, page=PAGE, **more)


async def test_a_skill_that_is_only_to_be_had_as_a_task_is_waited_for() -> None:
    peer = peer_of(task_record("pending"), task_record("running", progress=0.5), DONE)
    async with reaching(peer) as at:
        events = await collect(at.agent, make_call())
    assert events == [Text("well"), Usage(cost=0), call_record("done"), Done()]
    (sent,) = peer.bodies
    assert (sent["mode"], sent["skill"], sent["spanId"]) == ("async", "later", "run_1.t0.critic")
    assert peer.cancels == []


async def test_it_is_answered_in_one_piece_as_well_and_asked_for_by_name() -> None:
    peer = peer_of(task_record("done", result={"total": 5}))
    async with reaching(peer) as at:
        events = await collect(at.agent, asking("later", {"a": 2}, stream=True))
    assert events == [Extension(RESULT, {"total": 5}), Usage(cost=0), call_record("done"), Done()]
    assert peer.bodies[0]["mode"] == "async"


async def test_a_skill_with_another_mode_is_not_made_a_task() -> None:
    page = card(skills=(replace(LATER, modes=("async", "sync")),))
    peer = Taskful(WELL, page=page)
    async with reaching(peer) as at:
        assert Text("well") in await collect(at.agent, make_call())
    assert [body["mode"] for body in peer.bodies] == ["sync"]


async def test_a_task_that_fails_is_an_error_with_its_code_and_leaves_a_record() -> None:
    failed = task_record("failed", error={"code": "SCHEMA_INVALID", "message": "canary"})
    async with reaching(peer_of(failed)) as at:
        error, events = await fail(at.agent, make_call())
    assert isinstance(error, PeerRefused)
    assert events[-1] == call_record("refused", code="peer_refused")
    assert "canary" not in str(error)


CANCELLED = task_record(
    "failed",
    error={"code": "AGENT_UNAVAILABLE", "message": "x"},
    headers={"carnet-code": "cancelled"},
)


@pytest.mark.parametrize("end", [UNKNOWN, CANCELLED])
async def test_a_task_that_is_forgotten_or_ended_over_there_is_their_fault(end: bytes) -> None:
    peer = peer_of(end)
    async with reaching(peer) as at:
        error, events = await fail(at.retrying(), make_call())
    assert type(error) is ProviderError
    assert events[-1] == call_record("failed", code="provider_error")
    assert len(peer.begun) == 1


async def test_a_task_that_was_begun_is_never_begun_again_because_it_cannot_be_asked_for() -> None:
    peer = peer_of(refusal(429, "RATE_LIMITED", {"retry-after": "1"}))
    async with reaching(peer) as at:
        at.agent._tasks._sleep = at.clock.sleep  # noqa: SLF001
        error, _ = await fail(at.retrying(), make_call())
    assert error.code == "provider_unavailable"
    assert not isinstance(error.__cause__, NotSent)
    assert len(peer.begun) == 1


@pytest.mark.parametrize("is_carnet", [False, True])
async def test_who_leaves_asks_a_carnet_for_the_end_of_the_task(
    is_carnet: bool,  # noqa: FBT001
) -> None:
    peer = peer_of(task_record("running"), is_carnet=is_carnet)
    async with reaching(peer) as at:
        waiting = asyncio.ensure_future(collect(at.agent, make_call()))
        await until_so(lambda: bool(peer.looks))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            async with asyncio.timeout(LONG):
                await waiting
        await until_so(lambda: not at.agent._tasks._leaving)  # noqa: SLF001
    assert len(peer.cancels) == is_carnet


# ---------------------------------------------------------------------- what a Carnet proves


def proved(*, text: str = "well", cost: int = 700) -> bytes:
    receipt = travel.Receipt(
        issuer="globex.example",
        audience="acme.example",
        issued=1_800_000_000,
        run="run_1",
        turn="run_1.t0.critic",
        cost=cost,
        currency="credits",
        calls=1,
        max_depth=1,
        digest=travel.answer_digest({"text": text}),
        keyid="theirs",
    )
    jws = travel.write_receipt(receipt, sign=lambda message: ed25519.sign(THEIRS, message))
    return task_record("done", result={"text": "well"}, headers={travel.RECEIPT_HEADER: jws})


async def test_a_listed_carnet_proves_the_end_of_a_task_like_an_answer() -> None:
    peer = peer_of(task_record("running"), proved(), is_carnet=True)
    async with reaching(peer, listed="globex.example", most_cost=1000) as at:
        events = await collect(at.agent, make_call())
    assert events[:2] == [Text("well"), Usage(cost=700)]
    assert events[-1] == Done()


@pytest.mark.parametrize("end", [DONE, proved(text="ill")])
async def test_an_end_that_a_listed_carnet_does_not_prove_is_none(end: bytes) -> None:
    peer = peer_of(end, is_carnet=True)
    async with reaching(peer, listed="globex.example", most_cost=1000) as at:
        error, _ = await fail(at.agent, make_call())
    assert isinstance(error, PeerResponseInvalid)


def test_the_card_of_the_scene_says_what_the_tests_rely_on() -> None:
    (skill,) = samvad.read_card(PAGE).skills
    assert skill.modes == ("async",)
    assert TASK
