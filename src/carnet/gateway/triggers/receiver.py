"""`POST /hooks/{name}`: an event that another program tells, for a person of ours.

The name in the address is hers and its own: `alice.orders`.

Law 1. Who cannot prove that it may send is told one thing, whether there is such a hook or not, and
       nothing of what it sent is stored. What is refused for its form is refused before a hook is
       looked for.
Law 2. An event is acknowledged when what it begins is written down; sent again, it is answered the
       same and begins nothing.
Law 3. A body is bounded, and read as JSON only when its signature holds; a large one is read, and
       its message made, beside the event loop.
"""

import asyncio
import re
from collections.abc import Sequence
from functools import partial
from typing import Final

from carnet.core.people.identity import Secret
from carnet.core.people.proof import SECOND_US
from carnet.core.triggers.template import read_template
from carnet.errors import HookRefused, TriggerPaused
from carnet.gateway.bodies import LARGE_BYTES
from carnet.gateway.triggers.own_triggers import TriggerParts
from carnet.http.exchange import Exchange, Row, check_json_body, reply_json
from carnet.ports.calls.triggers import Hook, NewFiring
from carnet.wire.grammar import json
from carnet.wire.grammar.headers import Headers
from carnet.wire.hooks.scheme import SCHEMES, HookEvent, prove

ACCEPTED: Final = 202
_ADDRESS: Final = re.compile(r"([a-z][a-z0-9-]{0,62})\.([a-z0-9][a-z0-9-]{0,62})", re.ASCII)


class HookReceiver:
    """Takes what is sent to hooks."""

    def __init__(self, parts: TriggerParts, *, max_bytes: int) -> None:
        """`max_bytes` is the most that one event may have."""
        self._parts = parts
        self._max_bytes = max_bytes

    async def receive(self, exchange: Exchange, address: str) -> None:
        """POST /hooks/{name}."""
        await self._take(exchange, address, None)

    async def receive_secret(self, exchange: Exchange, address: str, secret: str) -> None:
        """POST /hooks/{name}/{secret}."""
        await self._take(exchange, address, secret)

    async def _take(self, exchange: Exchange, address: str, shown: str | None) -> None:
        check_json_body(exchange.headers)
        body = await exchange.read(self._max_bytes)
        hook, parts = await self._find(address), self._parts
        now = parts.clock.wall_us()
        read = partial(
            _read,
            hook,
            exchange.headers,
            body,
            secrets=await parts.hooks.secrets(hook, now),
            now=now // SECOND_US,
            shown=shown,
        )
        is_large = len(body) > LARGE_BYTES
        event, content = await asyncio.to_thread(read) if is_large else read()
        if not event.is_test:
            await self._keep(hook, event, content, now)
            parts.wake()
        is_answered = event.answer is not None
        page = event.answer if is_answered else {"status": "accepted", "event": event.id}
        await reply_json(exchange, page, 200 if is_answered else ACCEPTED)

    async def _find(self, address: str) -> Hook:
        """The hook of an address: its owner's, by the name that she gave it."""
        match = _ADDRESS.fullmatch(address)
        person = None if match is None else self._parts.people.find(match[1])
        if match is None or person is None:
            raise HookRefused
        hook = await self._parts.hooks.own.find(person.n, match[2])
        if hook is None:
            raise HookRefused
        return hook

    async def _keep(self, hook: Hook, event: HookEvent, content: str, now: int) -> None:
        parts = self._parts
        if hook.paused is None and (reason := await parts.ends(hook.token)) is not None:
            await parts.rest("webhook", hook, reason)
            raise TriggerPaused
        await parts.hooks.receive(
            hook,
            event.key,
            NewFiring(key=parts.ids.uuid(), content=content, tick=now),
            expires=now + event.remembered_seconds * SECOND_US,
            most=parts.bounds.firings,
            now=now,
        )


def _read(
    hook: Hook,
    headers: Headers,
    body: bytes,
    *,
    secrets: Sequence[Secret],
    now: int,
    shown: str | None,
) -> tuple[HookEvent, str]:
    """The event that a request tells, if it holds, and the message that is made of it."""
    event = prove(SCHEMES[hook.scheme], headers, body, secrets=secrets, now=now, shown=shown)
    values = {"body": event.body, "event": event.id, "hook": hook.name}
    return event, read_template(hook.template).write(values, json.write_text)


ROUTES = (
    Row(
        method="POST",
        path="/hooks/{name}",
        endpoint=HookReceiver.receive,
        auth="open",
        summary="Tell a hook of an event, signed as it asks for",
        body="HookEvent",
        answer="Page",
        status=ACCEPTED,
    ),
    Row(
        method="POST",
        path="/hooks/{name}/{secret}",
        endpoint=HookReceiver.receive_secret,
        auth="open",
        summary="Tell a hook of an event, at its secret address",
        body="HookEvent",
        answer="Page",
        status=ACCEPTED,
    ),
)
