"""The floor for a Python server: read the body, answer 2 KB, nothing else."""

from collections.abc import Awaitable, Callable
from typing import Any

from bench.bodies import chat_answer

_BODY = chat_answer()
_HEADERS = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(_BODY))]


async def app(
    scope: dict[str, Any],  # noqa: ARG001 - ASGI's signature
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """One request."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    await send({"type": "http.response.body", "body": _BODY})
