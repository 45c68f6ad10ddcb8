"""Two gateways that speak SAMVAD with one another, whatever their callers speak."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import carnet
from carnet.runtime.client.key import ClientKey, load_key
from tests.interop.samvad.test_server import frames_of
from tests.support.federation import organisation
from tests.support.organisation import Organisation

SKILLS = """

from typing import Any

clerk = carnet.agent("clerk")


@clerk.skill("add")
async def add(a: int, b: int) -> dict[str, Any]:
    return {"total": a + b}


@clerk.skill("count")
async def count(to: int) -> AsyncIterator[int]:
    for number in range(to):
        yield number
"""

ASKING = """

async def asking(visit: carnet.Visit) -> str:
    words = {"system": "x", "temperature": 0.5, "tools": [carnet.Tool("f")]}
    link, peer = carnet.Link("data:,", None, "image/*"), visit.peer("@echo@globex.example")
    if visit.text == "earlier":
        return await peer.ask([carnet.Message.user("a"), carnet.Message.user("b")])
    if visit.text == "images":
        return await peer.ask([carnet.Message.user("a", link)])
    return await peer.ask("hi", **{visit.text: words[visit.text]})
"""


class Scene(NamedTuple):
    """Two gateways, and a client that the first one knows."""

    ours: Organisation
    theirs: Organisation
    key: ClientKey


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("bridging")
    ours, theirs = (organisation(folder / name, f"{name}.example") for name in ("acme", "globex"))
    key = load_key(folder / "client.key")
    token = theirs.new_token("from-acme", "--peer", "acme.example")
    (ours.folder / "var" / "globex.token").write_text(token)
    ours.configure(
        f"""
[peers."globex.example"]
url = "{theirs.url}"
dialect = "samvad"

[agents.bridge]
kind = "tangle"
url = "{theirs.url}/v1"
model = "words"
token = {{file = "var/globex.token"}}
trust = "public"
max_cost = "0"

[agents.clerk]
kind = "samvad"
url = "{theirs.url}/agents/clerk"
identity = "agent://clerk.globex.example"
trust = "public"

