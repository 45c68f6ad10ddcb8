"""The model behind every hop: as little server as HTTP/1.1 allows, so that it never limits one.

`/v1/chat/completions` answers 2 KB, or, asked with `"stream": true`, BURST_EVENTS chunks at once.
`/{events}x{rate}/v1/chat/completions` streams that many chunks at `rate` a second; 0 is at once.
`/hold/v1/chat/completions` streams one chunk and is silent from then on.
`/loop/v1/chat/completions` answers as `bench.loop_model` says, whole or as a stream.
`/agent/message` answers 2 KB in the signed dialect, and `/.well-known/agent.json` is its card.
"""

import asyncio
import itertools
import re
import socket
import sys
from typing import Any

import httptools
import uvloop

from bench import loop_model
from bench.bodies import (
    SAMVAD_CARD_PATH,
    SAMVAD_PATH,
    WORD,
    chat_answer,
    chunk,
    last_chunks,
    samvad_answer,
    samvad_card,
)

BURST_EVENTS = 500
SPREAD = 64  # streams that tick at one rate do so at this many different moments

_STREAM = re.compile(rb'"stream": ?true')
_PACE = re.compile(rb"/(\d+)x(\d+)/v1/chat/completions")
_HOLD = b"/hold/v1/chat/completions"
_LOOP = b"/loop/v1/chat/completions"
_SIGNED = SAMVAD_PATH.encode()
_CARD = SAMVAD_CARD_PATH.encode()
_TRACE = re.compile(rb'"traceId": ?"([!-~]*?)"')
_DELTA = chunk({"content": WORD})
_OPENING = chunk({"role": "assistant", "content": ""})
_JSON_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
_SSE_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)


def framed(piece: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(piece), piece)


def whole(body: bytes) -> bytes:
    """An answer in one piece."""
    return _JSON_HEAD % len(body) + body


_ANSWER = whole(chat_answer())
_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"
_FRAMED_DELTA = framed(_DELTA)
_BEGIN = _SSE_HEAD + framed(_OPENING)
_END = framed(last_chunks()) + b"0\r\n\r\n"

_streams = itertools.count()


class Upstream(asyncio.Protocol):
    """One connection."""

    def __init__(self, card: bytes) -> None:
        self._card = card
        self._loop = asyncio.get_running_loop()
        self._parser: Any = httptools.HttpRequestParser(self)
        self._path = b""
        self._body = b""
        self._timer: asyncio.TimerHandle | None = None
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the interface's name
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._path, self._body = url, b""

    def on_body(self, piece: bytes) -> None:
        self._body += piece

    def on_message_complete(self) -> None:
        if self._path == _SIGNED:
            self._transport.write(whole(samvad_answer(_trace(self._body))))
        elif self._path == _LOOP:
            self._transport.write(_in_loop(self._body))
        elif self._parser.get_method() == b"GET":
            self._transport.write(self._card if self._path == _CARD else _NOT_FOUND)
        else:
            self._complete()

    def _complete(self) -> None:
        if _STREAM.search(self._body) is None:
            self._transport.write(_ANSWER)
            return
        if self._path == _HOLD:
            self._transport.write(_BEGIN + _FRAMED_DELTA)
            return
        pace = _PACE.fullmatch(self._path)
        events, rate = (int(pace[1]), int(pace[2])) if pace else (BURST_EVENTS, 0)
        self._transport.write(_BEGIN)
        if rate == 0:
            self._transport.write(_FRAMED_DELTA * events + _END)
        else:
            self._trickle(events, 1 / rate)

    def _trickle(self, events: int, interval: float) -> None:
        # Streams opened together would otherwise tick together, and one wake-up serve them all.
        phase = interval * (next(_streams) % SPREAD) / SPREAD
        start = self._loop.time() + phase
        ticks = iter(range(events))

        def tick() -> None:
            number = next(ticks, None)
            if number is None:
                self._transport.write(_END)
                return
            self._transport.write(_FRAMED_DELTA)
            self._timer = self._loop.call_at(start + (number + 1) * interval, tick)

        self._timer = self._loop.call_at(start, tick)


def _in_loop(body: bytes) -> bytes:
    """An answer of the model behind agent loops."""
    if _STREAM.search(body) is None:
        return whole(loop_model.completion(body))
    return _SSE_HEAD + b"".join(map(framed, loop_model.events(body))) + b"0\r\n\r\n"


def _trace(body: bytes) -> bytes:
    found = _TRACE.search(body)
    return found[1] if found else b""


async def serve(at: socket.socket) -> None:
    """Answer on a socket that was handed down, until the process is ended."""
    card = whole(samvad_card(at.getsockname()[1]))
    server = await asyncio.get_running_loop().create_server(
        lambda: Upstream(card), sock=at, backlog=1024
    )
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(socket.socket(fileno=int(sys.argv[1]))))
