"""Requests of one command to its gateway, with one token: a method, a path, and what is sent.

Law. They are read and sent as JSON; what the gateway refuses is raised with its own words.
"""

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from carnet.cli.invocation import Invocation
from carnet.cli.reach import gateway
from carnet.errors import CarnetError

Ask = Callable[..., Awaitable[dict[str, Any]]]


@asynccontextmanager
async def asking(invocation: Invocation, token: str | None) -> AsyncIterator[Ask]:
    """What asks the gateway of this configuration."""
    async with gateway.open_http() as http, gateway.reached(invocation, http, token) as (place, by):

        async def ask(
            method: str, path: str, content: dict[str, Any] | None = None
        ) -> dict[str, Any]:
            request = gateway.request_to(place, method, path, by)
            if content is not None:
                headers = {**request.headers, "content-type": "application/json"}
                request = replace(request, body=json.dumps(content).encode(), headers=headers)
            async with gateway.sending(http, request, token_is_new=by.is_new) as reply:
                return gateway.decode(await reply.read())

        yield ask


async def ask_as_owner(
    invocation: Invocation,
    token: str | None,
    method: str,
    path: str,
    content: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Ask once, as a person."""
    async with asking(invocation, owner_token(invocation, token)) as ask:
        return await ask(method, path, content)


def owner_token(invocation: Invocation, token: str | None) -> str | None:
    """The token of a person: the one given, CARNET_TOKEN, or the owner's first one."""
    return token or os.environ.get("CARNET_TOKEN") or _starter(invocation)


def _starter(invocation: Invocation) -> str | None:
    """The file of the token that `carnet init` has made, if it is there and meant for this."""
    if os.environ.get("CARNET_URL"):
        return None
    try:
        path = invocation.settings.base / "var" / "starter.token"
    except CarnetError:
        return None
    return f"@{path}" if path.is_file() else None