[agents.asking]
kind = "python"
target = "agents:asking"
""",
        agents=(ours.folder / "agents.py").read_text() + ASKING,
    )
    theirs.configure(
        '[agents.clerk]\nkind = "python"\ntarget = "agents:clerk"\ntrust = "public"\n',
        agents=(theirs.folder / "agents.py").read_text() + SKILLS,
    )
    theirs.carnet("peers", "add", "acme.example", "--url", ours.url)
    ours.carnet("peers", "add", f"agent://client-{key.kid}", "--key", key.public_text)
    ours.start()
    theirs.start()
    yield Scene(ours, theirs, key)
    ours.stop()
    theirs.stop()


def turn_of(gateway: Organisation, run: str) -> dict[str, Any]:
    """What a gateway recorded of the one turn of a run."""
    (turn,) = gateway.json("run", "show", run)["turns"]
    return dict(turn)


# ---------------------------------------------------------------------- Tangle to SAMVAD


@pytest.mark.parametrize("word", ["temperature", "tools", "system", "images"])
def test_what_an_agent_asks_with_and_the_dialect_cannot_say_is_refused(
    scene: Scene, word: str
) -> None:
    run = f"conv_said_{word}"
    refused = scene.ours.chat(word, "asking", headers=[("x-tangle-runid", run)])
    assert (refused.status, refused.code) == (400, "invalid_request")
    message = (
        f"The field '{word}' has no word in SAMVAD, which the called agent speaks; leave it out"
    )
    assert refused.json["error"]["message"].startswith(message)
    assert scene.theirs.try_carnet("run", "show", run).returncode != 0  # nothing left


def test_earlier_messages_are_left_out_and_a_callers_own_parameters_too(scene: Scene) -> None:
    assert scene.ours.chat("earlier", "asking").text == "b"
    reply = scene.ours.chat("hi", "@echo@globex.example", temperature=0.5, tools=[{"type": "x"}])
    assert reply.text == "hi"


def test_a_chat_reaches_an_agent_of_the_peer_signed_and_with_its_chain(scene: Scene) -> None:
    answer = scene.ours.chat("one two", "@words@globex.example")
    assert (answer.status, answer.text) == (200, "one two ")
    run = answer.headers["x-tangle-runid"]
    here, there = turn_of(scene.ours, run), turn_of(scene.theirs, run)
    assert (there["agent"], there["depth"], there["actor"]) == ("words", 1, "peer:acme.example")
    (outbound,) = here["legs"]
    assert (outbound["status"], outbound["turn"]) == ("done", there["turn"])
    assert outbound["receipt"].count(".") == 2  # what the other gateway signed about its answer


def test_the_default_agent_of_a_peer_is_reached_by_its_identity(scene: Scene) -> None:
    answer = scene.ours.chat("hello", "agent://globex.example")
    assert (answer.status, answer.text) == (200, "hello")


def test_a_stream_is_bridged_piece_by_piece(scene: Scene) -> None:
    answer = scene.ours.chat("one two", "@words@globex.example", stream=True)
    *frames, end = frames_of(answer.body)
    assert end == "[DONE]"
    assert [frame for frame in frames if '"content":"two "' in frame]


def test_a_chain_that_is_too_deep_is_refused_before_it_leaves(scene: Scene) -> None:
    deep = [("x-tangle-forwarded-depth", "3"), ("x-tangle-runid", "run-deep")]
    answer = scene.ours.chat("one", "@words@globex.example", headers=deep)
    assert (answer.status, answer.code) == (429, "bridge_depth_exceeded")


def test_a_failure_of_the_peer_is_told_and_not_repeated(scene: Scene) -> None:
    answer = scene.ours.chat("x", "@broken@globex.example")
    assert (answer.status, answer.code) == (502, "provider_error")
    assert answer.json["error"]["peer_code"] == "AGENT_UNAVAILABLE"
    run = answer.json["error"]["run"]
    assert turn_of(scene.theirs, run)["attempt"] == 1


def test_an_agent_that_the_peer_does_not_have_is_not_found_and_shuts_nobody_out(
    scene: Scene,
) -> None:
    for _ in range(6):  # more than a breaker takes
        answer = scene.ours.chat("x", "@nobody@globex.example")
        assert (answer.status, answer.code) == (404, "peer_agent_not_found")
    assert scene.ours.chat("one two", "@words@globex.example").status == 200


# ---------------------------------------------------------------------- skills by chat


def test_a_skill_of_ours_is_asked_for_beside_the_messages_of_a_chat(scene: Scene) -> None:
    wanted = {"skill": "add", "payload": {"a": 2, "b": 3}}
    answer = scene.theirs.chat("2 and 3", "clerk", carnet=wanted)
    assert (answer.status, answer.text) == (200, '{"total":5}')
    assert answer.json["carnet"] == {"result": {"total": 5}}


@pytest.mark.parametrize(
    ("wanted", "status", "code"),
    [
        ({"skill": "nope"}, 404, "skill_not_found"),
        ({"skill": "add", "payload": {"a": "x", "b": 3}}, 422, "schema_invalid"),
        ({"skill": "add", "payload": 3}, 400, "invalid_request"),
        ({"skill": ""}, 400, "invalid_request"),
        ({"skill": "add", "more": 1}, 400, "invalid_request"),
        ("add", 400, "invalid_request"),
    ],
)
def test_a_skill_that_cannot_be_run_is_refused_in_the_words_of_chat(
    scene: Scene, wanted: object, status: int, code: str
) -> None:
    answer = scene.theirs.chat("x", "clerk", carnet=wanted)
    assert (answer.status, answer.code) == (status, code)


def test_a_skill_of_a_peer_is_asked_for_beside_the_messages_of_a_chat(scene: Scene) -> None:
    wanted = {"skill": "count", "payload": {"to": 3}}
    answer = scene.ours.chat("x", "@clerk@globex.example", carnet=wanted, stream=True)
    assert frames_of(answer.body)[-1] == "[DONE]"
    reply = scene.ours.chat("x", "clerk", carnet={"skill": "add", "payload": {"a": 2, "b": 3}})
    assert reply.json["carnet"] == {"result": {"total": 5}}


# ---------------------------------------------------------------------- SAMVAD to Tangle


@pytest.fixture
async def bridge(scene: Scene) -> AsyncIterator[carnet.Client]:
    """A signed client of our gateway, at the agent that is a Tangle upstream."""
    async with carnet.connect(f"{scene.ours.url}/agents/bridge", key=scene.key) as client:
        yield client


async def test_a_signed_chat_reaches_a_tangle_upstream_in_its_run(
    scene: Scene, bridge: carnet.Client
) -> None:
    assert await bridge.within(trace_id="trace-1").chat("one two") == "one two "
    there = turn_of(scene.theirs, "trace-1")
    assert (there["agent"], there["depth"]) == ("words", 1)


async def test_a_tangle_upstream_is_streamed_to_a_signed_client(bridge: carnet.Client) -> None:
    received = [event async for event in bridge.stream("chat", text="one two")]
    assert received == [
        carnet.Text("one "),
        carnet.Text("two "),
        carnet.Result({"text": "one two "}),
    ]


async def test_a_tangle_upstream_judges_for_itself_which_skills_it_has(
    bridge: carnet.Client,
) -> None:
    with pytest.raises(carnet.CarnetError) as refused:
        await bridge.call("add", a=1, b=2)
    assert refused.value.facts["peer_code"] == "AGENT_UNAVAILABLE"


# ---------------------------------------------------------------------- SAMVAD to SAMVAD


@pytest.fixture
async def clerk(scene: Scene) -> AsyncIterator[carnet.Client]:
    """A signed client of our gateway, at the agent that is a SAMVAD upstream."""
    async with carnet.connect(f"{scene.ours.url}/agents/clerk", key=scene.key) as client:
        yield client


async def test_a_skill_is_passed_on_with_its_payload_and_its_result(clerk: carnet.Client) -> None:
    assert await clerk.call("add", a=2, b=3) == {"total": 5}


async def test_the_chunks_of_a_skill_are_passed_on(clerk: carnet.Client) -> None:
    received = [event async for event in clerk.stream("count", to=3)]
    assert received[:3] == [carnet.Data(0), carnet.Data(1), carnet.Data(2)]
    assert isinstance(received[-1], carnet.Result)


async def test_a_payload_that_does_not_fit_is_refused_by_whose_skill_it_is(
    clerk: carnet.Client,
) -> None:
    with pytest.raises(carnet.CarnetError) as refused:
        await clerk.call("add", a="x")
    assert refused.value.facts["peer_code"] == "AGENT_UNAVAILABLE"


def test_the_client_key_is_readable_by_its_owner_alone(scene: Scene) -> None:
    assert (Path(scene.ours.folder.parent) / "client.key").stat().st_mode & 0o777 == 0o600


def test_a_person_calls_the_own_gateway_signed_and_a_stranger_is_told_who_must_admit_it(
    scene: Scene, tmp_path: Path
) -> None:
    words = ("call", scene.ours.url, "hello", "--dialect", "samvad")
    assert scene.ours.carnet(*words).stdout.strip() == "hello"
    ran = scene.ours.try_carnet(*words, "--key", str(tmp_path / "stranger.key"))
    stranger = load_key(tmp_path / "stranger.key")
    assert ran.returncode == 1
    admits = f"peers add agent://client-{stranger.kid} --key {stranger.public_text}"
    assert admits in ran.stderr
