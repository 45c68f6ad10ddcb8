"""The project's schemas of the protocol: what we write and what the real package writes is valid.

The package answers here as an application in this process: its card, its answers, its refusals and
its tasks are those that it sends.
"""

import asyncio
import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest
from msgspec.structs import replace
from samvad import AgentClient
from samvad.keys import Keypair

from carnet.core.messages.events import RESULT, Done, Event, Extension
from carnet.errors import CarnetError, leaves
from carnet.wire.dialects import samvad
from carnet.wire.dialects.samvad.tasks import write_accepted, write_record
from tests.interop.samvad.sdk_server import built
from tests.support.schemas import SCHEMAS, valid
from tests.wire.dialects.samvad.scene import PUBLIC, SEED, TURN, fields
from tests.wire.dialects.samvad.test_card import FACTS
from tests.wire.dialects.samvad.test_refusals import made

TASK = "0d3c7f9e-3f4e-4c6f-8a56-3c9f5e1d2b7a"


def is_ours(leaf: type[CarnetError]) -> bool:
    return leaf.__module__.startswith("carnet.errors.")


# ------------------------------------------------------------------------------- the schemas


@pytest.mark.parametrize("name", ["request", "answer", "card", "task"])
def test_a_schema_is_one_and_has_a_name_of_its_own(name: str) -> None:
    assert jsonschema_rs.meta.is_valid(SCHEMAS[name])
    assert SCHEMAS[name]["$id"] == f"urn:carnet:samvad:1.2:{name}"
    assert len(SCHEMAS) == 4


@pytest.mark.parametrize(
    ("changed", "is_right"),
    [
        ({}, True),
        ({"payload": None, "parentSpanId": None, "auth": None, "delegationToken": None}, True),
        ({"mode": "async", "callbackUrl": "https://a.example/x"}, True),
        ({"callbackUrl": "https://a.example/x"}, False),
        ({"mode": "async", "callbackUrl": "no address"}, False),
        ({"from_": "https://sender.com"}, False),
        ({"to": "agent://"}, False),
        ({"skill": "x" * 65}, False),
        ({"mode": "batch"}, False),
        ({"nonce": "1234567"}, False),
        ({"nonce": "x" * 65}, False),
        ({"timestamp": "yesterday"}, False),
        ({"traceId": ...}, False),
        ({"payload": []}, False),
        ({"auth": {"scheme": "basic", "token": "t"}}, False),
        ({"more": 1}, False),
    ],
)
def test_a_request_is_what_the_protocol_says(changed: dict[str, Any], is_right: bool) -> None:  # noqa: FBT001  a column of the table
    assert valid("request", fields(**changed)) is is_right


TRACED = {"traceId": "t", "spanId": "s"}
WRONG = {"code": "AUTH_FAILED", "message": "no"}


@pytest.mark.parametrize(
    ("more", "is_right"),
    [
        ({"status": "ok", "result": {}}, True),
        ({"status": "ok"}, True),
        ({"status": "error", "error": WRONG}, True),
        ({"status": "ok", "result": {}, "error": WRONG}, False),
        ({"status": "error", "result": {}, "error": WRONG}, False),
        ({"status": "error"}, False),
        ({"status": "error", "error": {**WRONG, "code": "TIMESTAMP_EXPIRED"}}, False),
        ({"status": "error", "error": {"code": "AUTH_FAILED"}}, False),
        ({"status": "done"}, False),
        ({"status": "ok", "result": "text"}, False),
        ({"status": "ok", "more": 1}, False),
    ],
)
def test_an_answer_is_what_the_protocol_says(more: dict[str, Any], is_right: bool) -> None:  # noqa: FBT001
    assert valid("answer", {**TRACED, **more}) is is_right


@pytest.mark.parametrize(
    ("more", "is_right"),
    [
        ({"status": "pending"}, True),
        ({"status": "running", "progress": 0.5}, True),
        ({"status": "done", "result": {}}, True),
        ({"status": "failed", "error": WRONG}, True),
        ({"status": "running", "progress": 2}, False),
        ({"status": "running", "result": {}}, False),
        ({"status": "done"}, False),
        ({"status": "done", "result": {}, "error": WRONG}, False),
        ({"status": "failed"}, False),
        ({"status": "accepted"}, False),
        ({"status": "pending", "more": 1}, False),
    ],
)
def test_a_record_is_what_the_protocol_says(more: dict[str, Any], is_right: bool) -> None:  # noqa: FBT001
    assert valid("task", {"taskId": TASK, **more}) is is_right


CARD = json.loads(samvad.write_card(FACTS))
KEY = CARD["publicKeys"][0]
SKILL = CARD["skills"][0]


