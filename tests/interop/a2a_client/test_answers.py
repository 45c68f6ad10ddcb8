"""Agents of kind a2a at the real server of the a2a-sdk: both bindings, both versions."""

import json
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256

import pytest

from tests.interop.a2a_client.scene import Scene, beside_gateway
from tests.interop.a2a_client.sdk_server import CARD, SERVED
from tests.support.http import request

EVERY = pytest.mark.parametrize("agent", sorted(SERVED))
BOTH = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with beside_gateway(tmp_path_factory.mktemp("sdk")) as scene:
        yield scene


def streamed(body: bytes) -> str:
    """The text of a stream of chat completions."""
    lines = [line[6:] for line in body.decode().splitlines() if line.startswith("data: {")]
    deltas = [each["choices"][0]["delta"] for each in map(json.loads, lines) if each["choices"]]
    return "".join(delta.get("content") or "" for delta in deltas)


@EVERY
@BOTH
def test_a_message_and_a_task_are_answers(scene: Scene, agent: str, *, stream: bool) -> None:
    """What comes of a task is its artifacts; one that has none may say it beside its state."""
    for text, answer in (
        ("say hi", "you said hi"),
        ("make it", "make it"),
        ("quiet x", "quietly x"),
        ("chunks a b c", "abc"),
    ):
        reply = scene.gateway.chat(text, agent, stream=stream)
        assert reply.status == 200
        assert (streamed(reply.body) if stream else reply.text) == answer


@EVERY
def test_what_a_call_carries_is_ours(scene: Scene, agent: str) -> None:
    text, trace = f"say from {agent}", "0af7651916cd43dd8448eb211c80319c"
    came = [("traceparent", f"00-{trace}-b7ad6b7169203331-01")]
    reply = scene.gateway.chat(text, agent, headers=came)
    (asked,) = scene.asked(text=text)
    headers, run = asked["headers"], reply.headers["x-tangle-runid"]
    assert headers["a2a-version"] == SERVED[agent][1]
    assert (headers["x-tangle-runid"], headers["x-a2a-hop"]) == (run, "1")
    assert "x-tangle-forwarded-depth" not in headers  # whose limit would end a chain of mentions
    chain = {"hop": 1, "max_hops": 4, "is_final": False}
    assert asked["message"]["metadata"]["mentionable"] == {"agent_chain": chain}
    assert headers["traceparent"].split("-")[1] == trace
    (turn,) = scene.gateway.get(f"/runs/{run}").json["turns"]
    (leg,) = turn["legs"]
    assert (leg["status"], leg["depth"]) == ("done", 1)
    assert asked["message"]["messageId"] == headers["x-tangle-turnid"] == leg["turn"]


@pytest.mark.parametrize("agent", sorted(SERVED.keys() - {"old-rest"}))
def test_files_links_and_data_come_and_go(scene: Scene, agent: str) -> None:
    """Over 0.3 in HTTP+JSON the package writes the bytes of a file in base64 twice."""
    reply = scene.gateway.chat("files", agent)
    assert reply.text == "see"
    assert json.loads(scene.gateway.chat("add 2 3", agent).text) == {"total": 5}
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAEC"}}
    content = [{"type": "text", "text": f"say see {agent}"}, image]
    sent = scene.gateway.chat("", agent, messages=[{"role": "user", "content": content}])
    assert sent.status == 200
    (asked,) = scene.asked(text=f"say see {agent}")
    assert {"raw": "AAEC", "mediaType": "image/png"} in asked["message"]["parts"]


@EVERY
def test_a_skill_is_asked_for_by_name_and_gives_its_result(scene: Scene, agent: str) -> None:
    skill = {"skill": "sum", "payload": {"a": 2, "b": 40}}
    reply = scene.gateway.chat("", agent, carnet=skill)
    assert (reply.status, reply.json["carnet"]["result"]) == (200, {"total": 42})
    before = len(scene.asked())
    missing = scene.gateway.chat("", agent, carnet={"skill": "fly", "payload": {}})
    assert (missing.status, missing.code) == (404, "skill_not_found")
    assert len(scene.asked()) == before  # nothing has left


@EVERY
@BOTH
def test_what_goes_wrong_there_is_told_in_our_words(
    scene: Scene, agent: str, *, stream: bool
) -> None:
    """Never in theirs: A65."""
    for word, *expected in (
        ("fail", (500, "agent_failed")),
        ("reject", (502, "peer_refused")),
        # By what it raises its task has failed, or its stream ends with an error.
        ("raise", (500, "agent_failed"), (502, "provider_error")),
    ):
        text = f"{word} {agent} {stream}"
        reply = scene.gateway.chat(text, agent, stream=stream)
        assert (reply.status, reply.code) in expected
        assert b"slip-of" not in reply.body
        assert len(scene.asked(text=text)) == 1  # a task that was taken on is not begun again
    assert b"slip-of" not in scene.gateway.written()


def test_a_credential_goes_where_the_card_asks_for_it(scene: Scene) -> None:
    scene.gateway.chat("say key", "plain-rpc")
    (by_key,) = scene.asked(text="say key")
    assert by_key["headers"]["x-sesame"] == "sesame-secret"
    assert "authorization" not in by_key["headers"]
    scene.gateway.chat("say bearer", "plain-rest")
    (by_token,) = scene.asked(text="say bearer")
    assert by_token["headers"]["authorization"] == "Bearer sesame-secret"
    scene.gateway.chat("say nobody", "rpc")
    (unknown,) = scene.asked(text="say nobody")
    assert {"authorization", "x-sesame"}.isdisjoint(unknown["headers"])
    assert b"sesame-secret" not in scene.gateway.written()


def test_our_card_holds_that_of_the_agent_behind_it_untouched(scene: Scene) -> None:
    """R22: with its digest, so that its own signatures still hold."""
    scene.gateway.chat("say hi", "rest")
    own = request("GET", f"{scene.gateway.url}/agents/rest{CARD}").json
    theirs = request("GET", f"{scene.url}/rest{CARD}")
    found = {each["uri"]: each for each in own["capabilities"]["extensions"]}
    params = found["urn:carnet:a2a:origin:v1"]["params"]
    assert (params["url"], params["card"]) == (f"{scene.url}/rest{CARD}", theirs.body.decode())
    digest = b64encode(sha256(theirs.body).digest()).decode()
    assert params["digest"] == f"sha-256=:{digest}:"
