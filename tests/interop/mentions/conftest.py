"""Agents that tell what they see and call whom they are told to, and a server of the A2A SDK."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from carnet.testing.stage import Organisation, Stage
from tests.interop.a2a_client.scene import Scene, serving
from tests.interop.a2a_extensions.conftest import Answered, send

AGENTS = """
import json

import carnet


@carnet.agent("teller")
async def teller(visit):
    chain, told = visit.chain, visit.capabilities
    yield json.dumps({
        "chain": [chain.hop, chain.cap, chain.hops_left, chain.is_final],
        "cue": visit.cue,
        "relay": told.mention_relay,
        "beside": told.relay_members,
        "others": told.others,
        "via": visit.received_via,
        "recipient": visit.recipient,
    })


@carnet.agent("caller")
async def caller(visit):
    name, _, text = visit.text.partition(" ")
    yield await visit.peer(name).ask(text)


@carnet.agent("careful")
async def careful(visit):
    yield await visit.peer("sdk", fallback="from what I have").ask(visit.text)


@carnet.agent("mentions")
async def mentions(visit):
    yield "Ask @scheduler about " + visit.text
"""

SECTIONS = """
[agents.teller]
kind = "python"
target = "agents:teller"

[agents.caller]
kind = "python"
target = "agents:caller"

[agents.careful]
kind = "python"
target = "agents:careful"

[agents.mentions]
kind = "python"
target = "agents:mentions"

[agents.sdk]
kind = "a2a"
url = "{url}/rpc"

[agents.scheduler]
kind = "a2a"
url = "{url}/rest"

[agents.docs]
kind = "a2a"
url = "{url}/old-rpc"

[agents.orchestrator]
kind = "orchestrator"

[owner]
orchestrator = "orchestrator"
"""


class World(NamedTuple):
    """A gateway, and a server of the SDK that notes what it was asked."""

    acme: Organisation
    sdk: Scene

    def asked(self, text: str) -> list[dict[str, Any]]:
        """What the SDK was sent in the namespace, by the messages with this text."""
        found = [each["message"] for each in self.sdk.asked(text=text)]
        return [each.get("metadata", {}).get("mentionable", {}) for each in found]

    def send(self, agent: str, text: str, mentionable: object = None, **more: Any) -> Answered:
        """Send a message over A2A, with something in the namespace."""
        metadata = None if mentionable is None else {"mentionable": mentionable}
        return send(self.acme, agent, metadata, text=text, **more)


@contextmanager
def mentioning(folder: Path) -> Iterator[World]:
    """The gateway and the server, started."""
    notes = folder / "notes"
    notes.mkdir()
    with serving(notes) as address, Stage(folder / "stage") as stage:
        config = SECTIONS.replace("{url}", address.url)
        acme = stage.organisation("acme.example", config=config, agents=AGENTS)
        acme.start()
        yield World(acme, Scene(acme, address.url, notes))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with mentioning(tmp_path_factory.mktemp("mentions")) as started:
        yield started


class Spoken(NamedTuple):
    """What a person was answered: who said what, in turn."""

    voices: list[tuple[str, str]]  # the first has no name: she has asked it
    events: list[str]


def speak(organisation: Organisation, content: str, **more: str) -> Spoken:
    """Say something at the front of a gateway, and hear all of the answer."""
    reply = httpx.post(
        f"http://127.0.0.1:{organisation.port}/message",
        json={"content": content, **more},
        headers={"authorization": f"Bearer {organisation.token}"},
        timeout=60,
    )
    assert reply.status_code == 200, reply.text
    voices, events = [("", "")], list[str]()
    for frame in reply.text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in frame.splitlines() if ": " in line)
        if "event" not in lines:
            continue
        data = json.loads(lines["data"])
        events.append(lines["event"])
        if lines["event"] == "relay":
            voices.append((data["author"], data["code"] or ""))
        elif lines["event"] == "text-delta":
            author, text = voices.pop()
            voices.append((author, text + data["delta"]))
    return Spoken(voices, events)


def chain(hop: object, max_hops: object, **more: object) -> dict[str, object]:
    return {"hop": hop, "max_hops": max_hops, **more}
