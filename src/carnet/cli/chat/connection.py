"""What a chat asks a gateway: pages, answers as they come, decisions.

Law 1. Each request has a connection of its own: between two of them a person thinks, and a
       connection that is kept meanwhile may be gone.
Law 2. A token made here is made anew before it ends, however long a chat lasts.
"""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, Self
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from carnet.cli.invocation import Invocation
from carnet.cli.reach import gateway
from carnet.cli.reach.pages import RENEW_SECONDS
from carnet.cli.reach.requests import owner_token
from carnet.errors import ProviderError, ProviderTimeout, ProviderUnavailable, Unreachable
from carnet.ports.world.http_client import Bounds, HttpAnswer, Outbound
from carnet.runtime.system import SystemClock

# A connection that ended early.
LOST: Final = (Unreachable, ProviderUnavailable, ProviderTimeout, ProviderError)
ANSWERING: Final = Bounds(idle_seconds=120, total_seconds=24 * 3600.0)
CONVERSATION: Final = "x-conversation-id"
MESSAGE: Final = "x-message-id"

Page = dict[str, Any]
Frame = tuple[str, Page]  # the name of an event, and what it holds


class ChatConnection:
    """A gateway and a token, for as long as it is entered."""

    def __init__(self, invocation: Invocation, url: str | None, token: str | None) -> None:
        """`url` is that of a gateway; by default it is found as every command finds it.

        Without a token who has the configuration talks as its owner.
        """
        self._invocation = invocation
        self._env = os.environ if url is None else {"CARNET_URL": url}
        self._token = token if url is not None else owner_token(invocation, token)
        self._stack = AsyncExitStack()
        self._by: gateway.Credential | None = None
        self._until = 0.0
        self.place = gateway.Place("", is_ours=False)  # until it is entered

    async def __aenter__(self) -> Self:
        """Find the gateway."""
        async with gateway.open_http() as http:
            self.place = await gateway.find_place(self._invocation, http, self._env)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Revoke what was made."""
        await self._stack.aclose()

    async def ask(self, method: str, path: str, content: object = None) -> Page:
        """A page, or what came of something that was asked for."""
        async with self._sending(method, path, content) as answer:
            return gateway.decode(await answer.read())

    async def read(self, path: str) -> bytes:
        """The bytes of something."""
        async with self._sending("GET", path) as answer:
            return await answer.read()

    @asynccontextmanager
    async def stream(
        self, path: str, content: object = None, conversation: str | None = None
    ) -> AsyncIterator["AnswerStream"]:
        """An answer as it comes, in a conversation or a new one."""
        more = {} if conversation is None else {CONVERSATION: conversation}
        async with self._sending("POST", path, content, more, ANSWERING) as answer:
            yield AnswerStream(answer)

    @asynccontextmanager
    async def follow(self, conversation: str) -> AsyncIterator["AnswerStream"]:
        """The last answer of a conversation as it comes, which was asked for before."""
        path = conversation_path(conversation, "/answer")
        async with self._sending("GET", path, bounds=ANSWERING) as answer:
            yield AnswerStream(answer)

    @asynccontextmanager
    async def _sending(
        self,
        method: str,
        path: str,
        content: object = None,
        more: dict[str, str] | None = None,
        bounds: Bounds = gateway.QUICK,
    ) -> AsyncIterator[HttpAnswer]:
        by = await self._credential()
        request = gateway.request_to(self.place, method, path, by, bounds=bounds)
        request = _with(request, content, more or {})
        async with (
            gateway.open_http() as http,
            gateway.sending(http, request, token_is_new=by.is_new) as answer,
        ):
            yield answer

    async def _credential(self) -> gateway.Credential:
        now = SystemClock().monotonic()
        if self._by is None or (self._by.is_new and now >= self._until):
            self._until = now + RENEW_SECONDS
            self._by = await self._stack.enter_async_context(
                gateway.credential(self._invocation, self.place, self._token)
            )
        return self._by


class AnswerStream:
    """One answer on its way."""

    def __init__(self, answer: HttpAnswer) -> None:
        """`answer` has begun."""
        self._answer = answer
        self.conversation = answer.header(CONVERSATION)
        self.message = answer.header(MESSAGE)

    async def frames(self) -> AsyncIterator[Frame]:
        """Its events."""
        async for event in gateway.read_events(self._answer):
            yield event.event, gateway.decode(event.data)


def _with(request: Outbound, content: object, more: dict[str, str]) -> Outbound:
    headers = {**request.headers, **more}
    if content is None:
        return replace(request, headers=headers)
    headers["content-type"] = "application/json"
    return replace(request, body=msgspec.json.encode(content), headers=headers)


def conversation_path(id: str, tail: str = "") -> str:
    """Where a conversation is."""
    return f"/conversations/{quote(id, safe='')}{tail}"


def question_path(id: str) -> str:
    """Where a question is."""
    return f"/approvals/{quote(id, safe='')}"
