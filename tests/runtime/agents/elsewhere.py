"""Agents elsewhere and what they lead to, for the tests of `runtime.agents.remote`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from carnet.core.messages.events import OUTBOUND_CALL, Extension
from carnet.core.people.identity import Secret
from carnet.runtime.agents.remote import Provider, Remote, RemoteEndpoint
from carnet.runtime.egress.client import EgressClient
from tests.runtime.peer import Peer, Script, chunk, reply, stream_head
from tests.runtime.scene import completion

ANSWER = reply(completion("well"))


@asynccontextmanager
async def remote_to(script: Script, **more: Any) -> AsyncIterator[tuple[Remote, Peer]]:
    """A Remote and the peer it leads to."""
    fields = {name: more.pop(name) for name in ("token", "bounds") if name in more}
    async with Peer(script) as peer:
        http = EgressClient()
        endpoint = RemoteEndpoint(url=peer.url, model="critic", **fields)
        try:
            yield Remote(http, endpoint, **{"most_cost": 1_000_000, **more}), peer
        finally:
            await http.close()


@asynccontextmanager
async def provider_to(script: Script, **more: Any) -> AsyncIterator[tuple[Provider, Peer]]:
    """A Provider and the server it leads to."""
    async with Peer(script) as peer:
        http = EgressClient()
        endpoint = RemoteEndpoint(url=peer.url, model="gpt-x", token=Secret("sk-model"))
        try:
            yield Provider(http, endpoint, **more), peer
        finally:
            await http.close()


def call_record(**fields: Any) -> Extension:
    """The record of a call to the critic."""
    call = {"turn": "run_1.t0.critic", "to": "@critic@globex.example", "depth": 1}
    return Extension(OUTBOUND_CALL, {**call, "cost": None, "code": None, "receipt": None, **fields})


def streamed(*frames: bytes) -> bytes:
    """A whole stream of these frames."""
    return stream_head() + b"".join(chunk(frame) for frame in frames) + chunk(b"")
