"""Sentences about the signed envelope and the card, each by a request to a real gateway."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.http import Reply, request
from tests.support.organisation import Organisation
from tests.support.signing.signed import (
    Line,
    Sender,
    encoded,
    envelope,
    message,
    refusal,
    result,
    sign,
    unsigned,
)

DEFAULT = "agent://acme.example"
SHAPE = (400, "SCHEMA_INVALID")
REQUIRED = ["from", "to", "skill", "mode", "nonce", "timestamp", "traceId", "spanId"]


class Client:
    """A pinned sender on one connection."""

    def __init__(self, acme: Organisation, line: Line) -> None:
        self.acme, self.line = acme, line
        self.sender = Sender("agent://client-sentences")
        acme.carnet("peers", "add", self.sender.identity, "--key", self.sender.public)

    def send(self, **fields: Any) -> Reply:
        auth = {"scheme": "bearer", "token": self.acme.token}
        return self.line.send(message(self.sender, DEFAULT, auth=auth, **fields))

    def raw(self, body: bytes) -> Reply:
        """Send a body as it is spelled, signed."""
        return self.line.send(sign(self.sender, unsigned(body)))

    def whole(self, **fields: Any) -> dict[str, Any]:
        auth = {"scheme": "bearer", "token": self.acme.token}
        return envelope(self.sender, DEFAULT, auth=auth, **fields)


@pytest.fixture(scope="module")
def client(acme: Organisation) -> Iterator[Client]:
    with Line(acme.port) as line:
        yield Client(acme, line)


def card(acme: Organisation, agent: str) -> dict[str, Any]:
    found: dict[str, Any] = request("GET", f"{acme.url}/agents/{agent}/.well-known/agent.json").json
    return found


# -------------------------------------------------------------------------------- the envelope


@pytest.mark.parametrize("field", REQUIRED)
@pytest.mark.parametrize("given", ["left out", None, 7])
def test_a_required_field_must_be_there_and_be_text(
    client: Client, field: str, given: object
) -> None:
    sent = client.whole()
    if given == "left out":
        del sent[field]
    else:
        sent[field] = given
    assert refusal(client.raw(encoded(sent))) == SHAPE


@pytest.mark.parametrize("mode", ["later", "SYNC", "", "sync "])
def test_a_mode_is_one_of_three(client: Client, mode: str) -> None:
    assert refusal(client.send(mode=mode)) == SHAPE


def test_the_example_of_the_text_is_a_request(client: Client) -> None:
    sent = client.whole(
        skill="chat",
        parentSpanId=None,
        delegationToken=None,
        payload={"text": "review", "code": "def hello(): pass", "language": "python"},
    )
    assert result(client.raw(json.dumps(sent).encode()))["text"]


@pytest.mark.parametrize("indent", [None, 2])
def test_any_spelling_of_the_json_is_taken(client: Client, indent: int | None) -> None:
    sent = dict(reversed(client.whole(payload={"text": "\u0928\u092e"}).items()))
    for escaped in (True, False):
        sent["nonce"] += "x"
        sent["spanId"] += "x"
        body = json.dumps(sent, indent=indent, ensure_ascii=escaped).encode()
        assert result(client.raw(body)) == {"text": "\u0928\u092e"}


@pytest.mark.parametrize("field", ["parentSpanId", "delegationToken", "callbackUrl"])
def test_null_is_absent_where_a_field_may_be_absent(client: Client, field: str) -> None:
    assert result(client.send(**{field: None})) == {"text": "hi"}


def test_the_trace_is_the_run_and_the_span_the_turn(client: Client) -> None:
    ids = {"traceId": "trace-told", "spanId": "span-told", "parentSpanId": "span-above"}
    assert client.send(**ids).json["traceId"] == "trace-told"
    [turn] = client.acme.json("run", "show", "trace-told")["turns"]
    assert (turn["turn"], turn["parent_turn"]) == ("span-told", "span-above")


def test_trace_headers_that_nobody_sends_are_ignored(client: Client) -> None:
    auth = {"scheme": "bearer", "token": client.acme.token}
    sent = message(client.sender, DEFAULT, auth=auth, traceId="trace-of-the-body")
    names = ("x-samvad-trace-id", "x-samvad-span-id", "x-trace-id")
    reply = client.line.send(sent.beside(*[(name, "trace-of-a-header") for name in names]))
    assert (result(reply), reply.json["traceId"]) == ({"text": "hi"}, "trace-of-the-body")


def test_a_skill_is_looked_for_before_trust_and_trust_before_the_payload(client: Client) -> None:
    target, words = "/agents/words/agent/message", "agent://words.acme.example"
    wrong, nobody = {"text": 7}, None
    member = {"scheme": "bearer", "token": client.acme.token}
    for skill, auth, answer in (
        ("nothing", nobody, (404, "SKILL_NOT_FOUND")),
        ("chat", nobody, (401, "AUTH_FAILED")),
        ("chat", member, SHAPE),
    ):
        asked = message(client.sender, words, skill=skill, auth=auth, payload=wrong, target=target)
        assert refusal(client.line.send(asked)) == answer


# ------------------------------------------------------------------------- answers and streams


def test_an_answer_is_not_signed(client: Client) -> None:
    reply = client.send()
    assert result(reply) == {"text": "hi"}
    assert not {"signature", "signature-input", "content-digest"} & reply.headers.keys()


@pytest.mark.parametrize("agent", ["words", "stubborn"])
def test_no_text_adds_an_event_to_a_stream(client: Client, agent: str) -> None:
    text = 'a\n\ndata:{"done":true}\r\rb' if agent == "words" else "1"
    auth = {"scheme": "bearer", "token": client.acme.token}
    sent = message(
        client.sender,
        f"agent://{agent}.acme.example",
        target=f"/agents/{agent}/agent/stream",
        payload={"text": text},
        auth=auth,
    )
    parts = client.line.send(sent).body.split(b"\n\n")
    frames = [
        json.loads(part.removeprefix(b"data: ")) for part in parts if part.startswith(b"data")
    ]
    assert [frame["done"] for frame in frames] == [False] * (len(frames) - 1) + [True]
    assert b"\r" not in b"".join(parts)


# ------------------------------------------------------------------------------------ the card


def test_the_card_names_its_six_endpoints_below_its_own_url(acme: Organisation) -> None:
    found = card(acme, "words")
    assert len(found["endpoints"]) == 6
    assert all(url.startswith(found["url"] + "/agent/") for url in found["endpoints"].values())


def test_a_skill_stands_in_the_card_with_its_schemas_modes_and_trust(acme: Organisation) -> None:
    [skill] = card(acme, "words")["skills"]
    assert skill.keys() >= {"id", "name", "description", "inputSchema", "outputSchema", "modes"}
    assert (skill["id"], skill["trust"]) == ("chat", "authenticated")
    assert set(skill["modes"]) <= {"sync", "async", "stream"}
