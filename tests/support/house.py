"""The application of one gateway, in the process of the test: no port, no server, a real store."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from carnet.assembly.gateway import RunningGateway, build
from carnet.assembly.serve import edge_limits
from carnet.assembly.store import file_peers
from carnet.cli.references import own_modules
from carnet.config import Limits, load
from carnet.http.arrival import RequestIds
from carnet.http.link import LINE, Line
from carnet.http.proxies import Proxies
from carnet.http.server import make_server
from carnet.ports.trust.keys import PinnedKey
from carnet.ports.trust.trust import NewToken
from carnet.runtime.system import SystemClock, SystemIds
from carnet.stores.open import open_store
from carnet.stores.secrets import secrets_file
from carnet.wire.dialects import DIALECTS, by_peer
from tests.support.served import AGENTS
from tests.support.signing.signed import Sender, Signed

DOMAIN = "acme.example"
CONFIG = f"""
[gateway]
domain = "{DOMAIN}"

[agents.echo]
kind = "python"
target = "house_agents:echo"
default = true

[agents.onward]
kind = "python"
target = "house_agents:onward"

[agents.broken]
kind = "python"
target = "house_agents:broken"
"""
EVERYTHING = frozenset({"*"})


class Answer(Struct, frozen=True, kw_only=True):
    """An answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class House:
    """What a test asks."""

    def __init__(self, gateway: RunningGateway, token: str) -> None:
        self.gateway = gateway
        self.token = token

    async def chat(self, text: str, model: str = "echo", **headers: str) -> Answer:
        """Ask an agent; underscores in the names of headers stand for hyphens."""
        messages = [{"role": "user", "content": text}]
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        body = {"model": model, "messages": messages}
        return await self.ask("POST", "/v1/chat/completions", body, headers=fields)

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        token: str | None = None,
    ) -> Answer:
        """Send what a token may send."""
        fields = {
            "authorization": f"Bearer {token or self.token}",
            "content-type": "application/json",
            **(headers or {}),
        }
        data = b"" if body is None else json.dumps(body).encode()
        return await self.send(method, path, [*fields.items()], data)

    async def signed(self, request: Signed) -> Answer:
        """Send what somebody signed."""
        return await self.send(request.method, request.target, request.headers, request.body)

    async def send(
        self, method: str, path: str, fields: Sequence[tuple[str, str]], body: bytes
    ) -> Answer:
        """Send a request."""
        events: list[dict[str, Any]] = []
        parts = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if parts:
                return parts.pop()
            await asyncio.Event().wait()
            return {}

        async def send(event: Any) -> None:
            events.append(event)

        await self.gateway.app(_scope(method, path, fields, len(body)), receive, send)
        names = {name.decode(): value.decode() for name, value in events[0]["headers"]}
        data = b"".join(event.get("body", b"") for event in events[1:])
        return Answer(status=events[0]["status"], headers=names, body=data)


@asynccontextmanager
async def listening(house: House) -> AsyncIterator[str]:
    """The URL of a gateway that others can call, on a port of this machine."""
    up, at = asyncio.Event(), socket.create_server(("127.0.0.1", 0))
    gateway = house.gateway
    server = make_server(
        gateway.app,
        sockets=[at],
        limits=edge_limits(Limits(), gateway.stamps.tolerated),
        note=gateway.note,
        proxies=Proxies(),
        refusing=gateway.refusing,
        request_ids=RequestIds(b"seed", SystemClock().wall_us),
        drain=gateway.drain,
        on_listening=up.set,
    )
    serving = asyncio.create_task(server.serve())
    try:
        async with asyncio.timeout(30):
            await up.wait()
        yield f"http://127.0.0.1:{at.getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving


def _scope(method: str, path: str, fields: Sequence[tuple[str, str]], size: int) -> dict[str, Any]:
    target, _, query = path.partition("?")
    whole = [("host", "127.0.0.1"), *fields, ("content-length", str(size))]
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": target,
        "raw_path": target.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in whole],
        "client": ("127.0.0.1", 5000),
        "server": ("127.0.0.1", 8700),
        LINE: Line(),
    }


@asynccontextmanager
async def housed(
    folder: Path,
    config: str = "",
    *,
    domain: str = DOMAIN,
    senders: Sequence[Sender] = (),
    **rows: Any,
) -> AsyncIterator[House]:
    """A gateway over a new store; `senders` are known by their keys.

    `rows` are those of `build`: the stamps and the dialects that it knows.
    """
    (folder / "house_agents.py").write_text(AGENTS)
    (folder / "carnet.toml").write_text(CONFIG.replace(DOMAIN, domain) + config)
    secrets_file.create(folder / "secrets.key")
    clock, ids = SystemClock(), SystemIds()
    spoken = tuple(by_peer(rows.get("dialects", DIALECTS)))
    settings = load(folder / "carnet.toml", {}, dialects=spoken)
    store = await open_store(
        "sqlite:carnet.db",
        base=folder,
        secrets=folder / "secrets.key",
        clock=clock,
        ids=ids,
        exclusive=True,
        file_peers=file_peers(settings),
    )
    await store.start()
    for sender in senders:
        await store.pinned.pin(PinnedKey(sender=sender.identity, public=sender.public_raw))
    _, token = await store.tokens.create(NewToken(name="alice", scopes=EVERYTHING), clock.wall_us())
    with own_modules(folder):  # other tests of this process have agents of their own
        gateway = build(settings, store, clock, ids, **rows)
    gateway.start()
    try:
        yield House(gateway, token.reveal())
    finally:
        await gateway.drain()
        await gateway.close()
