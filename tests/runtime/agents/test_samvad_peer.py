"""Agents that speak SAMVAD, byte by byte: what is sent to them and what becomes of the answer."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

import pytest
from msgspec.structs import replace

from carnet.core.call import Call
from carnet.core.messages.events import OUTBOUND_CALL, RESULT, Data, Done, Extension, Text, Usage
from carnet.core.people.identity import Secret
from carnet.errors import (
    PeerAgentNotFound,
    PeerBusy,
    PeerNotListed,
    PeerRefused,
    PeerResponseInvalid,
    ProviderError,
    SkillNotFound,
)
from carnet.ports.calls.agent import Agent
from carnet.runtime.agents.samvad_peer import SamvadPeer
from carnet.runtime.client.key import ClientKey
from carnet.runtime.peers.cards import Site
from carnet.runtime.peers.samvad_client import RecipientClient, SamvadClient
from carnet.runtime.peers.samvad_request import Recipient, identities_of
from carnet.runtime.peers.signing import Stamping
from carnet.runtime.receipts.verification import Verifying
from carnet.runtime.wrappers.breaker import Breaker, Breaking
from carnet.runtime.wrappers.retrying import Retrying
from carnet.testing.clock import FakeClock, FakeIds
from carnet.testing.keys import MemoryRing
from carnet.testing.wait import until_so
from carnet.wire import travel
from carnet.wire.crypto import ed25519
from carnet.wire.dialects import samvad
from tests.runtime.peer import Line, opened, reply
from tests.runtime.peers.globex import (
    ADD,
    THEIRS,
    WELL,
    Globex,
    answer,
    card,
    form_of,
    frames,
    refusal,
)
from tests.runtime.scene import Paper, collect, fail, make_call

THREE = '("@method" "@path" "content-digest");keyid="k1";alg="ed25519";created='
OURS = ClientKey(b"o" * 32, kid="k1")


class Scene:
    """A way to that agent."""

    def __init__(self, client: RecipientClient, clock: FakeClock, **more: Any) -> None:
        self.clock = clock
        self.agent = SamvadPeer(client, **more)

    def retrying(self, retries: int = 2, of: Agent | None = None) -> Retrying:
        return Retrying(
            of or self.agent,
            retries=retries,
            clock=self.clock,
            ids=FakeIds(),
            sleep=self.clock.sleep,
        )


@asynccontextmanager
async def reaching(
    peer: Globex,
    *,
    path: str = "",
    identity: str | None = "agent://globex.example",
    identities: frozenset[str] | None = None,
    form: Literal["auto", "samvad", "carnet"] = "auto",
    listed: str | None = None,
    **more: Any,
) -> AsyncIterator[Scene]:
    clock, ids = FakeClock(), FakeIds()
    ring = MemoryRing()
    ring.pin("agent://globex.example", "theirs", ed25519.public_of(THEIRS))
    async with peer, opened() as http:
        recipient = Recipient(
            site=Site(f"http://127.0.0.1:{peer.port}{path}"),
            identities=identities or frozenset({identity} if identity else ()),
            peer=listed,
            form=form,
        )
        us = "agent://acme.example"
        verifying = Verifying(ring, domain="acme.example", currency="credits", clock=clock)
        client = SamvadClient.of(http, OURS, us, clock=clock, ids=ids, verifying=verifying)
        try:
            yield Scene(client.to(recipient), clock, **more)
        finally:
            await client.close()


def asking(skill: str, payload: dict[str, Any], *, stream: bool = False) -> Call:
    call = make_call(stream=stream)
    return replace(call, ask=replace(call.ask, skill=skill, payload=payload))


def call_record(status: str, **more: Any) -> Extension:
    call: dict[str, Any] = {"turn": "run_1.t0.critic", "to": "@critic@globex.example", "depth": 1}
    rest = {"status": status, "cost": 0, "code": None, "receipt": None}
    return Extension(OUTBOUND_CALL, call | rest | more)


# ---------------------------------------------------------------------- what is sent


async def test_an_answer_in_words_is_text_and_leaves_a_record_of_the_call() -> None:
    async with reaching(Globex(WELL)) as at:
        events = await collect(at.agent, make_call())
    assert events == [Text("well"), Usage(cost=0), call_record("done"), Done()]


async def test_the_envelope_names_sender_recipient_skill_run_and_turn() -> None:
    peer = Globex(WELL)
    async with reaching(peer, token=Secret("their-token")) as at:
        await collect(at.agent, make_call(parent_turn="run_1.t9.chair"))
    (body,) = peer.bodies
    assert body.pop("nonce")
    assert body.pop("timestamp") == "2027-01-15T08:00:00.000000Z"
    assert body == {
        "from": "agent://acme.example",
        "to": "agent://globex.example",
        "skill": "chat",
        "mode": "sync",
        "traceId": "run_1",
        "spanId": "run_1.t0.critic",
        "parentSpanId": "run_1.t9.chair",
        "auth": {"scheme": "bearer", "token": "their-token"},
        "payload": {"text": "hello"},
    }


async def test_the_request_goes_where_the_operator_said_and_is_signed_without_the_prefix() -> None:
    peer = Globex(WELL)
    async with reaching(peer, path="/agents/critic") as at:
        await collect(at.agent, make_call())
    (sent,) = peer.posts
    assert sent.lines[0] == "POST /agents/critic/agent/message HTTP/1.1"
    signed = sent.headers["signature-input"]
    assert signed.startswith(f"sig1={THREE}")
    line = signed.removeprefix("sig1=")
    base = '"@method": POST\n"@path": /agent/message\n"content-digest": '
    base += f'{sent.headers["content-digest"]}\n"@signature-params": {line}\n'
    made = sent.headers["signature"].removeprefix("sig1=:").removesuffix(":")
    assert made == b64encode(OURS.sign(base.encode())).decode()


async def test_the_chain_rides_in_headers_that_an_sdk_ignores() -> None:
    peer = Globex(WELL)
    async with reaching(peer) as at:
        await collect(at.agent, make_call())
    headers = peer.posts[0].headers
    assert headers["x-tangle-forwarded-depth"] == "1"
    assert headers["x-tangle-runid"] == "run_1"
    assert "traceparent" in headers
    assert "carnet" not in headers
    assert "authorization" not in headers


async def test_a_repeat_keeps_its_span_and_gets_a_nonce_of_its_own() -> None:
    busy = refusal(429, "RATE_LIMITED", {"retry-after": "1"})
    peer = Globex(busy, busy, WELL)
    async with reaching(peer) as at:
        assert Text("well") in await collect(at.retrying(), make_call())
    assert {body["spanId"] for body in peer.bodies} == {"run_1.t0.critic"}
    assert len({body["nonce"] for body in peer.bodies}) == 3


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, "AUTH_FAILED"),
        (401, "REPLAY_DETECTED"),
        (404, "SKILL_NOT_FOUND"),
        (400, "SCHEMA_INVALID"),
        (400, "INJECTION_DETECTED"),
        (400, "DELEGATION_EXCEEDED"),
    ],
)
async def test_a_policy_answer_is_final(status: int, code: str) -> None:
    peer = Globex(refusal(status, code))
    async with reaching(peer, form="samvad") as at:
        error, events = await fail(at.retrying(), make_call())
    assert isinstance(error, PeerRefused)
    assert error.facts["peer_code"] == code
    assert events[-1] == call_record("refused", code="peer_refused")
    assert len(peer.posts) == 1


async def test_connections_are_used_again() -> None:
    peer = Globex(WELL)
    async with reaching(peer) as at:
        for _ in range(5):
            await collect(at.agent, make_call())
    assert (len(peer.posts), peer.connections) == (5, 1)


# ---------------------------------------------------------------------- the form of the signature


async def test_a_carnet_is_sent_the_whole_profile_and_the_travel_document() -> None:
    peer = Globex(WELL, is_carnet=True)
    async with reaching(peer) as at:
        await collect(at.agent, make_call())
    (sent,) = peer.posts
    assert form_of(sent) == "carnet"
    assert '"x-tangle-forwarded-depth"' in sent.headers["signature-input"]
    document = travel.read(sent.headers["carnet"])
    assert (document.issuer, document.audience, document.depth) == (
        "acme.example",
        "globex.example",
        1,
    )


async def test_a_guessed_form_that_is_refused_is_followed_by_the_other_and_remembered() -> None:
    peer = Globex(refusal(401, "AUTH_FAILED"), WELL)
    async with reaching(peer) as at:
        for _ in range(3):
            await collect(at.agent, make_call())
    assert [form_of(request) for request in peer.posts] == ["samvad", "carnet", "carnet", "carnet"]
    assert len({body["nonce"] for body in peer.bodies}) == 4


async def test_a_carnet_is_never_sent_less_than_the_whole_profile() -> None:
    peer = Globex(refusal(401, "AUTH_FAILED"), is_carnet=True)
    async with reaching(peer) as at:
        error, _ = await fail(at.agent, make_call())
    assert error.facts["peer_code"] == "AUTH_FAILED"
    assert [form_of(request) for request in peer.posts] == ["carnet"]


async def test_when_neither_form_is_taken_the_guess_is_not_made_at_every_call() -> None:
    peer = Globex(refusal(401, "AUTH_FAILED"))
    async with reaching(peer) as at:
        for _ in range(3):
            error, _ = await fail(at.agent, make_call())
            assert error.facts["peer_code"] == "AUTH_FAILED"
        assert [form_of(request) for request in peer.posts] == [
            "samvad",
            "carnet",
            "samvad",
            "samvad",
        ]
        at.clock.advance(60)
        await fail(at.agent, make_call())
        assert len(peer.posts) == 6


@pytest.mark.parametrize("form", ["samvad", "carnet"])
async def test_a_form_that_the_operator_chose_is_no_guess(
    form: Literal["samvad", "carnet"],
) -> None:
    peer = Globex(refusal(401, "AUTH_FAILED"), is_carnet=form == "samvad")
    async with reaching(peer, form=form) as at:
        await fail(at.agent, make_call())
    assert [form_of(request) for request in peer.posts] == [form]


# ---------------------------------------------------------------------- who is there


async def test_a_card_of_somebody_else_is_not_believed_and_nothing_is_sent() -> None:
    peer = Globex(WELL, page=card(identity="agent://victim.example"))
    async with reaching(peer) as at:
        error, events = await fail(at.agent, make_call())
    assert type(error) is PeerAgentNotFound
    assert peer.posts == []
    assert events == [call_record("refused", code="peer_agent_not_found")]


async def test_the_default_agent_of_a_peer_has_a_name_and_the_identity_of_its_domain() -> None:
    peer = Globex(WELL, page=card(identity="agent://globex.example"))
    expected = identities_of("globex.example", "echo")
    async with reaching(peer, path="/agents/echo", identities=expected) as at:
        await collect(at.agent, make_call())
    assert peer.bodies[0]["to"] == "agent://globex.example"


async def test_an_agent_that_is_not_there_is_asked_for_once_and_leaves_the_others_alone() -> None:
    peer = Globex(WELL, page=b"")
    async with reaching(peer) as at:
        breaker = Breaker(failures_to_open=1, clock=at.clock)
        asked = at.retrying(of=Breaking(at.agent, breaker))
        errors = [(await fail(asked, make_call()))[0] for _ in range(3)]
    assert {type(error) for error in errors} == {PeerAgentNotFound}
    assert (breaker.state, breaker.failures, at.clock.slept) == ("closed", 0, [])


async def test_on_this_machine_a_host_says_nothing_of_who_is_meant() -> None:
    peer = Globex(WELL, page=card(identity="agent://whoever.example"))
    async with reaching(peer, identity=None) as at:
        await collect(at.agent, make_call())
    assert peer.bodies[0]["to"] == "agent://whoever.example"


@pytest.mark.parametrize(
    ("url", "identities", "believed"),
    [
        ("https://globex.example", (), "agent://globex.example"),
        ("https://gw.globex.example", ("agent://globex.example",), "agent://globex.example"),
        ("http://127.0.0.1:1", ("agent://globex.example",), "agent://127.0.0.1"),
        ("http://127.0.0.1:1", ("agent://globex.example",), "agent://localhost"),
    ],
)
def test_a_card_is_believed_for_its_host_and_for_whom_the_operator_expects(
    url: str, identities: Sequence[str], believed: str
) -> None:
    recipient = Recipient(site=Site(url), identities=frozenset(identities))
    recipient.check(samvad.read_card(card(identity=believed)))
    with pytest.raises(PeerAgentNotFound):
        recipient.check(samvad.read_card(card(identity="agent://victim.example")))


# ---------------------------------------------------------------------- text, skills and answers


async def test_plain_text_goes_to_the_only_skill_and_into_its_only_field() -> None:
    ask = replace(ADD, id="ask", input_schema={"required": ["question"]})
    peer = Globex(answer(reply="well"), page=card(skills=(ask,)))
    async with reaching(peer) as at:
        events = await collect(at.agent, make_call())
    (body,) = peer.bodies
    assert (body["skill"], body["payload"]) == ("ask", {"question": "hello"})
    assert events[0] == Text("well")


async def test_whoever_asks_in_words_gets_a_result_in_words() -> None:
    async with reaching(Globex(answer(total=5, of=[2, 3]))) as at:
        events = await collect(at.agent, make_call())
    assert events[0] == Text('{"total":5,"of":[2,3]}')


async def test_a_chat_that_came_signed_goes_to_the_skill_that_takes_text() -> None:
    ask = replace(ADD, id="ask", input_schema={"required": ["question"]})
    peer = Globex(answer(reply="well"), page=card(skills=(ask,)))
    async with reaching(peer) as at:
        events = await collect(at.agent, asking("chat", {"text": "hello"}))
    assert (peer.bodies[0]["skill"], peer.bodies[0]["payload"]) == ("ask", {"question": "hello"})
    assert events[0] == Text("well")


async def test_plain_text_goes_to_the_skill_that_the_operator_named() -> None:
    peer = Globex(WELL)
    async with reaching(peer, skill="greet") as at:
        await collect(at.agent, make_call())
    assert (peer.bodies[0]["skill"], peer.bodies[0]["payload"]) == ("greet", {"text": "hello"})


async def test_plain_text_has_no_place_among_several_skills_none_of_which_chats() -> None:
    peer = Globex(WELL, page=card(skills=(ADD, replace(ADD, id="sub"))))
    async with reaching(peer) as at:
        error, _ = await fail(at.agent, make_call())
    assert isinstance(error, SkillNotFound)
    assert peer.posts == []


async def test_a_skill_is_passed_on_by_name_with_its_payload_and_result() -> None:
    peer = Globex(answer(total=5))
    async with reaching(peer) as at:
        events = await collect(at.agent, asking("add", {"a": 2, "b": 3}))
    assert peer.bodies[0]["payload"] == {"a": 2, "b": 3}
    assert events == [Extension(RESULT, {"total": 5}), Usage(cost=0), call_record("done"), Done()]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
async def test_chunks_become_events_and_the_result_comes_last(end: str) -> None:
    chunks = [
        {"chunk": "so ", "done": False},
        {"chunk": {"n": 1}, "done": False},
        {"done": True, "result": {"total": 5}, "traceId": "run_1", "spanId": "s"},
    ]
    peer = Globex(frames(*chunks, end=end))
    async with reaching(peer) as at:
        events = await collect(at.agent, asking("tell", {}, stream=True))
    assert peer.posts[0].lines[0].split()[1] == "/agent/stream"
    assert peer.bodies[0]["mode"] == "stream"
    assert events == [
        Text("so "),
        Data({"n": 1}),
        Extension(RESULT, {"total": 5}),
        Usage(cost=0),
        call_record("done"),
        Done(),
    ]


async def test_a_skill_without_streams_is_called_without_one() -> None:
    peer = Globex(answer(total=5))
    async with reaching(peer) as at:
        await collect(at.agent, asking("add", {"a": 2, "b": 3}, stream=True))
    assert peer.bodies[0]["mode"] == "sync"


async def test_an_error_at_the_end_of_a_stream_is_raised_with_its_code() -> None:
    frame = {"done": True, "error": {"code": "AGENT_UNAVAILABLE", "message": "secret"}}
    async with reaching(Globex(frames(frame))) as at:
        error, events = await fail(at.agent, make_call(stream=True))
    assert isinstance(error, ProviderError)
    assert "secret" not in str(error)
    assert events[-1] == call_record("failed", code="provider_error")


async def test_a_stream_that_is_cut_off_has_failed() -> None:
    async with reaching(Globex(frames({"chunk": "so ", "done": False}))) as at:
        error, events = await fail(at.agent, make_call(stream=True))
    assert isinstance(error, ProviderError)
    assert events[0] == Text("so ")


@pytest.mark.parametrize("body", [b"", b"[]", b'{"status":"so"}', b'{"status":"ok","result":3}'])
async def test_what_is_no_answer_is_an_error_of_the_provider(body: bytes) -> None:
    async with reaching(Globex(reply(body))) as at:
        error, _ = await fail(at.agent, make_call())
    assert isinstance(error, ProviderError)


async def test_a_peer_that_is_busy_says_for_how_long() -> None:
    async with reaching(Globex(refusal(429, "RATE_LIMITED", {"retry-after": "7"}))) as at:
        error, events = await fail(at.agent, make_call())
    assert isinstance(error, PeerBusy)
    assert error.retry_after == 7
    assert events[-1] == call_record("refused", code="peer_busy")


# ---------------------------------------------------------------------- what a Carnet proves


def receipt(*, cost: int = 700, text: str = "well", turn: str = "run_1.t0.critic") -> str:
    issued = travel.Receipt(
        issuer="globex.example",
        audience="acme.example",
        issued=1_800_000_000,
        run="run_1",
        turn=turn,
        cost=cost,
        currency="credits",
        calls=1,
        max_depth=1,
        digest=travel.answer_digest({"text": text}),
        keyid="theirs",
    )
    return travel.write_receipt(issued, sign=lambda message: ed25519.sign(THEIRS, message))


def proved(jws: str) -> bytes:
    body = WELL.partition(b"\r\n\r\n")[2]
    return reply(body, headers={"content-type": "application/json", "carnet-receipt": jws})


@pytest.mark.parametrize(("charged", "owed"), [(700, 700), (5000, 1000)])
async def test_a_receipt_tells_the_cost_within_its_limit_and_is_kept(
    charged: int, owed: int
) -> None:
    signed = receipt(cost=charged)
    peer = Globex(proved(signed), is_carnet=True)
    async with reaching(peer, listed="globex.example", most_cost=1000) as at:
        events = await collect(at.agent, make_call())
    done = call_record("done", cost=owed, receipt=signed)
    assert events == [Text("well"), Usage(cost=owed), done, Done()]


@pytest.mark.parametrize(
    "given",
    [WELL, proved(receipt(text="ill")), proved(receipt(turn="run_1.t9.critic")), proved("x.y.z")],
)
async def test_an_answer_that_a_listed_carnet_does_not_prove_is_no_answer(given: bytes) -> None:
    peer = Globex(given, is_carnet=True)
    async with reaching(peer, listed="globex.example", most_cost=1000) as at:
        error, events = await fail(at.agent, make_call())
    assert isinstance(error, PeerResponseInvalid)
    assert not [event for event in events if isinstance(event, Usage | Done)]
    assert events[-1] == call_record("failed", cost=None, code="peer_response_invalid")


async def test_the_receipt_of_a_carnet_that_is_not_listed_counts_for_nothing() -> None:
    peer = Globex(proved(receipt()), is_carnet=True)
    async with reaching(peer, most_cost=1000) as at:
        events = await collect(at.agent, make_call())
    assert events == [Text("well"), Usage(), call_record("done", cost=None), Done()]


async def test_a_page_of_another_domain_does_not_make_a_carnet_of_a_peer() -> None:
    peer = Globex(WELL, is_carnet=True)
    async with reaching(peer, listed="initech.example") as at:
        await collect(at.agent, make_call())
    assert [form_of(request) for request in peer.posts] == ["samvad"]


# ---------------------------------------------------------------------- money and records


async def test_what_an_agent_with_a_price_charges_is_unknown_without_a_receipt() -> None:
    async with reaching(Globex(WELL), most_cost=1000) as at:
        events = await collect(at.agent, make_call())
    assert events == [Text("well"), Usage(), call_record("done", cost=None), Done()]


async def test_a_payers_credential_leaves_to_nobody_who_is_not_listed() -> None:
    peer = Globex(WELL)
    async with reaching(peer) as at:
        error, _ = await fail(at.agent, make_call(credential=Secret("Bearer sk-tan-1")))
    assert isinstance(error, PeerNotListed)
    assert peer.posts == []


async def test_a_payers_credential_leaves_to_whom_the_operator_has_listed() -> None:
    peer = Globex(WELL)
    async with reaching(peer, stamping=Stamping(takes_credential=True)) as at:
        await collect(at.agent, make_call(credential=Secret("Bearer sk-tan-1")))
    assert peer.posts[0].headers["x-tangle-forwarded-authorization"] == "Bearer sk-tan-1"


async def test_a_call_that_is_left_is_recorded_and_its_connection_ends() -> None:
    class Silent(Globex):
        async def _play(self, line: Line) -> None:
            await line.request()
            await line.say(reply(card()))
            await line.request()
            await line.say(reply(status=404))
            await line.request()
            await line.until_gone()

    peer = Silent(WELL)
    async with reaching(peer) as at:
        paper = Paper()
        task = asyncio.create_task(collect(at.agent, make_call(), paper))
        await until_so(lambda: len(peer.posts) == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until_so(peer.gone.is_set)
    assert paper.events == [call_record("failed", code="provider_timeout")]
