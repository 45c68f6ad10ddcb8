"""The real server of the samvad package, as a process, called by our client and our gateway."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import carnet
from tests.interop.samvad.sdk_scene import Scene, beside_gateway

SERVER = Path(__file__).with_name("sdk_server.py")


def frames_of(body: bytes) -> list[str]:
    """The data of a stream."""
    lines = body.decode().split("\n\n")
    return [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with beside_gateway(SERVER, tmp_path_factory.mktemp("sdk")) as scene:
        yield scene


@pytest.fixture
async def agent(scene: Scene) -> AsyncIterator[carnet.Client]:
    """Our client, connected to the server."""
    async with carnet.connect(scene.url, key=scene.key) as client:
        yield client


# ---------------------------------------------------------------------- our client


async def test_a_skill_of_the_real_server_is_called(agent: carnet.Client) -> None:
    in_trace = agent.within(trace_id="trace-1")
    assert await in_trace.call("add", a=2, b=3) == {
        "total": 5,
        "sender": agent.sender,
        "trace": "trace-1",
    }
    assert await agent.chat("hi") == "you said hi"


async def test_a_stream_of_the_real_server_ends_in_its_result(agent: carnet.Client) -> None:
    received = [event async for event in agent.within(trace_id="trace-2").stream("add", a=2, b=3)]
    (result,) = received  # its handlers cannot give chunks
    assert isinstance(result, carnet.Result)
    assert result.value["total"] == 5
    assert result.value["trace"] == "trace-2"
    texts = [event async for event in agent.stream("chat", text="hi")]
    assert texts == [carnet.Text("you said hi"), carnet.Result({"text": "you said hi"})]


async def test_the_card_of_the_real_server_is_read(agent: carnet.Client) -> None:
    card = await agent.card()
    assert card.id == "agent://127.0.0.1"
    assert [skill.id for skill in card.skills] == ["chat", "add", "fail", "members"]


async def test_many_calls_at_once_are_answered_over_connections_that_are_kept(
    agent: carnet.Client,
) -> None:
    for number in range(50):
        assert (await agent.call("add", a=number, b=1))["total"] == number + 1


@pytest.mark.parametrize(
    ("skill", "payload", "code"),
    [
        ("nope", {}, "SKILL_NOT_FOUND"),
        ("add", {"a": "x", "b": 1}, "SCHEMA_INVALID"),
        ("chat", {"text": "jailbreak"}, "INJECTION_DETECTED"),
        ("members", {"text": "hi"}, "AUTH_FAILED"),
        ("fail", {"text": "hi"}, "AGENT_UNAVAILABLE"),
    ],
)
async def test_a_refusal_of_the_real_server_is_an_error_with_its_code(
    agent: carnet.Client, skill: str, payload: dict[str, Any], code: str
) -> None:
    with pytest.raises(carnet.CarnetError) as refused:
        await agent.call(skill, payload)
    assert refused.value.facts["peer_code"] == code
    assert "slip-of" not in str(refused.value) + refused.value.safe_text


@pytest.mark.parametrize(
    ("skill", "code"), [("add", "SCHEMA_INVALID"), ("nope", "SKILL_NOT_FOUND")]
)
async def test_a_stream_that_is_refused_is_an_error_with_its_code(
    agent: carnet.Client, skill: str, code: str
) -> None:
    with pytest.raises(carnet.CarnetError) as refused:
        async for _ in agent.stream(skill, a="x"):
            pass
    assert refused.value.facts["peer_code"] == code


async def test_a_token_is_shown_to_a_skill_that_asks_for_one(agent: carnet.Client) -> None:
    shown = agent.within(token="a-token-for-the-sdk")
    assert await shown.call("members", text="hi") == {"text": "you said hi"}


async def test_a_client_that_the_server_does_not_know_is_refused(
    scene: Scene, tmp_path: Path
) -> None:
    async with carnet.connect(scene.url, key=tmp_path / "stranger.key") as stranger:
        with pytest.raises(carnet.CarnetError) as refused:
            await stranger.chat("hi")
    assert refused.value.facts["peer_code"] == "AUTH_FAILED"
    command = f"(trust_peer): {stranger.sender} {stranger.key.public_text}"
    assert refused.value.next_step.endswith(command)


# ---------------------------------------------------------------------- through a gateway


@pytest.mark.parametrize("model", ["sdk", "agent://globex.example"])
def test_chat_is_bridged_to_the_skill_of_the_real_server(scene: Scene, model: str) -> None:
    answer = scene.gateway.chat("hello", model)
    assert (answer.status, answer.text) == (200, "you said hello")
    run = answer.headers["x-tangle-runid"]
    (turn,) = scene.gateway.get(f"/runs/{run}").json["turns"]
    (outbound,) = turn["legs"]
    assert (outbound["status"], outbound["depth"]) == ("done", 1)


def test_chat_is_bridged_to_a_stream_of_the_real_server(scene: Scene) -> None:
    *frames, end = frames_of(scene.gateway.chat("hello", "sdk", stream=True).body)
    assert end == "[DONE]"
    chunks = [json.loads(frame)["choices"][0]["delta"].get("content", "") for frame in frames]
    assert "".join(chunks) == "you said hello"


@pytest.mark.parametrize("stream", [False, True])
def test_a_skill_is_asked_for_through_the_gateway_within_the_run(
    scene: Scene,
    stream: bool,  # noqa: FBT001
) -> None:
    wanted = {"skill": "add", "payload": {"a": 2, "b": 3}}
    answer = scene.gateway.chat(
        "2+3", "sdk", carnet=wanted, stream=stream, headers=[("x-tangle-runid", f"run-{stream}")]
    )
    assert answer.status == 200
    if stream:
        frames = [json.loads(frame) for frame in frames_of(answer.body) if frame != "[DONE]"]
        (extension,) = [frame["carnet"] for frame in frames if "carnet" in frame]
    else:
        extension = answer.json["carnet"]
    result = {"total": 5, "sender": "agent://acme.example", "trace": f"run-{stream}"}
    assert extension == {"result": result}


@pytest.mark.parametrize(
    ("skill", "payload", "status", "peer_code"),
    [
        ("nope", {}, 502, "SKILL_NOT_FOUND"),
        ("add", {"a": "x"}, 502, "SCHEMA_INVALID"),
        ("members", {"text": "x"}, 502, "AUTH_FAILED"),
    ],
)
def test_a_refusal_of_the_real_server_reaches_the_caller_of_the_gateway(
    scene: Scene, skill: str, payload: dict[str, Any], status: int, peer_code: str
) -> None:
    wanted = {"skill": skill, "payload": payload}
    answer = scene.gateway.chat("x", "sdk", carnet=wanted)
    assert (answer.status, answer.code) == (status, "peer_refused")
    assert answer.json["error"]["peer_code"] == peer_code


def test_what_the_real_server_lets_slip_of_a_failure_stays_behind(scene: Scene) -> None:
    answer = scene.gateway.chat("x", "sdk", carnet={"skill": "fail", "payload": {"text": "x"}})
    assert (answer.status, answer.code) == (502, "provider_error")
    assert b"slip-of" not in answer.body
    assert b"slip-of" not in scene.gateway.written()


# ---------------------------------------------------------------------- at the command line


def test_the_command_line_calls_skills_through_the_gateway_and_from_here(scene: Scene) -> None:
    words = ["call", "agent://globex.example", "skill=add", "a:=2", "b:=3"]
    through = json.loads(scene.gateway.carnet(*words).stdout)
    direct = json.loads(scene.gateway.carnet(*words, "--direct").stdout)
    assert through["total"] == direct["total"] == 5
    assert through["sender"] == direct["sender"] == "agent://acme.example"
    assert scene.gateway.carnet("call", "agent://globex.example", "hi").stdout == "you said hi\n"
    streamed = scene.gateway.carnet("call", "agent://globex.example", "hi", "--stream", "--direct")
    assert streamed.stdout == "you said hi\n"


def test_the_command_line_calls_a_url_with_a_key_of_its_own(scene: Scene) -> None:
    key = scene.gateway.folder.parent / "client.key"
    words = ["--dialect", "samvad", "--skill", "add", "a:=2", "b:=3", "--key", str(key)]
    output = json.loads(scene.gateway.carnet("call", scene.url, *words).stdout)
    assert output["sender"] == f"agent://client-{scene.key.kid}"


def test_the_command_line_tells_the_code_of_a_refusal(scene: Scene) -> None:
    for more in ((), ("--direct",)):
        ran = scene.gateway.try_carnet("call", "agent://globex.example", "skill=nope", *more)
        assert ran.returncode == 1
        assert ran.stdout == ""
        assert "SKILL_NOT_FOUND" in ran.stderr


def test_the_card_of_the_real_server_is_shown(scene: Scene) -> None:
    page = scene.gateway.json("agents", "inspect", scene.url)
    assert (page["id"], page["is_carnet"]) == ("agent://127.0.0.1", False)
    assert [skill["id"] for skill in page["skills"]] == ["chat", "add", "fail", "members"]
