"""A model's provider on loopback that answers as a test says, and remembers what it was asked."""

import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPMessage, parse_headers
from typing import Any

from msgspec import Struct

JSON = "application/json"
Body = dict[str, Any]


class Answer(Struct, frozen=True):
    """What a provider answers; `None` as its status closes the connection without a word."""

    status: int | None = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    media_type: str = JSON


def answered(text: str = "well", **usage: Any) -> Answer:
    """A whole chat completion."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    completion = {"id": "c-1", "object": "chat.completion", "choices": [choice], "usage": usage}
    return Answer(body=json.dumps(completion).encode())


def streamed(*words: str) -> Answer:
    """A chat completion as a stream; without words it says nothing but that it has ended."""
    chunks: list[Body] = [{"delta": {"content": word}, "finish_reason": None} for word in words]
    chunks.append({"delta": {}, "finish_reason": "stop"})
    frames = [json.dumps({"choices": [{"index": 0, **chunk}]}) for chunk in chunks]
    text = "".join(f"data: {frame}\n\n" for frame in [*frames, "[DONE]"])
    return Answer(body=text.encode(), media_type="text/event-stream")


def broken_off(error: object, *words: str) -> Answer:
    """A stream that says some words and then that it has failed."""
    chunks = [{"choices": [{"index": 0, "delta": {"content": word}}]} for word in words]
    text = "".join(f"data: {json.dumps(frame)}\n\n" for frame in [*chunks, {"error": error}])
    return Answer(body=text.encode(), media_type="text/event-stream")


def refused(status: int, code: str | None = None, message: str = "no", **headers: str) -> Answer:
    """An error as providers write it."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    fields = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Answer(status, json.dumps({"error": error}).encode(), fields)


CLOSED = Answer(None)


class Asked(Struct, frozen=True):
    """One request as it came."""

    path: str
    headers: HTTPMessage
    body: Body

    @property
    def last_message(self) -> str:
        """The last message."""
        return str(self.body["messages"][-1]["content"])


class Model:
    """Answers by `reply`; connections are kept."""

    def __init__(self) -> None:
        model = self

        class Connection(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with suppress(OSError):
                    while (asked := _read(self.rfile)) is not None:
                        model.asked.append(asked)
                        answer = model.reply(asked)
                        if answer.status is None:
                            return
                        self.wfile.write(_written(answer))

        self.asked: list[Asked] = []
        self.reply: Callable[[Asked], Answer] = lambda _: answered()
        self._server = _Server(("127.0.0.1", 0), Connection)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def of(self, text: str) -> list[Asked]:
        """The requests whose last message is this one."""
        return [asked for asked in self.asked if asked.last_message == text]

    @contextmanager
    def serving(self) -> Iterator["Model"]:
        """Answer while the context is entered."""
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128


def _read(stream: Any) -> Asked | None:
    line = stream.readline().decode("latin-1")
    if not line:
        return None
    headers = parse_headers(stream)
    body = stream.read(int(headers.get("content-length", "0")))
    return Asked(line.split(" ")[1], headers, json.loads(body) if body else {})


def _written(answer: Answer) -> bytes:
    fields = {"content-type": answer.media_type, "content-length": str(len(answer.body))}
    lines = [f"{name}: {value}" for name, value in (*fields.items(), *answer.headers)]
    return "\r\n".join([f"HTTP/1.1 {answer.status} Word", *lines, "", ""]).encode() + answer.body