@pytest.mark.parametrize(
    "changed",
    [
        {"id": "critic.acme.example"},
        {"url": "no address"},
        {"skills": []},
        {"publicKeys": []},
        {"publicKeys": [{**KEY, "key": KEY["key"][:-4]}]},
        {"publicKeys": [{"kid": "k", "key": KEY["key"]}]},
        {"skills": [{**SKILL, "modes": []}]},
        {"skills": [{**SKILL, "trust": "friends"}]},
        {"skills": [{**SKILL, "id": "x" * 65}]},
        {"skills": [{**SKILL, "allowedPeers": ["somebody"]}]},
        {"rateLimit": {"requestsPerMinute": 0}},
        {"cardTTL": -1},
        {"auth": {"schemes": ["basic"]}},
        {"more": 1},
    ],
)
def test_a_card_is_what_the_protocol_says(changed: dict[str, Any]) -> None:
    assert valid("card", CARD)
    assert not valid("card", {**CARD, **changed})


# --------------------------------------------------------------------------- what we write


def test_our_card_is_valid_against_the_schema() -> None:
    assert valid("card", samvad.write_card(FACTS))
    assert valid("card", samvad.write_card(replace(FACTS, tokens_per_sender_per_day=1000)))
    assert not valid("card", samvad.write_card(replace(FACTS, skills=())))


def test_our_requests_are_valid_against_the_schema() -> None:
    body = json.dumps(fields(payload={"a": 1}, auth={"scheme": "bearer", "token": "t"})).encode()
    envelope = samvad.read_envelope(body, mode="sync")
    assert valid("request", samvad.write_request(envelope))


def test_our_answers_and_all_our_refusals_are_valid_against_the_schema() -> None:
    events: list[Event] = [Extension(RESULT, {"n": 1}), Done()]
    assert valid("answer", samvad.write_answer(TURN, events, trace_id="t"))
    for leaf in filter(is_ours, leaves()):
        assert valid("answer", samvad.write_error(made(leaf))[2])


def test_the_records_of_our_tasks_are_valid_against_the_schema() -> None:
    records = [
        write_record(TASK, "pending"),
        *(write_record(TASK, "running", progress=progress) for progress in (None, 0, 333, 1000)),
        write_record(TASK, "done", result={"n": 1}),
        write_record(TASK, "done"),
        *(write_record(TASK, "failed", error=made(leaf)) for leaf in leaves() if is_ours(leaf)),
    ]
    assert [record for record in records if not valid("task", record)] == []
    assert not valid("task", write_accepted(TASK))  # it has an answer of its own


# -------------------------------------------------------------------- what the package writes

KEYS = Keypair("client-7", b64encode(SEED).decode(), b64encode(PUBLIC).decode())
SENDER = "agent://client-client-7"


@pytest.fixture
def sdk(tmp_path: Path) -> httpx.AsyncClient:
    """The package's own server, without a socket."""
    agent = built(80, str(tmp_path)).trust_peer(SENDER, KEYS.public_key_b64)
    transport = httpx.ASGITransport(app=agent.build_app())
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")


async def asked(
    sdk: httpx.AsyncClient, skill: str, payload: dict[str, Any], path: str = "/agent/message"
) -> httpx.Response:
    """What the package's client sends is valid, and this is what its server answers."""
    client = AgentClient(keypair=KEYS)
    mode = "async" if path == "/agent/task" else "sync"
    envelope = client._build_envelope(skill, payload, mode)  # noqa: SLF001
    body, headers = client._sign_envelope(envelope, "POST", path)  # noqa: SLF001
    assert valid("request", body)
    return await sdk.post(path, content=body, headers=headers)


async def test_the_card_of_the_package_is_valid_against_the_schema(sdk: httpx.AsyncClient) -> None:
    card = (await sdk.get("/.well-known/agent.json")).json()
    assert valid("card", card)
    assert len(card["skills"]) == 4


async def test_what_the_package_answers_is_valid_against_the_schema(
    sdk: httpx.AsyncClient,
) -> None:
    payload = {"text": "hi"}
    replies = [
        await asked(sdk, "chat", payload),
        await asked(sdk, "chat", {"text": 1}),
        await asked(sdk, "chat", {"text": "jailbreak"}),
        await asked(sdk, "fail", payload),
        await asked(sdk, "nothing", payload),
        await asked(sdk, "members", payload),
        await sdk.post("/agent/message", content=b"{}"),
    ]
    assert [reply.status_code for reply in replies] == [200, 400, 400, 503, 404, 401, 401]
    assert [reply.json() for reply in replies if not valid("answer", reply.json())] == []


@pytest.mark.parametrize(("skill", "end"), [("chat", "done"), ("fail", "failed")])
async def test_the_records_of_the_package_are_valid_against_the_schema(
    sdk: httpx.AsyncClient, skill: str, end: str
) -> None:
    task = (await asked(sdk, skill, {"text": "hi"}, "/agent/task")).json()["taskId"]
    while True:
        record = (await sdk.get(f"/agent/task/{task}")).json()
        assert valid("task", record), record
        if record["status"] == end:
            break
        await asyncio.sleep(0)
