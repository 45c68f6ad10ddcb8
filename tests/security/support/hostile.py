"""An upstream that means harm: it answers by its path, and says back what it was told.

It is no HTTP server: it sends bytes, so that an answer can be any nonsense. What it says back are
the credentials of the request, bare, so that no pattern for `Bearer x` can find them.
"""

import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from msgspec import Struct

FORWARDED = "x-tangle-forwarded-authorization"
JSON = "content-type: application/json"
SSE = "content-type: text/event-stream"
_OVER = threading.Event()
PIECE = "all work and no play " * 9_000  # one frame below the bound of an event


class Received(Struct, frozen=True):
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    body: Any

    @property
    def last_message(self) -> str:
        """The last thing it was asked."""
        return str(self.body["messages"][-1]["content"])

    @property
    def loot(self) -> str:
        """The credentials that came along, without their schemes."""
        values = (self.headers.get(name, "") for name in (FORWARDED, "authorization"))
        return "~".join(value.rpartition(" ")[2] for value in values)


Script = Callable[[Received], Iterator[bytes]]


def head(*lines: str, status: str = "200 OK") -> bytes:
    """The beginning of an answer that ends with its connection."""
    return "\r\n".join([f"HTTP/1.1 {status}", "connection: close", *lines, "", ""]).encode()


def frame(value: object) -> bytes:
    """One server-sent event."""
    return f"data: {json.dumps(value)}\n\n".encode()


def delta(text: str) -> bytes:
    """A piece of a streamed answer."""
    return frame({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]})


