"""What a driver sends: the headers of every participant, and what it makes of the answers."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import carnet
from carnet.errors import ChainMismatch, ConfigInvalid, MalformedCallerContext
from tests.assembly.dialogue.speakers import Speaker, texts
from tests.runtime.peer import Peer, answering, reply
from tests.runtime.peers.globex import Globex, answer

BEARER = "Bearer sk-tan-user-123"
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
FORWARDED = {"x-tangle-forwarded-authorization": BEARER}


def completion(text: str, **usage: Any) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}}
    body: dict[str, Any] = {
        "object": "chat.completion",
        "choices": [choice | {"finish_reason": "stop"}],
    }
    if usage:
        body["usage"] = usage
    return reply(json.dumps(body).encode())


def chain(peer: Peer, number: int = 0) -> dict[str, str]:
    headers = peer.requests[number].headers
    return {name: value for name, value in headers.items() if name.startswith("x-tangle-")}


async def test_a_participant_elsewhere_is_sent_the_six_headers() -> None:
    place: dict[str, Any] = {"run_id": "conv_1", "parent_turn_id": "turn_p", "inbound_depth": 1}
    async with Peer(answering(completion("No."))) as peer:
        critic = carnet.Participant(target=peer.url, name="critic")
        result = await carnet.run_conversation(
            [critic, Speaker("b")], seed="x", max_turns=1, propagated_headers=FORWARDED, **place
        )
        assert chain(peer) == {
            carnet.FORWARDED_AUTHORIZATION: BEARER,
            carnet.FORWARDED_DEPTH: "2",
            carnet.RUN_ID: "conv_1",
            carnet.TURN_ID: result.transcript[0].turn_id,
            carnet.PARENT_TURN_ID: "turn_p",
            carnet.SPEAKER: "critic",
        }


async def test_what_opens_its_run_is_told_no_parent() -> None:
    async with Peer(answering(completion("No."))) as peer:
        critic = carnet.Participant(target=peer.url, name="GPT-5 Codex", token="secret-of-ours")
        result = await carnet.run_conversation(
            [critic, Speaker("b")], seed="True?", max_turns=1, propagated_headers=FORWARDED
        )
        assert texts(result) == ["No."]
        assert chain(peer) == {
            carnet.FORWARDED_AUTHORIZATION: BEARER,
            carnet.FORWARDED_DEPTH: "1",
            carnet.RUN_ID: result.run_id,
            carnet.TURN_ID: f"{result.run_id}.t0.gpt-5-codex",
            carnet.SPEAKER: "GPT-5 Codex",
        }
        (request,) = peer.requests
        assert request.headers["authorization"] == "Bearer secret-of-ours"
        assert json.loads(request.body)["messages"] == [{"role": "user", "content": "True?"}]
        assert "traceparent" in request.headers


async def test_the_worked_example_in_a_program_without_a_gateway() -> None:
    """An agent that was called itself runs a conversation with a critic elsewhere."""
    arrived = [
        (b"X-Tangle-Forwarded-Authorization", BEARER.encode()),
        (b"X-Tangle-Forwarded-Depth", b"1"),
        (b"X-Tangle-RunId", b"conv_abc"),
        (b"X-Tangle-TurnId", b"conv_abc.t0.researcher"),
        (b"x-tangle-speaker", b"researcher"),
        (b"traceparent", TRACE.encode()),
        (b"cookie", b"session=1"),
    ]
    async with Peer(answering(completion("No."))) as peer:
        critic = carnet.Participant(target=peer.url, name="critic")
        result = await carnet.run_conversation(
            [critic, Speaker("writer")], max_turns=1, **carnet.inbound(arrived)
        )
        sent = chain(peer)
        headers = peer.requests[0].headers
    assert result.run_id == "conv_abc"
    assert sent.pop("x-tangle-turnid") == result.transcript[0].turn_id
    assert re.fullmatch(r"conv_abc\.[0-9a-f]{16}\.t0\.critic", result.transcript[0].turn_id)
    assert sent == {
        "x-tangle-forwarded-authorization": BEARER,
        "x-tangle-forwarded-depth": "2",
        "x-tangle-runid": "conv_abc",
        "x-tangle-parent-turnid": "conv_abc.t0.researcher",
        "x-tangle-speaker": "critic",
    }
    assert headers["traceparent"].split("-")[1] == TRACE.split("-")[1]
    assert "cookie" not in headers


async def test_a_nested_conversation_sends_its_run_its_parent_and_one_hop_more() -> None:
    async with Peer(answering(completion("No."))) as peer:
        inner = [carnet.Participant(target=peer.url, name="critic"), Speaker("inner")]
        swarm = carnet.Conversation("swarm", inner, max_turns=1)
        await carnet.run_conversation(
            [swarm, Speaker("o")], max_turns=3, run_id="shared-run", propagated_headers=FORWARDED
        )
        first, second = chain(peer), chain(peer, 1)
    assert first["x-tangle-runid"] == "shared-run"
    assert first["x-tangle-forwarded-depth"] == "2"
    assert first["x-tangle-forwarded-authorization"] == BEARER
    assert first["x-tangle-parent-turnid"] == "shared-run.t0.swarm"
    assert second["x-tangle-parent-turnid"] == "shared-run.t2.swarm"
    assert first["x-tangle-turnid"] != second["x-tangle-turnid"]


async def test_two_conversations_for_one_request_do_not_collide(tmp_path: Path) -> None:
    arrived = {carnet.RUN_ID: "conv_abc", carnet.TURN_ID: "conv_abc.t0.researcher"}
    journal = f"sqlite:{tmp_path / 'j.db'}"
    ids: list[str] = []
    async with Peer(answering(completion("No."))) as peer:
        people = [carnet.Participant(target=peer.url, name="critic"), Speaker("b")]
        for ordinal, seed in enumerate(("True?", "Good?", "Short?")):
            result = await carnet.run_conversation(
                people,
                seed=seed,
                max_turns=1,
                ordinal=ordinal,
                journal=journal,
                **carnet.inbound(arrived),
            )
            ids.append(result.transcript[0].turn_id)
        parents = {chain(peer, number)[carnet.PARENT_TURN_ID] for number in range(3)}
    assert (len(set(ids)), parents) == (3, {"conv_abc.t0.researcher"})


async def test_who_pays_is_decided_for_each_participant() -> None:
    async with (
        Peer(answering(completion("own"))) as own,
        Peer(answering(completion("user"))) as user,
    ):
        people = [
            carnet.Participant(target=own.url, name="own", auth="agent-owned"),
            carnet.Participant(target=user.url, name="user"),
        ]
        await carnet.run_conversation(people, max_turns=2, propagated_headers=FORWARDED)
        assert "x-tangle-forwarded-authorization" not in chain(own)
        assert chain(own)["x-tangle-forwarded-depth"] == "1"
        assert chain(user)["x-tangle-forwarded-authorization"] == BEARER


async def test_one_address_may_be_called_in_several_ways() -> None:
    async with Peer(answering(completion("No."))) as peer:
        people = [
            carnet.Participant(target=peer.url, name=name, token=f"token-of-{name}")
            for name in ("a", "b")
        ]
        await carnet.run_conversation(people, seed="Hm?", max_turns=2)
        tokens = [request.headers["authorization"] for request in peer.requests]
    assert tokens == ["Bearer token-of-a", "Bearer token-of-b"]
    assert "token-of-a" not in repr(people[0])


async def test_an_agent_of_the_signed_dialect_is_given_all_of_it_as_one_text(
    tmp_path: Path,
) -> None:
    async with (
        Globex(answer(text="No.")) as peer,
        carnet.connect(f"http://127.0.0.1:{peer.port}", key=tmp_path / "k") as critic,
    ):
        people = [Speaker("a"), carnet.Participant(target=critic, name="critic")]
        result = await carnet.run_conversation(
            people, seed="Begin.", max_turns=4, propagated_headers=FORWARDED
        )
        assert texts(result) == ["a-1", "No.", "a-2", "No."]
        bodies = peer.bodies
        sent = {name: value for name, value in peer.posts[0].headers.items() if "tangle" in name}
    assert bodies[0]["payload"] == {"text": "Begin.\n\n[a] a-1"}
    assert bodies[1]["payload"]["text"].endswith("[critic] No.\n\n[a] a-2")
    assert (bodies[0]["traceId"], bodies[0]["spanId"]) == (
        result.run_id,
        result.transcript[1].turn_id,
    )
    assert (sent[carnet.FORWARDED_DEPTH], sent[carnet.FORWARDED_AUTHORIZATION]) == ("1", BEARER)


async def test_a_retry_repeats_the_turn_id_and_a_refusal_by_depth_is_final() -> None:
    busy = reply(b'{"error": {"code": "overloaded", "message": "x"}}', status=503)
    deep = reply(b'{"error": {"code": "bridge_depth_exceeded", "message": "x"}}', status=429)
    policy = carnet.CallPolicy(retries=3, backoff=0)
    async with Peer(answering(busy, completion("at last"), deep)) as peer:
        people = [carnet.Participant(target=peer.url, name="critic"), Speaker("b")]
        result = await carnet.run_conversation(people, policy=policy, max_turns=3)
        ids = [chain(peer, number)["x-tangle-turnid"] for number in range(3)]
        assert len(peer.requests) == 3
    assert ids[0] == ids[1] == f"{result.run_id}.t0.critic"
    assert result.transcript[0].attempts == 2
    assert result.halted.code == "bridge_depth_exceeded"


async def test_what_an_agent_elsewhere_reports_is_spent() -> None:
    paid = completion(
        "No.", prompt_tokens=3, completion_tokens=1, cost="0.0005", currency="credits"
    )
    async with Peer(answering(paid)) as peer:
        people = [carnet.Participant(target=peer.url, name="critic"), Speaker("b", cost=0)]
        result = await carnet.run_conversation(people, max_turns=1)
    assert (result.spent, result.unknown_costs) == (500, 0)
    assert (result.transcript[0].tokens_in, result.transcript[0].tokens_out) == (3, 1)


async def test_a_model_is_no_hop_and_its_tokens_have_their_price() -> None:
    counted = completion("Well.", prompt_tokens=1_000, completion_tokens=10)
    async with Peer(answering(counted)) as peer:
        model = carnet.chat_model(
            f"http://127.0.0.1:{peer.port}/v1",
            model="small",
            api_key="sk-model",
            system="Be brief.",
            price_in="0.50",
            price_out="2",
        )
        result = await carnet.run_conversation(
            [model, Speaker("b")], seed="Hm?", max_turns=1, propagated_headers=FORWARDED
        )
        (request,) = peer.requests
    assert not [name for name in request.headers if name.startswith(("x-tangle", "trace"))]
    assert request.headers["authorization"] == "Bearer sk-model"
    asked = json.loads(request.body)
    assert (asked["model"], [m["content"] for m in asked["messages"]]) == (
        "small",
        ["Be brief.", "Hm?"],
    )
    assert (result.transcript[0].speaker, result.spent) == ("small", 520)


async def test_a_function_calls_an_address_one_hop_deeper() -> None:
    async with Peer(answering(completion("No."))) as peer:
        url = f"http://127.0.0.1:{peer.port}/agents/critic"

        async def researcher(visit: carnet.Visit) -> str:
            return await visit.peer(url, auth="forward-user").ask("True?")

        people = [researcher, Speaker("b")]
        result = await carnet.run_conversation(people, max_turns=1, propagated_headers=FORWARDED)
        assert texts(result) == ["No."]
        sent = chain(peer)
        assert (sent["x-tangle-forwarded-depth"], sent["x-tangle-runid"]) == ("2", result.run_id)
        assert sent["x-tangle-parent-turnid"] == f"{result.run_id}.t0.researcher"
        assert sent["x-tangle-forwarded-authorization"] == BEARER
        before = len(peer.requests)
        result = await carnet.run_conversation(people, max_turns=1, inbound_depth=2)
        assert (result.halted.code, len(peer.requests)) == ("bridge_depth_exceeded", before)
        result = await carnet.run_conversation([Speaker("x", _by_name), Speaker("b")], max_turns=1)
        assert result.halted.code == "agent_not_found"


@pytest.mark.parametrize(
    ("auth", "payer", "sent"),
    [
        (None, "agent-owned", []),
        (None, "forward-user", [BEARER]),
        ("forward-user", "agent-owned", [BEARER]),
        ("agent-owned", "agent-owned", [None]),
    ],
)
async def test_the_credential_leaves_to_an_address_that_is_listed_and_no_other(
    auth: str | None, payer: Any, sent: list[str | None]
) -> None:
    """R5: it is not left out either, so that somebody else pays."""
    async with Peer(answering(completion("No."))) as peer:
        url = f"http://127.0.0.1:{peer.port}/agents/critic"

        async def researcher(visit: carnet.Visit) -> str:
            (answer,) = await visit.fan_out([carnet.Branch(url, "True?", auth=auth)])
            return answer.text

        critic = carnet.Participant(target=url, auth=payer)
        result = await carnet.run_conversation(
            [researcher, critic], max_turns=1, propagated_headers=FORWARDED
        )
        found = [each.headers.get(carnet.FORWARDED_AUTHORIZATION) for each in peer.requests]
    assert found == sent
    if not sent:
        assert result.halted.code == "peer_not_listed"
        assert "auth='forward-user'" in (result.halted.detail or "")


async def test_what_a_function_connects_to_goes_on_with_the_run(tmp_path: Path) -> None:
    async with Globex(answer(text="No."), is_carnet=True) as peer:
        url = f"http://127.0.0.1:{peer.port}"

        def dialled(auth: str | None) -> Any:
            async def researcher(_: carnet.Visit) -> str:
                async with carnet.connect(url, key=tmp_path / "k", auth=auth) as client:
                    return await client.chat("True?")

            return researcher

        forwards, unlisted = dialled("forward-user"), dialled(None)
        people = [forwards, Speaker("b")]
        result = await carnet.run_conversation(people, max_turns=1, propagated_headers=FORWARDED)
        (sent,) = [request.headers for request in peer.posts]
        assert (sent[carnet.RUN_ID], sent[carnet.FORWARDED_DEPTH]) == (result.run_id, "2")
        assert sent[carnet.PARENT_TURN_ID] == result.transcript[0].turn_id
        assert sent[carnet.FORWARDED_AUTHORIZATION] == BEARER
        for options in ({"inbound_depth": 2}, {"propagated_headers": FORWARDED}):
            given: Any = options
            refused = await carnet.run_conversation([unlisted, Speaker("b")], max_turns=1, **given)
            assert refused.halted.code in {"bridge_depth_exceeded", "peer_not_listed"}
        assert len(peer.posts) == 1


async def test_what_a_function_calls_is_heard_as_it_comes_and_counted_with_its_turn() -> None:
    paid = completion(
        "No.", prompt_tokens=3, completion_tokens=1, cost="0.0005", currency="credits"
    )
    async with Peer(answering(paid)) as peer:

        async def researcher(visit: carnet.Visit) -> AsyncIterator[object]:
            yield carnet.Usage(cost=7)
            async for event in visit.peer(peer.url)("True?", stream=False):
                yield event

        result = await carnet.run_conversation([researcher, Speaker("b")], max_turns=1)
    assert (texts(result), result.spent) == (["No."], 507)


async def _by_name(visit: carnet.Visit) -> str:
    return await visit.peer("critic").ask("True?")


@pytest.mark.parametrize(
    "headers",
    [
        {"x-tangle-forwarded-depth": "banana"},
        {"x-tangle-forwarded-depth": ["2", "99"]},
        {"X-Tangle-Forwarded-Authorization": "Bearer a, Bearer b"},
        {"x-tangle-runid": "a\u00e9"},
    ],
)
async def test_what_arrived_is_read_strictly(headers: Any) -> None:
    with pytest.raises(MalformedCallerContext):
        carnet.inbound(headers)
    a = Speaker("a")
    with pytest.raises(MalformedCallerContext):
        await carnet.run_conversation([a, Speaker("b")], max_turns=1, propagated_headers=headers)
    assert a.calls == 0


async def test_what_is_given_beside_the_headers_can_only_say_more() -> None:
    a = Speaker("a")
    arrived = {"x-tangle-forwarded-depth": "2", "x-tangle-runid": "r1"}
    await carnet.run_conversation(
        [a, Speaker("b")], max_turns=1, inbound_depth=1, propagated_headers=arrived
    )
    assert (a.visits[0].carnet.depth, a.visits[0].carnet.run) == (3, "r1")
    with pytest.raises(ChainMismatch):
        await carnet.run_conversation(
            [a, Speaker("b")], max_turns=1, run_id="r2", propagated_headers=arrived
        )
    with pytest.raises(MalformedCallerContext):
        await carnet.run_conversation([a, Speaker("b")], max_turns=1, inbound_depth=-1)
    assert a.calls == 1


async def test_the_environment_has_the_last_word_on_the_depth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a = Speaker("a")
    people = [a, Speaker("b")]
    monkeypatch.setenv("CLI_BRIDGE_MAX_DEPTH", "2")
    with pytest.raises(carnet.DepthExceeded):
        await carnet.run_conversation(people, max_turns=1, inbound_depth=1, max_depth=9)
    await carnet.run_conversation(people, max_turns=1)
    assert a.visits[0].is_final
    monkeypatch.setenv("CLI_BRIDGE_MAX_DEPTH", "four")
    with pytest.raises(ConfigInvalid, match="CLI_BRIDGE_MAX_DEPTH"):
        await carnet.run_conversation(people, max_turns=1)
    assert a.calls == 1


def test_nothing_arrived_is_the_beginning_of_a_run() -> None:
    assert carnet.inbound({}) == {
        "run_id": None,
        "inbound_depth": 0,
        "parent_turn_id": None,
        "propagated_headers": {},
        "caller": None,
    }
    names = (
        *(carnet.FORWARDED_AUTHORIZATION, carnet.FORWARDED_DEPTH, carnet.RUN_ID),
        *(carnet.TURN_ID, carnet.PARENT_TURN_ID, carnet.SPEAKER),
    )
    assert all(name.startswith("x-tangle-") for name in names)
    assert len(set(names)) == 6
