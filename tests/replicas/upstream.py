"""A model behind an OpenAI-compatible address, which counts what it is asked, and a loop beside it.

The loop answers `POST /engine/chat` with the text that `loop` gives for the bearer of the turn.
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOOP = "/engine/chat"
USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


def _repeated(_: str, text: str) -> str:
    return text


class _Answering(BaseHTTPRequestHandler):
    upstream: "Upstream"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = body["messages"][-1]["content"]
        self.upstream.asked[text] += 1
        if self.path == LOOP:
            self._loop(text)
        elif body.get("stream"):
            self._begin("text/event-stream")
            self._speak(text.split())
        else:
            self._begin("application/json")
            time.sleep(0.05)
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self._write({"id": "x", "choices": [choice], "usage": USAGE}, b"%b")

    def _begin(self, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.end_headers()

    def _loop(self, text: str) -> None:
        text_of_loop = self.upstream.loop(self.headers["authorization"], text)
        self._begin("text/event-stream")
        self._write({"content": text_of_loop}, b"event: text-delta\ndata: %b\n\n")
        usage = {"prompt_tokens": 3, "completion_tokens": 2}
        end = {"finish_reason": "stop", "usage": usage}
        self._write(end, b"event: done\ndata: %b\n\n")

    def _speak(self, words: list[str]) -> None:
        for word in words:
            choice = {"index": 0, "delta": {"content": word}, "finish_reason": None}
            self._write({"id": "x", "choices": [choice]})
            time.sleep(0.02)
        end = {"index": 0, "delta": {}, "finish_reason": "stop"}
        self._write({"id": "x", "choices": [end]})
        self._write({"id": "x", "choices": [], "usage": USAGE})
        self.wfile.write(b"data: [DONE]\n\n")

    def _write(self, page: object, form: bytes = b"data: %b\n\n") -> None:
        self.wfile.write(form % json.dumps(page).encode())
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


class Upstream:
    """Answers with what it was asked, after a moment; `asked` counts the requests by their text."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.loop: Callable[[str, str], str] = _repeated  # of a bearer and what is asked
        answering = type("Answering", (_Answering,), {"upstream": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), answering)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def serve(self) -> None:
        self._server.serve_forever(poll_interval=0.05)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def upstream() -> Iterator[Upstream]:
    model = Upstream()
    threading.Thread(target=model.serve, daemon=True).start()
    try:
        yield model
    finally:
        model.stop()
