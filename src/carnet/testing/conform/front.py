"""The other side of the contract: a loop that waits for one request of a front, and judges it.

It answers with a short stream, whatever it was asked, so that the front has something to show.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from carnet.errors import CarnetError, Malformed, UsageInvalid
from carnet.testing.conform.probe import PATH
from carnet.testing.conform.verdict import BrokenPlace, Verdict, judged
from carnet.wire.dialects.engine_chat import EngineRequest, read_request
from carnet.wire.grammar.headers import Headers

MOST_HEAD_BYTES: Final = 65_536
MOST_BODY_BYTES: Final = 16 * 1024 * 1024
_ANSWER: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    b'event: text-delta\ndata: {"content":"The kit has read the request."}\n\n'
    b'event: done\ndata: {"finish_reason":"stop",'
    b'"usage":{"prompt_tokens":0,"completion_tokens":0}}\n\n'
)
_IDENTITY: Final = ("x-actor-id", "x-actor-permissions")


class FrontRequest(Struct, frozen=True):
    """What a front has sent."""

    line: str
    headers: Headers
    body: bytes


async def judge_front(
    url: str, *, seconds: float, on_listening: Callable[[str], None]
) -> list[Verdict]:
    """Listen, wait for one request, and judge it."""
    host, port = _address(url)
    arrived: asyncio.Future[FrontRequest] = asyncio.get_running_loop().create_future()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await _read(reader)
            writer.write(_ANSWER)
            await writer.drain()
        except (OSError, ValueError, EOFError, asyncio.LimitOverrunError, CarnetError):
            return  # no request of anybody
        finally:
            writer.close()
        if not arrived.done():
            arrived.set_result(request)

    server = await asyncio.start_server(answer, host, port, limit=MOST_HEAD_BYTES)
    async with server:
        real = server.sockets[0].getsockname()[1]
        on_listening(f"http://{host}:{real}")
        try:
            async with asyncio.timeout(seconds):
                return list(_verdicts(await arrived))
        except TimeoutError:
            seen = [BrokenPlace(f"POST {PATH}", f"nobody asked within {seconds:g} s")]
            return [judged("asked", "A front asks its loop.", seen)]


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if parts.scheme != "http" or not host or port is None:
        raise UsageInvalid(
            reason="--front is where the kit listens in the place of a loop: http://HOST:PORT.",
            fix="Such as: --front http://127.0.0.1:8701",
        )
    return host, port


async def _read(reader: asyncio.StreamReader) -> FrontRequest:
    head = (await reader.readuntil(b"\r\n\r\n")).rstrip(b"\r\n").split(b"\r\n")
    fields = [line.partition(b":") for line in head[1:]]
    headers = Headers([(name.lower(), value.strip()) for name, _, value in fields])
    length = headers.read_count("content-length") or 0
    if length > MOST_BODY_BYTES:
        raise ValueError
    return FrontRequest(head[0].decode("latin-1"), headers, await reader.readexactly(length))


def _verdicts(request: FrontRequest) -> Iterable[Verdict]:
    headers, asked = request.headers, _asked(request.body)
    line = request.line.rpartition(" ")[0]
    yield judged(
        "asked",
        f"A front asks by POST {PATH}.",
        _unless(line == f"POST {PATH}", f"POST {PATH}", line),
    )
    media = (headers.get("content-type") or "").partition(";")[0].strip()
    yield judged(
        "media",
        "What it sends is application/json.",
        _unless(media == "application/json", "application/json", repr(media)),
    )
    shown = [name for name in ("authorization", "x-api-key", "cookie") if headers.get_all(name)]
    yield judged(
        "credential",
        "It shows one credential: a bearer, an API key or a cookie.",
        _unless(len(shown) == 1, "one credential", ", ".join(shown) or "none"),
    )
    forged = [name for name in _IDENTITY if headers.get_all(name)]
    yield judged(
        "identity",
        "It says nothing of who acts: that is for Auth.",
        _unless(not forged, "no header of an identity", ", ".join(forged)),
    )
    is_read = isinstance(asked, EngineRequest)
    yield judged(
        "form",
        "The body is in the form of the contract.",
        _unless(is_read, "messages and metadata, in their form", str(asked)),
    )
    yield judged(
        "secrets",
        "No credential stands in the body.",
        _unless(not _leaks(request), "a body without it", "the credential of the headers"),
    )
    yield _named(headers.get("x-correlation-id"), asked)


def _named(name: str | None, asked: "EngineRequest | str") -> Verdict:
    known = asked.correlation if isinstance(asked, EngineRequest) else None
    return judged(
        "correlation",
        "Where x-correlation-id names the request, metadata.correlation_id does so alike.",
        _unless(name in {None, known}, str(known), str(name)),
        is_seen=name is not None,
    )


def _asked(body: bytes) -> EngineRequest | str:
    """What is asked, or why it cannot be read."""
    try:
        return read_request(body)
    except Malformed as error:
        return error.safe_text


def _leaks(request: FrontRequest) -> bool:
    words = (request.headers.get("authorization") or "").split()
    return bool(words) and words[-1].encode() in request.body


def _unless(is_kept: bool, expected: str, seen: str) -> list[BrokenPlace]:  # noqa: FBT001  its point
    return [] if is_kept else [BrokenPlace(expected, seen)]
