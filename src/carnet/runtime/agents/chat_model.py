"""A model that a loop asks over HTTP, in the words of its codec: chat completions, or others.

Law 1. It is asked for a stream, so that what it says is seen as it comes; what came decides.
Law 2. It is asked again as R56 says, and never once something of its answer has been passed on. A
       provider may charge twice for what is asked twice.
Law 3. Whatever it fails with is a failure of a model: no error of its says that another
       organisation has refused something.
Law 4. An answer that is to be sent back as it came is sent back to the model that gave it.
Law 5. Our key, and what looks like one, is kept out of what a provider says back.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any, Final

from msgspec.structs import replace

from carnet.core.call import Ask
from carnet.core.messages.events import ECHO, Done, Event, Extension, Message, Usage
from carnet.core.messages.output import Sink
from carnet.errors import (
    CarnetError,
    PeerBusy,
    PeerRefused,
    PeerResponseInvalid,
    PeerUnreachable,
    ProviderError,
    ProviderUnavailable,
)
from carnet.ports.engine.model import ModelAsk
from carnet.ports.world.http_client import HttpClient, Unanswered
from carnet.runtime.agents.remote import RemoteEndpoint, mask
from carnet.runtime.peers.answer_reader import read_answer
from carnet.runtime.wrappers.retrying import LONGEST_ASKED_SECONDS, may_repeat, pause_after
from carnet.wire.dialects.openai.request import write_message

logger = logging.getLogger("carnet.runtime")

_LENGTHS: Final = frozenset({"max_tokens", "max_completion_tokens"})
_NAME: Final = 16  # characters that tell models apart
SCHEMA_NAME: Final = "answer"  # providers want one
_OF_PEERS: Final = (PeerBusy, PeerRefused, PeerUnreachable, PeerResponseInvalid)


class ChatModel:
    """One model of one provider."""

    def __init__(
        self,
        http: HttpClient,
        endpoint: RemoteEndpoint,
        *,
        retries: int,
        fraction: Callable[[], float],
        most_tokens: int | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """`endpoint` reads refusals as those of a model; `fraction` gives the jitter of a pause.

        `most_tokens` are those of one answer, where who asks does not say.
        """
        self._http = http
        self._endpoint = endpoint
        self._authorization = endpoint.authorization()
        self._name = sha256(f"{endpoint.url} {endpoint.model}".encode()).hexdigest()[:_NAME]
        self._retries = retries
        self._most_tokens = most_tokens
        self._fraction = fraction
        self._sleep = sleep

    async def __call__(self, ask: ModelAsk, sink: Sink, /) -> Done:
        """Ask it, if need be again."""
        for attempt in range(self._retries + 1):
            passing = _PassingSink(sink, self._name)
            try:
                return await self._ask(ask, passing)
            except CarnetError as error:
                mask(error, self._endpoint.token)
                seconds = None if passing.has_passed else self._pause(error, attempt)
                if seconds is None:
                    raise _of_model(error) from error
                self._note(ask, error, attempt)
            await self._sleep(seconds)
        raise AssertionError("the last attempt returns or raises")

    async def _ask(self, ask: ModelAsk, sink: Sink) -> Done:
        endpoint, asked = self._endpoint, _chat(ask, self._most_tokens, self._name)
        outbound = endpoint.outbound(asked, dict(endpoint.headers), self._authorization)
        async with self._http.send(outbound) as answer:
            del outbound  # an answer may last for long, and needs nothing of it
            end = await read_answer(answer, asked, endpoint.codec, endpoint.currency, sink)
        if not isinstance(end, Done):
            raise ProviderError("a model asked for something in the place of an answer")
        return end

    def _pause(self, error: CarnetError, attempt: int) -> float | None:
        """How long to wait before the next attempt; None if there is to be none."""
        if attempt == self._retries or not may_repeat(error):
            return None
        if isinstance(error.__cause__, Unanswered):
            return 0.0
        is_late = (error.retry_after or 0) > LONGEST_ASKED_SECONDS
        return None if is_late else pause_after(error, attempt, self._fraction())

    @staticmethod
    def _note(ask: ModelAsk, error: CarnetError, attempt: int) -> None:
        logger.info(
            "model is asked again",
            extra={
                "correlation_id": ask.correlation,
                "attempt": attempt + 2,
                "code": error.code,
                "detail": str(error),
            },
        )


class _PassingSink:
    """Passes on what a model says; of what it used the tokens alone."""

    __slots__ = ("_name", "_sink", "has_passed")

    def __init__(self, sink: Sink, name: str) -> None:
        self._sink = sink
        self._name = name
        self.has_passed = False

    async def write(self, event: Event, /) -> None:
        self.has_passed = True
        if type(event) is Extension and event.name == ECHO:
            event = Extension(ECHO, {"by": self._name, "blocks": event.payload})
        await self._sink.write(event)

    def usage(self, usage: Usage, /) -> None:
        self._sink.usage(Usage(usage.tokens_in, usage.tokens_out))


def _chat(ask: ModelAsk, most_tokens: int | None, name: str) -> Ask:
    shown = tuple([_own(message, name) for message in ask.messages])
    messages = [write_message(message) for message in shown]
    body: dict[str, Any] = {**ask.parameters, "messages": messages}
    body.update(_lengths(ask, most_tokens))
    if ask.tools:  # a list without any is refused by most
        body["tools"] = [tool.written() for tool in ask.tools]
    if ask.schema is not None:
        wanted = {"name": SCHEMA_NAME, "schema": ask.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": wanted}
    return Ask(messages=shown, stream=True, body=body)


def _lengths(ask: ModelAsk, most_tokens: int | None) -> dict[str, Any]:
    """How long an answer may be at the most: as who asks says, or we, and as who pays has left."""
    limits = {name: ask.parameters[name] for name in sorted(_LENGTHS & ask.parameters.keys())}
    if not limits and most_tokens is not None:
        limits = {"max_tokens": most_tokens}
    left = ask.most_tokens
    if left is None:
        return limits
    if not limits:
        return {"max_tokens": left}
    return {name: min(most, left) if type(most) is int else left for name, most in limits.items()}


def _own(message: Message, name: str) -> Message:
    """A message with what was kept of it for this model, and for no other."""
    if message.metadata is None or ECHO not in message.metadata:
        return message
    echo = message.metadata[ECHO]
    is_own = isinstance(echo, dict) and echo.get("by") == name
    return replace(message, metadata={ECHO: echo["blocks"]} if is_own else None)


def _of_model(error: CarnetError) -> CarnetError:
    """The same as a failure of a model."""
    if not isinstance(error, _OF_PEERS):
        return error
    failed = ProviderUnavailable(error.detail, **error.facts)
    failed.words = error.words
    return failed
