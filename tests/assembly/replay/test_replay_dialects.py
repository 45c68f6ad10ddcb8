"""Runs that were asked for in every dialect, run again: an agent is told what it was told then."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from carnet.wire.dialects import DIALECTS
from carnet.wire.dialects.a2a.extensions.skill import SKILL_URI
from tests.support.http import request
from tests.support.organisation import Organisation, shared_with_others

AGENTS = """
import json

import carnet
from msgspec import to_builtins


async def told(visit):
    return json.dumps(to_builtins(visit.messages), sort_keys=True)


adder = carnet.agent("adder")


@adder.skill("add")
async def add(a: int, b: int) -> int:
    return a + b
"""
SECTIONS = """
[agents.told]
kind = "python"
target = "people:told"
trust = "public"

[agents.adds]
kind = "python"
target = "people:adder"
"""
MESSAGE: dict[str, Any] = {
    "messageId": "m-1",
    "role": "ROLE_USER",
    "parts": [{"text": "hi"}, {"data": {"of": ["a", 2]}}],
    "metadata": {"colour": "red"},
}
ADD = {"messageId": "m-2", "role": "ROLE_USER", "parts": [{"text": "add"}]}
ADDS = {SKILL_URI: {"skill": "add", "payload": {"a": 2, "b": 3}}}
SPOKEN = {"parts": [{"type": "text", "text": "hi"}, {"type": "data", "data": {"of": "a"}}]}


def rpc(method: str, message: object, **more: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": message, **more}}


ASKED: dict[str, tuple[str, object]] = {  # by the name that the turn keeps, or by more
    "openai": (
        "/v1/chat/completions",
        {"model": "told", "messages": [{"role": "user", "content": "hi"}]},
    ),
    "a2a": ("/agents/told/a2a", rpc("SendMessage", MESSAGE)),
    "a2a, a skill": ("/agents/adds/a2a", rpc("SendMessage", ADD, metadata=ADDS)),
    "a2a_http": ("/agents/told/a2a/message:send", {"message": MESSAGE | {"messageId": "m-3"}}),
    "agents_api": ("/agents-api/v1/agent/told", rpc("message/send", SPOKEN)),
    "agents_api_http": ("/agents-api/v1/chat", {"agent": "told", "message": "hi"}),
    "owner": ("/message", {"content": "hi", "agent": "told"}),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    with shared_with_others():
        home = Organisation(tmp_path_factory.mktemp("replay"), "acme.example")
        home.configure(SECTIONS)
        (home.folder / "people.py").write_text(AGENTS)
        home.start()
    yield home
    assert home.stop() == 0


def replayed(home: Organisation) -> list[dict[str, Any]]:
    """The verdicts on the newest run."""
    done = home.try_carnet("run", "replay", "last", "--format", "json")
    assert done.stdout, done.stderr
    turns: list[dict[str, Any]] = json.loads(done.stdout)["turns"]
    assert done.returncode == 0, (turns, done.stderr)
    return turns


def dialects(home: Organisation) -> list[str]:
    """In which the turns of the newest run were asked for."""
    lines = map(json.loads, home.carnet("run", "export", "last").stdout.splitlines())
    return [each["dialect"] for each in lines if each["kind"] == "turn"]


@pytest.mark.parametrize("asked", ASKED)
def test_what_was_asked_in_a_dialect_is_asked_again(home: Organisation, asked: str) -> None:
    path, body = ASKED[asked]
    fields = [
        ("authorization", f"Bearer {home.token}"),
        ("content-type", "application/json"),
        ("a2a-version", "1.0"),
    ]
    reply = request("POST", home.url + path, fields, json.dumps(body).encode())
    assert reply.status == 200, reply.body
    (turn,) = replayed(home)
    assert turn["verdict"] == "equal", turn
    assert dialects(home) == [asked.split(",", maxsplit=1)[0]]


def test_what_was_asked_under_a_signature_is_asked_again(home: Organisation) -> None:
    home.carnet("call", f"{home.url}/agents/told", "hi", "--dialect", "samvad")
    (turn,) = replayed(home)
    assert (turn["agent"], turn["verdict"]) == ("told", "equal"), turn
    assert dialects(home) == ["samvad"]


def test_no_dialect_is_forgotten() -> None:
    names = {asked.split(",")[0] for asked in ASKED}
    assert names | {"samvad"} == {each.name for each in DIALECTS} | {"owner"}
