"""A kind of agent is one row: with it a configuration may name it, and everybody may call it."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from carnet.assembly.agents.kinds import KINDS, Built, Kind, Parts
from carnet.assembly.gateway import RunningGateway, build
from carnet.config import AgentSettings, load
from carnet.config.file import NEEDS
from carnet.core.call import Call
from carnet.core.messages.events import Done, End, Text, Usage, Waiting
from carnet.core.messages.interrupt import Interrupt
from carnet.core.messages.output import Output
from carnet.errors import ConfigInvalid
from carnet.http.link import LINE, Line
from carnet.ports.trust.trust import NewToken
from carnet.runtime.system import SystemIds
from tests.stores.support.scenes import Place

CONFIG = """
[gateway]
domain = "acme.example"

[store]
secrets = {file = "var/secrets"}

[agents.loud]
kind = "shouting"
system = "!"
price = "0.5"

[agents.careful]
kind = "asking"
system = "approval"

[agents.odd]
kind = "asking"
system = "a kind of somebody else"
"""


def shouting(_: Parts, name: str, agent: AgentSettings) -> Built:
    async def shout(call: Call, out: Output, /) -> End:
        out.usage(Usage(3, 4))
        await out.write(Text(f"{name}: {call.ask.text.upper()}{agent.system}"))
        return Done()

    return Built(agent=shout)


def asking(_: Parts, name: str, agent: AgentSettings) -> Built:
    asked = Interrupt(id=name, state="s" * 32, kind=agent.system or "", message="May I?")

    async def ask(call: Call, out: Output, /) -> End:
        if call.ask.stream:
            await out.write(Text("one moment"))
        return Waiting((asked,))

    return Built(agent=ask)


MORE: Mapping[str, Kind] = {
    **KINDS,
    "shouting": Kind(build=shouting, needs=("system",)),
    "asking": Kind(build=asking),
}
NAMES = {name: kind.needs for name, kind in MORE.items()}


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    (tmp_path / "carnet.toml").write_text(CONFIG)
    place = Place(tmp_path)
    store = await place.start()
    settings = load(tmp_path / "carnet.toml", {}, NAMES)
    gateway = build(settings, store, place.clock, SystemIds(), kinds=MORE)
    try:
        yield gateway
    finally:
        await gateway.close()


async def post(
    gateway: RunningGateway, token: str, body: dict[str, Any], **more: str
) -> tuple[int, bytes]:
    parts = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]
    events: list[Any] = []

    async def receive() -> dict[str, Any]:
        if parts:
            return parts.pop()
        await asyncio.Event().wait()
        return {}

    async def send(event: Any) -> None:
        events.append(event)

    fields = {
        "host": "127.0.0.1",
        "content-type": "application/json",
        "authorization": f"Bearer {token}",
        **{name.replace("_", "-"): value for name, value in more.items()},
    }
    path = "/v1/chat/completions"
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
        "client": ("127.0.0.1", 5000),
        "server": ("127.0.0.1", 8700),
        LINE: Line(),
    }
    await gateway.app(scope, receive, send)
    return events[0]["status"], b"".join(each.get("body", b"") for each in events[1:])


async def test_a_kind_of_another_table_is_called_like_any_other(gateway: RunningGateway) -> None:
    scopes = frozenset({"call:*", "pay"})
    _, token = await gateway.store.tokens.create(NewToken(name="ann", scopes=scopes), now=0)
    message = {"role": "user", "content": "hello"}
    for stream in (False, True):
        body = {"model": "loud", "messages": [message], "stream": stream}
        status, answer = await post(gateway, token.reveal(), body)
        assert (status, b"loud: HELLO!" in answer) == (200, True)
    target = gateway.backend.router.find("loud")
    assert (target.kind, target.is_remote, target.credit) == ("shouting", False, "agent:loud")
    amounts = [
        each.amount
        for each in await gateway.store.records.ledger(run=None, account="agent:loud", limit=9)
    ]
    assert amounts == [500_000, 500_000]


@pytest.mark.parametrize(
    ("agent", "kind", "code"),
    [
        ("careful", "approval", "approval_required"),
        ("odd", "a kind of somebody else", "input_required"),
    ],
)
async def test_a_caller_is_told_what_the_agent_waits_for(
    gateway: RunningGateway, agent: str, kind: str, code: str
) -> None:
    """It is no success, whoever reads it, and a repeat is told the same; nothing runs again."""
    scopes = frozenset({"call:*", "pay"})
    _, token = await gateway.store.tokens.create(NewToken(name="ann", scopes=scopes), now=0)
    body = {"model": agent, "messages": [{"role": "user", "content": "go on"}]}
    ids = {"x_tangle_runid": "run_w", "x_tangle_turnid": "run_w.t0.x"}
    for _ in range(2):
        status, answer = await post(gateway, token.reveal(), body, **ids)
        error = json.loads(answer)["error"]
        assert (status, error["code"], error["interrupt"]["kind"]) == (403, code, kind)
        assert error["interrupts"] == [error["interrupt"]]
    (turn,) = await gateway.store.records.run("run_w", reader=None)
    assert (turn.state, turn.attempt) == ("waiting", 1)
    status, answer = await post(gateway, token.reveal(), {**body, "stream": True})
    assert status == 200
    assert b"one moment" in answer
    assert code.encode() in answer
    assert b"[DONE]" not in answer


def test_what_a_kind_needs_must_be_there(tmp_path: Path) -> None:
    path = tmp_path / "carnet.toml"
    path.write_text(CONFIG.replace('system = "!"\n', ""))
    with pytest.raises(ConfigInvalid, match="kind shouting needs 'system'"):
        load(path, {}, NAMES)
    with pytest.raises(ConfigInvalid, match="one of python, openai, tangle, samvad"):
        load(path, {})


def test_the_configuration_knows_the_kinds_that_are_built() -> None:
    assert {name: kind.needs for name, kind in KINDS.items()} == dict(NEEDS)
