"""Peers that claim to speak A2A and do not tell the truth: what is made of it."""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from carnet.testing.wait import until
from tests.support.federation import organisation
from tests.support.model import CLOSED, Answer, Asked, Model
from tests.support.organisation import Organisation

CARDS = ("stream", "plain", "brief", "elsewhere", "grpc", "oauth", "required", "twofold", "huge")
CONFIG = "".join(
    f'[agents.{name}]\nkind = "a2a"\nurl = "{{url}}/{name}"\nmax_cost = "0.5"\n'
    f"timeout = {4 if name == 'brief' else 30}\n"
    for name in CARDS
)
CANARY = "slip-of-a-liar"
TASK = {"id": "t-1", "contextId": "c-1", "status": {"state": "TASK_STATE_WORKING"}}


class Scene(NamedTuple):
    """A gateway, and somebody who answers as a test says."""

    gateway: Organisation
    peer: Model

    def operations(self) -> list[str]:
        return [asked.body["method"] for asked in self.peer.asked if "method" in asked.body]


def card(name: str, url: str) -> bytes:
    interface = {"url": f"{url}/{name}", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    page: dict[str, Any] = {
        "name": name,
        "version": "1",
        "capabilities": {"streaming": name == "stream"},
        "supportedInterfaces": [interface],
        "skills": [],
    }
    match name:
        case "elsewhere":
            interface["url"] = "http://127.0.0.1:1/a2a"
        case "grpc":
            interface["protocolBinding"] = "GRPC"
        case "oauth":
            page["securitySchemes"] = {"mutual": {"mtlsSecurityScheme": {}}}
            page["securityRequirements"] = [{"schemes": {"mutual": {"list": []}}}]
        case "required":
            extension = {"uri": "https://x.example/needed", "required": True}
            page["capabilities"]["extensions"] = [extension]
        case "twofold":
            return b'{"name": "a", "name": "b"}'
        case "huge":
            page["description"] = "x" * 300_000
    return json.dumps(page).encode()


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    gateway = organisation(tmp_path_factory.mktemp("acme"), "acme.example")
    with Model().serving() as peer:
        gateway.configure(CONFIG.replace("{url}", peer.url))
        gateway.start()
        yield Scene(gateway, peer)
        gateway.stop()


Reply = Callable[[Asked], Answer]


def answering(scene: Scene, reply: Reply) -> None:
    """Let the peer answer so, after its card."""

    def either(asked: Asked) -> Answer:
        if asked.path.endswith("agent-card.json"):
            return Answer(body=card(asked.path.split("/")[1], scene.peer.url))
        return reply(asked)

    scene.peer.reply = lambda asked: either(asked) if "card" in asked.path else WELL
    for agent in ("stream", "plain"):  # who lies again and again is left alone for a while
        assert scene.gateway.chat("well?", agent).text == "well"
    scene.peer.asked.clear()
    scene.peer.reply = either


def result(value: object, **more: Any) -> Answer:
    return Answer(body=json.dumps({"jsonrpc": "2.0", "id": "1", "result": value, **more}).encode())


def events(*values: object) -> Answer:
    frames = [json.dumps({"jsonrpc": "2.0", "id": "1", "result": value}) for value in values]
    body = "".join(f"data: {frame}\n\n" for frame in frames).encode()
    return Answer(body=body, media_type="text/event-stream")


def status(state: str, task: str = "t-1", **more: Any) -> dict[str, Any]:
    named = {"taskId": task, "contextId": "c-1", "status": {"state": state}, **more}
    return {"statusUpdate": named}


def artifact(*parts: Any, task: str = "t-1", name: str = "a", **more: Any) -> dict[str, Any]:
    piece = {"artifactId": name, "parts": list(parts)}
    return {"artifactUpdate": {"taskId": task, "contextId": "c-1", "artifact": piece, **more}}


WELL = result({"message": {"messageId": "m", "parts": [{"text": "well"}]}})
DONE = "TASK_STATE_COMPLETED"
LIES: dict[str, Answer] = {
    "no JSON": Answer(body=CANARY.encode()),
    "no JSON-RPC": Answer(body=json.dumps({"task": {**TASK, "x": CANARY}}).encode()),
    "another answer": result({"task": TASK}, id="2"),
    "neither nor": result({"task": TASK, "message": {}}),
    "nothing": result(None),
    "a list": result([CANARY]),
    "no id": result({"task": {**TASK, "id": ""}}),
    "a long id": result({"task": {**TASK, "id": "x" * 5000}}),
    "no state": result({"task": {**TASK, "status": {"state": CANARY}}}),
    "an empty message": result({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": []}}),
    "our own message": result(
        {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": CANARY}]}}
    ),
    "a part of two": result(
        {"message": {"messageId": "m", "parts": [{"text": CANARY, "url": "u"}]}}
    ),
    "no base64": result({"message": {"messageId": "m", "parts": [{"raw": "!!"}]}}),
    "half a pair": Answer(
        body=b'{"jsonrpc":"2.0","id":"1","result":{"message":{"messageId":"m","parts":[{"text":"\\ud800"}]}}}'
    ),
    "many artifacts": result(
        {
            "task": {
                **TASK,
                "artifacts": [
                    {"artifactId": f"{n}", "parts": [{"text": "x"}]} for n in range(1500)
                ],
            }
        }
    ),
    "one artifact twice": result(
        {"task": {**TASK, "artifacts": [{"artifactId": "a", "parts": [{"text": "x"}]}] * 2}}
    ),
    "an unknown error": Answer(
        body=json.dumps(
            {"jsonrpc": "2.0", "id": "1", "error": {"code": 7, "message": CANARY}}
        ).encode()
    ),
    "a deep answer": Answer(
        body=b'{"jsonrpc":"2.0","id":"1","result":' + b"[" * 5000 + b"]" * 5000 + b"}"
    ),
}
STREAMED_LIES: dict[str, Answer] = {
    "another task": events({"task": TASK}, artifact({"text": CANARY}, task="t-2")),
    "another context": events({"task": TASK}, {"task": {**TASK, "contextId": "c-2"}}),
    "an update of no task": events(status("TASK_STATE_NONSENSE")),
    "no UTF-8": Answer(body=b"data: \xff\n\n", media_type="text/event-stream"),
    "an endless event": Answer(body=b"data: " + b"x" * 5_000_000, media_type="text/event-stream"),
    "no end": events({"task": TASK}),  # and the task is not known when it is asked for
}


@pytest.mark.parametrize("name", LIES)
def test_an_answer_that_is_none_is_refused_without_a_word_of_it(scene: Scene, name: str) -> None:
    answering(scene, lambda _: LIES[name])
    for agent in ("plain", "stream"):
        reply = scene.gateway.chat("hi", agent)
        assert (reply.status, reply.code) == (502, "provider_error")
        assert CANARY.encode() not in reply.body
    assert CANARY.encode() not in scene.gateway.written()


@pytest.mark.parametrize("name", STREAMED_LIES)
def test_a_stream_that_lies_is_refused_and_its_task_cancelled(scene: Scene, name: str) -> None:
    def reply(asked: Asked) -> Answer:
        if asked.body["method"] == "SendStreamingMessage":
            return STREAMED_LIES[name]
        error = {"code": -32001, "message": CANARY}
        return Answer(body=json.dumps({"jsonrpc": "2.0", "id": "1", "error": error}).encode())

    answering(scene, reply)
    reply_ = scene.gateway.chat("hi", "stream")
    assert (reply_.status, reply_.code) == (502, "provider_error")
    assert CANARY.encode() not in reply_.body + scene.gateway.written()
    assert scene.operations().count("SendStreamingMessage") == 1
    if name in {"another task", "another context", "no end"}:
        until(lambda: "CancelTask" in scene.operations())


def test_a_task_that_never_ends_is_given_up_in_time_and_cancelled(scene: Scene) -> None:
    def reply(asked: Asked) -> Answer:
        is_send = asked.body["method"] == "SendMessage"
        return result({"task": TASK} if is_send else TASK)

    answering(scene, reply)
    answer = scene.gateway.chat("hi", "brief")
    assert (answer.status, answer.code) == (504, "provider_timeout")
    until(lambda: "CancelTask" in scene.operations())
    assert scene.operations().count("SendMessage") == 1
    looks = scene.operations().count("GetTask")
    assert 3 <= looks <= 20  # with pauses that grow


def test_a_stream_that_breaks_is_subscribed_to_and_nothing_is_told_twice(scene: Scene) -> None:
    rest = [
        events({"task": TASK}, artifact({"text": "Hel"}), artifact({"text": "lo"}, append=True)),
        events(
            {"task": {**TASK, "artifacts": [{"artifactId": "a", "parts": [{"text": "Hello w"}]}]}},
            artifact({"text": "orld"}, append=True),
            artifact({"text": "again"}, name="b"),
            status(DONE),
        ),
    ]

    def reply(asked: Asked) -> Answer:
        return rest[1] if asked.body["method"] == "SubscribeToTask" else rest[0]

    answering(scene, reply)
    assert scene.gateway.chat("hi", "stream").text == "Hello world\nagain"
    assert scene.operations() == ["SendStreamingMessage", "SubscribeToTask"]


def test_who_cannot_be_subscribed_to_is_asked_for_the_task(scene: Scene) -> None:
    whole = [{"artifactId": "a", "parts": [{"text": "Hello"}]}]

    def reply(asked: Asked) -> Answer:
        match asked.body["method"]:
            case "SendStreamingMessage":
                return events({"task": TASK}, artifact({"text": "Hel"}))
            case "SubscribeToTask":
                error = {"code": -32004, "message": "no"}
                return Answer(
                    body=json.dumps({"jsonrpc": "2.0", "id": "1", "error": error}).encode()
                )
        return result({**TASK, "artifacts": whole, "status": {"state": DONE}})

    answering(scene, reply)
    assert scene.gateway.chat("hi", "stream").text == "Hello"
    assert scene.operations() == ["SendStreamingMessage", "SubscribeToTask", "GetTask"]


def test_who_does_not_answer_is_asked_again_with_the_same_message(scene: Scene) -> None:
    """R56: nothing was shown, and by its id it is the same message."""
    answers: list[Answer] = [
        CLOSED,
        Answer(503, b"busy"),
        result({"message": {"messageId": "m", "parts": [{"text": "well"}]}}),
    ]

    def reply(_: Asked) -> Answer:
        return answers.pop(0)

    answering(scene, reply)
    assert scene.gateway.chat("hi", "plain").text == "well"
    sent = [asked.body["params"]["message"] for asked in scene.peer.asked if asked.body]
    assert len(sent) == 3
    assert len({each["messageId"] for each in sent}) == 1


@pytest.mark.parametrize(
    ("agent", "status_", "code"),
    [
        ("elsewhere", 502, "egress_refused"),
        ("grpc", 502, "peer_unreachable"),
        ("oauth", 502, "peer_credential_missing"),
        ("required", 502, "peer_refused"),
        ("twofold", 502, "peer_unreachable"),
        ("huge", 502, "peer_unreachable"),
    ],
)
def test_a_card_that_cannot_be_followed_is_refused_before_anything_is_sent(
    scene: Scene, agent: str, status_: int, code: str
) -> None:
    answering(scene, lambda _: CLOSED)
    reply = scene.gateway.chat("hi", agent)
    assert (reply.status, reply.code) == (status_, code)
    assert {asked.path for asked in scene.peer.asked} <= {f"/{agent}/.well-known/agent-card.json"}
    if agent == "oauth":
        assert reply.json["error"]["schemes"] == "mutual TLS"
        assert "api_key" in reply.json["error"]["hint"]


def test_a_redirect_is_not_followed(scene: Scene) -> None:
    leads = (("location", "http://127.0.0.1:1/"),)
    answering(scene, lambda _: Answer(307, b"", leads))
    assert scene.gateway.chat("hi", "plain").code == "provider_error"
    assert len([asked for asked in scene.peer.asked if asked.body]) == 1


def test_what_it_says_to_cost_is_unknown_and_never_above_what_it_may(scene: Scene) -> None:
    """R57: nothing in the protocol tells a cost; under a limit the most it may is counted."""
    metadata = {"urn:carnet:a2a:usage:v1": {"cost": "1000000", "currency": "credits"}}
    message = {"messageId": "m", "parts": [{"text": "dear"}], "metadata": metadata}
    answering(scene, lambda _: result({"message": message}))
    limited = scene.gateway.new_token("limited", "--limit", "1")
    reply = scene.gateway.chat("hi", "plain", token=limited)
    assert reply.status == 200
    assert float(reply.json["usage"]["cost"]) <= 0.5
    left = scene.gateway.chat("hi", "plain", token=limited)
    assert left.status == 200
    assert scene.gateway.chat("hi", "plain", token=limited).status == 402
