"""A host of pages that remembers what it was asked for."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CARD = "/.well-known/agent-card.json"


class PageHost:
    """Answers each path with its page; what has none is 404."""

    def __init__(self) -> None:
        pages: dict[str, bytes] = {}
        asked: list[str] = []

        class Serving(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                body = pages.get(self.path)
                self.send_response(404 if body is None else 200)
                self.send_header("content-length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_: object) -> None:
                """Stay quiet."""

        self.pages, self.asked = pages, asked
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Serving)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def show(self, card: dict[str, Any], place: str = "") -> str:
        """Publish a card, and say where the agent is."""
        self.pages[place + CARD] = json.dumps(card).encode()
        return self.url + place

    @contextmanager
    def serving(self) -> Iterator["PageHost"]:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
