"""Agents that speak SAMVAD, asked for their answer in one piece: it says what the stream would."""

import asyncio

import pytest

from carnet.core.messages.events import Done, Text, Usage
from carnet.errors import PeerBusy, PeerResponseInvalid, ProviderError
from carnet.testing.wait import until_so
from tests.runtime.agents.test_samvad_peer import call_record, proved, reaching, receipt
from tests.runtime.peer import Line, reply
from tests.runtime.peers.globex import WELL, Globex, card, frames, refusal
from tests.runtime.scene import Paper, collect, make_call


async def test_a_receipt_tells_the_cost_of_an_answer_in_one_piece() -> None:
    signed = receipt(cost=5000)
    peer = Globex(proved(signed), is_carnet=True)
    async with reaching(peer, listed="globex.example", most_cost=1000) as at:
        events = await collect(at.agent, make_call())
    done = call_record("done", cost=1000, receipt=signed)
    assert events == [Text("well"), Usage(cost=1000), done, Done()]


async def test_an_answer_in_one_piece_must_be_proved_as_well() -> None:
    paper = Paper()
    peer = Globex(WELL, is_carnet=True)
    async with reaching(peer, listed="globex.example", most_cost=1000) as at:
        with pytest.raises(PeerResponseInvalid):
            await at.agent(make_call(), paper)
    assert paper.events[-1] == call_record("failed", cost=None, code="peer_response_invalid")
    assert not [event for event in paper.events if isinstance(event, Usage | Done)]


async def test_a_guessed_form_that_is_refused_is_followed_by_the_other() -> None:
    peer = Globex(refusal(401, "AUTH_FAILED"), WELL)
    async with reaching(peer) as at:
        events = await collect(at.agent, make_call())
    assert events == [Text("well"), Usage(cost=0), call_record("done"), Done()]
    assert len(peer.posts) == 2


async def test_a_refusal_leaves_its_record_kept() -> None:
    paper = Paper()
    async with reaching(Globex(refusal(429, "RATE_LIMITED", {"retry-after": "7"}))) as at:
        with pytest.raises(PeerBusy) as refused:
            await at.agent(make_call(), paper)
    assert refused.value.facts["sender"] == "agent://acme.example"
    assert paper.events == [call_record("refused", code=refused.value.code)]


async def test_what_was_said_before_an_answer_broke_off_is_kept() -> None:
    paper = Paper()
    async with reaching(Globex(frames({"chunk": "so ", "done": False}))) as at:
        with pytest.raises(ProviderError):
            await at.agent(make_call(), paper)
    assert paper.events == [Text("so "), call_record("failed", code="provider_error")]


async def test_a_call_that_is_left_while_it_waits_for_its_answer_is_recorded() -> None:
    class Silent(Globex):
        async def _play(self, line: Line) -> None:
            for page in (reply(card()), reply(status=404)):
                await line.request()
                await line.say(page)
            await line.request()
            await line.until_gone()

    paper, peer = Paper(), Silent(WELL)
    async with reaching(peer) as at:
        task = asyncio.create_task(at.agent(make_call(), paper))
        await until_so(lambda: len(peer.posts) == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert paper.events == [call_record("failed", code="provider_timeout")]


async def test_a_fault_of_ours_leaves_a_record_without_a_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paper = Paper()
    async with reaching(Globex(WELL)) as at:

        async def broken(*_: object) -> None:
            raise LookupError

        monkeypatch.setattr(at.agent, "_request", broken)
        with pytest.raises(LookupError):
            await at.agent(make_call(), paper)
    assert paper.events == [call_record("failed")]
