"""A host of cards that counts who asks: one peer behind each path, honest or not."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.signing.signed import Sender, b64

DRIP_SECONDS = 0.5
MOST_BYTES = 64 * 1024 * 1024  # of an answer that would never end
_OVER = threading.Event()

# One agent of a card that is all right but for what a test puts in it.
SKILL = {
    "id": "chat",
    "name": "chat",
    "description": "says it back",
    "inputSchema": {"type": "object"},
    "outputSchema": {"type": "object"},
    "modes": ["sync"],
    "trust": "public",
}


def card(identity: str, *keys: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A card as an SDK writes it."""
    return {
        "id": identity,
        "name": "a",
        "version": "1",
        "description": "a",
        "url": "http://127.0.0.1:9",
        "protocolVersion": "1.2",
        "specializations": [],
        "models": [],
        "skills": [SKILL],
        "publicKeys": list(keys),
        "auth": {"schemes": ["none"]},
        "rateLimit": {"requestsPerMinute": 60, "requestsPerSender": 20},
        "cardTTL": 300,
        "endpoints": {},
        **more,
    }


def key_of(sender: Sender, *, active: bool = True, kid: str | None = None) -> dict[str, Any]:
    return {"kid": kid or sender.kid, "key": sender.public, "active": active}


def raw_key(raw: bytes, kid: str = "k1") -> dict[str, Any]:
    return {"kid": kid, "key": b64(raw), "active": True}


Answer = Callable[[BaseHTTPRequestHandler], None]


def says(body: bytes, *fields: tuple[str, str], status: int = 200) -> Answer:
    """An answer that is there at once."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in (("content-type", "application/json"), *fields):
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def shows(value: dict[str, Any]) -> Answer:
    return says(json.dumps(value).encode())


def never_ends(handler: BaseHTTPRequestHandler) -> None:
    """More than anybody wants to read."""
    handler.send_response(200)
    handler.end_headers()
    for _ in range(MOST_BYTES // 65536):
        handler.wfile.write(b" " * 65536)


def drips(handler: BaseHTTPRequestHandler) -> None:
    """A byte now and then."""
    handler.send_response(200)
    handler.end_headers()
    while not _OVER.wait(DRIP_SECONDS):
        handler.wfile.write(b" ")
        handler.wfile.flush()


class CardHost:
    """Answers by the first part of the path; `asked` counts who was asked for, and for what."""

    def __init__(self) -> None:
        answers: dict[str, Answer] = {}
        asked: Counter[tuple[str, str]] = Counter()
        lock = threading.Lock()

        class Serving(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                peer, _, page = self.path[1:].partition("/")
                with lock:
                    asked[peer, page] += 1
                answer = answers.get(peer) if page == ".well-known/agent.json" else None
                with suppress(OSError):
                    (answer or says(b"{}", status=404))(self)

            def log_message(self, *_: object) -> None:
                """Stay quiet."""

        self.answers = answers
        self.asked = asked
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Serving)
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def fetches(self, peer: str) -> int:
        """How often the card of a peer was asked for."""
        return self.asked[peer, ".well-known/agent.json"]

    @contextmanager
    def serving(self) -> Iterator["CardHost"]:
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            _OVER.set()
            self._server.shutdown()
            self._server.server_close()


def peers(host: CardHost, names: list[str]) -> str:
    """The part of a configuration that says where they are: NAME.example behind /NAME."""
    return "".join(f'[peers."{name}.example"]\nurl = "{host.url}/{name}"\n' for name in names)


class Stopwatch:
    """How long something took; for bounds of what must not take for ever, not of speed."""

    def __enter__(self) -> "Stopwatch":
        self._begun = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.monotonic() - self._begun