def whole(text: str, usage: object = None) -> bytes:
    """An answer in one piece."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}}
    return json.dumps({"choices": [{**choice, "finish_reason": "stop"}], "usage": usage}).encode()


def echoed(loot: str) -> dict[str, Any]:
    """An error that says the loot wherever an error may say anything."""
    inner = dict.fromkeys(("code", "message", "type", "param", "hint", "incident", "run"), loot)
    inner |= dict.fromkeys(("permission", "reason", "key", "url", "peer_code", loot), loot)
    return {"error": inner, "code": loot, "message": loot, loot: loot}


def _echoing_fields(loot: str) -> list[str]:
    names = ("x-echo", "retry-after", "www-authenticate", "set-cookie", "x-tangle-runid")
    return [f"{name}: {loot}" for name in names]


# ---------------------------------------------------------------------- what it does, by path


def _refusing(status: str) -> Script:
    def script(received: Received) -> Iterator[bytes]:
        yield head(JSON, *_echoing_fields(received.loot), status=status)
        yield json.dumps(echoed(received.loot)).encode()

    return script


def _sse_error(received: Received) -> Iterator[bytes]:
    yield head(SSE)
    yield frame(echoed(received.loot))


def _sse_error_midway(received: Received) -> Iterator[bytes]:
    yield head(SSE, *_echoing_fields(received.loot))
    yield delta("so far ")
    yield frame(echoed(received.loot))


def _sse_known_code(received: Received) -> Iterator[bytes]:
    """A code of ours whose sentence has blanks for words."""
    yield head(SSE)
    yield delta("so far ")
    yield frame({"error": echoed(received.loot)["error"] | {"code": "permission_missing"}})


def _sse_garbage(received: Received) -> Iterator[bytes]:
    yield head(SSE)
    yield delta("so far ")
    yield f"{received.loot}: {received.loot}\ndata: {received.loot}\n\n".encode()


def _headers(received: Received) -> Iterator[bytes]:
    yield head(JSON, *_echoing_fields(received.loot))
    yield whole("fine")


def _half_head(received: Received) -> Iterator[bytes]:
    yield f"HTTP/1.1 200 OK\r\nx-echo: {received.loot}\r\n".encode()


def _no_head(received: Received) -> Iterator[bytes]:
    yield f"{received.loot}\r\n\r\n".encode()


def _bad_status(received: Received) -> Iterator[bytes]:
    yield f"HTTP/1.1 {received.loot} OK\r\n\r\n".encode()


def _bad_header(received: Received) -> Iterator[bytes]:
    yield f"HTTP/1.1 200 OK\r\n\x01{received.loot}\x01: {received.loot}\r\n\r\n".encode()


def _bad_chunk(received: Received) -> Iterator[bytes]:
    piece, loot = delta("so far "), received.loot.encode()
    chunks = b"%x\r\n%b\r\n%b\r\n%b\r\n" % (len(piece), piece, loot, loot)
    yield head(SSE, "transfer-encoding: chunked") + chunks


def _cut_off(received: Received) -> Iterator[bytes]:
    """Less than was announced, after a word."""
    yield head(SSE, "content-length: 9999", *_echoing_fields(received.loot))
    yield delta("so far ")


def _bad_json(received: Received) -> Iterator[bytes]:
    yield head(JSON)
    yield f'{{"{received.loot}": {received.loot}'.encode()


def _bad_shape(received: Received) -> Iterator[bytes]:
    yield head(JSON)
    message = {"content": {received.loot: received.loot}}
    yield json.dumps({received.loot: 1, "choices": [{"message": message}]}).encode()


def _bad_media(received: Received) -> Iterator[bytes]:
    yield head(f"content-type: {received.loot}/x", f"content-encoding: {received.loot}")
    yield received.loot.encode()


def _redirect(received: Received) -> Iterator[bytes]:
    yield head(f"location: /{received.loot}", status=f"302 {received.loot}")


STACK = (
    'Traceback (most recent call last):\n  File "/srv/canary-house/app.py", line 7, in answer\n'
    "    pay(key='sk-canary-of-the-upstream-0001')\nKeyError: 'canary-column'"
)
AFTER = "canary after the end"
STOP = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
ENDED = b"data: [DONE]\n\n"


def _stack(_: Received) -> Iterator[bytes]:
    yield head(JSON, "x-debug: /srv/canary-house", status="500 canary-house")
    yield json.dumps({"error": {"message": STACK, "type": STACK, "code": STACK}}).encode()


def _stack_midway(_: Received) -> Iterator[bytes]:
    yield head(SSE, "x-debug: /srv/canary-house")
    yield delta("so far ")
    yield frame({"error": {"message": STACK, "type": STACK, "code": STACK}})


def _unknown_event(_: Received) -> Iterator[bytes]:
    yield head(SSE)
    yield delta("so far ")
    yield b"event: surprise\n" + frame({"type": "surprise", "text": AFTER})
    yield frame(STOP) + ENDED


def _after_done(_: Received) -> Iterator[bytes]:
    yield head(SSE)
    yield delta("so far ") + frame(STOP) + ENDED + delta(AFTER)


def _two_done(_: Received) -> Iterator[bytes]:
    yield head(SSE)
    yield delta("so far ") + frame(STOP) + ENDED
    yield ENDED + delta(AFTER) + ENDED


def _no_done(_: Received) -> Iterator[bytes]:
    yield head(SSE)
    yield delta("so far ")


def _huge_event(_: Received) -> Iterator[bytes]:
    yield head(SSE)
    yield delta("so far ") + b"data: "
    for _megabyte in range(100):
        yield b"x" * 1024 * 1024
    yield b"\n\n" + frame(STOP) + ENDED


def _bad_utf8(_: Received) -> Iterator[bytes]:
    yield head(SSE)
    yield delta("so far ")
    yield delta("@").replace(b"@", b"\xff\xfe") + frame(STOP) + ENDED


def _bill(received: Received) -> Iterator[bytes]:
    """The usage is what the caller says it is, as it stands."""
    usage = b'"usage": %b' % received.last_message.encode()
    if not received.body.get("stream"):
        yield head(JSON)
        yield whole("served").replace(b'"usage": null', usage)
        return
    yield head(SSE)
    yield delta("served")
    yield b'data: {"choices": [], %b}\n\ndata: [DONE]\n\n' % usage


def _bill_then_break(received: Received) -> Iterator[bytes]:
    yield head(SSE)
    yield delta("so far ")
    yield b'data: {"choices": [], "usage": %b}\n\n' % received.last_message.encode()
    yield frame({"error": {"code": "no such code"}})


def _deltas(received: Received) -> Iterator[bytes]:
    """As many tiny pieces as it was asked for, in a stream, also where none was asked for."""
    yield head(SSE)
    many, rest = divmod(int(received.last_message), 1000)
    piece = delta("a ")
    for _ in range(many):
        yield piece * 1000
    yield piece * rest + frame(STOP) + ENDED


def _endless(received: Received) -> Iterator[bytes]:
    if received.body.get("stream"):
        yield head(SSE)
        piece = delta(PIECE)
    else:
        yield head(JSON)
        yield whole("")[:-1] + b', "more": "'
        piece = PIECE.encode()
    while True:
        yield piece


def _drip(_: Received) -> Iterator[bytes]:
    """A word now and then, for ever."""
    yield head(SSE)
    while not _OVER.wait(0.05):
        yield delta("and ")


def _answer(received: Received) -> Iterator[bytes]:
    yield head(JSON)
    yield whole(received.last_message)


LEAKING: dict[str, Script] = {
    "refuse-400": _refusing("400 Bad Request"),
    "refuse-401": _refusing("401 Unauthorized"),
    "refuse-402": _refusing("402 Payment Required"),
    "refuse-413": _refusing("413 Too Large"),
    "refuse-429": _refusing("429 Too Many"),
    "refuse-500": _refusing("500 Oops"),
    "sse-error": _sse_error,
    "sse-error-midway": _sse_error_midway,
    "sse-known-code": _sse_known_code,
    "sse-garbage": _sse_garbage,
    "headers": _headers,
    "half-head": _half_head,
    "no-head": _no_head,
    "bad-status": _bad_status,
    "bad-header": _bad_header,
    "bad-chunk": _bad_chunk,
    "cut-off": _cut_off,
    "bad-json": _bad_json,
    "bad-shape": _bad_shape,
    "bad-media": _bad_media,
    "redirect": _redirect,
}
TALKING: dict[str, Script] = {"stack": _stack, "stack-midway": _stack_midway}
ENDLESSLY: dict[str, Script] = {
    "unknown-event": _unknown_event,
    "after-done": _after_done,
    "two-done": _two_done,
    "no-done": _no_done,
    "huge-event": _huge_event,
    "bad-utf8": _bad_utf8,
}
OTHERS: dict[str, Script] = {
    "bill": _bill,
    "bill-then-break": _bill_then_break,
    "endless": _endless,
    "drip": _drip,
    "answer": _answer,
    "deltas": _deltas,
}
SCRIPTS = LEAKING | TALKING | ENDLESSLY | OTHERS


class Hostile:
    """The upstream; `received` holds every request, `sent` the bytes of the last answer."""

    def __init__(self) -> None:
        hostile = self

        class Connection(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                request = _read(self.rfile)
                if request is None:
                    return
                hostile.received.append(request)
                sent = 0
                with suppress(OSError):
                    for data in SCRIPTS[request.path.split("/")[1]](request):
                        self.wfile.write(data)
                        sent += len(data)
                hostile.sent = sent

        self.received: list[Received] = []
        self.sent = 0
        self._server = _Server(("127.0.0.1", 0), Connection)
        self.port = int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @contextmanager
    def serving(self) -> Iterator["Hostile"]:
        """Answer while the context is entered."""
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            _OVER.set()
            self._server.shutdown()
            self._server.server_close()


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128


def _read(stream: Any) -> Received | None:
    first = stream.readline().decode("latin-1")
    if not first:
        return None
    headers: dict[str, str] = {}
    while line := stream.readline().decode("latin-1").rstrip("\r\n"):
        name, _, value = line.partition(": ")
        assert name.lower() not in headers
        headers[name.lower()] = value
    body = stream.read(int(headers.get("content-length", "0")))
    return Received(first.split(" ")[1], headers, json.loads(body) if body else None)


def agents(url: str, token_file: str) -> str:
    """The configuration that makes every script an agent of its name."""
    return "\n".join(
        f'[agents.{name}]\nkind = "tangle"\nurl = "{url}/{name}/v1"\nmax_cost = "0.5"\n'
        "retries = 0\n"
        f'may_forward_authorization = true\ntoken = {{file = "{token_file}"}}\n'
        for name in SCRIPTS
    )
