"""Pages of a gateway, asked for one after the other with one token.

Law. They are read and sent as JSON; what the gateway refuses is raised with its own words.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from carnet.cli.invocation import Invocation
from carnet.cli.reach import gateway

Ask = Callable[..., Awaitable[dict[str, Any]]]  # a method, a path, and what is sent


@asynccontextmanager
async def asking(invocation: Invocation, token: str | None) -> AsyncIterator[Ask]:
    """What asks the gateway of this configuration, with one token."""
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
