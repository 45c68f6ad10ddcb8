"""A proxy between two gateways that changes what passes, as somebody on the way could."""

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from msgspec import Struct

Fields = dict[str, str]


class Passing(Struct):
    """A request or an answer on its way; whoever holds it may change it."""

    headers: Fields  # names in lower case
    body: bytes
    path: str = ""
    status: int = 0


Change = Callable[[Passing], None]


def untouched(passing: Passing) -> None:
    """Let it pass."""


class Middlebox:
    """Forwards to a port on this machine. `ask`, `answer` and `show` change what passes."""

    def __init__(self, port: int) -> None:
        self.ask: Change = untouched
        self.answer: Change = untouched
        self.show: Change = untouched  # pages, which are given with their path
        self.asked: list[Passing] = []  # as they came, before they were changed
        self.answered: list[Passing] = []  # likewise
        box = self

        class Forwarding(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._pass("GET")

            def do_POST(self) -> None:
                self._pass("POST")

            def _pass(self, method: str) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                came = {name.lower(): value for name, value in self.headers.items()}
                reply = box.forward(method, Passing(came, body, self.path), port)
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    if name not in {"transfer-encoding", "content-length", "date", "connection"}:
                        self.send_header(name, value)
                self.send_header("content-length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)

            def log_message(self, *_: object) -> None:
                """Stay quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Forwarding)
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def forward(self, method: str, passing: Passing, port: int) -> Passing:
        """Send it on, changed, and give the answer, changed."""
        is_call = method == "POST"
        if is_call:
            self.asked.append(Passing(dict(passing.headers), passing.body, passing.path))
            self.ask(passing)
        reply = send(method, passing, port)
        if is_call:
            self.answered.append(Passing(dict(reply.headers), reply.body, "", reply.status))
            self.answer(reply)
        else:
            reply.path = passing.path
            self.show(reply)
        return reply

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def send(method: str, passing: Passing, port: int) -> Passing:
    """Send a request to a port exactly as it is, its Host included."""
    upstream = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        upstream.putrequest(method, passing.path, skip_host=True, skip_accept_encoding=True)
        for name, value in passing.headers.items():
            if name not in {"content-length", "connection"}:
                upstream.putheader(name, value)
        if method == "POST":
            upstream.putheader("content-length", str(len(passing.body)))
        upstream.endheaders(passing.body or None)
        answer = upstream.getresponse()
        fields = {name.lower(): value for name, value in answer.getheaders()}
        return Passing(fields, answer.read(), "", answer.status)
    finally:
        upstream.close()


@contextmanager
def middlebox(port: int) -> Iterator[Middlebox]:
    """One before a port, while the context is entered."""
    box = Middlebox(port)
    box.start()
    try:
        yield box
    finally:
        box.stop()
