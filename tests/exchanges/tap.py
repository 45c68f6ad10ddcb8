"""Servers of this process that write down what they receive, and what they answer.

A `Tap` either plays a part (a model, a hook, an agent of another make) or stands before a gateway
and passes on, byte for byte, what comes.
"""

import http.client
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from msgspec import Struct

Fields = list[tuple[str, str]]
_OWN = {"transfer-encoding", "content-length", "connection", "date"}


class Received(Struct, frozen=True, kw_only=True):
    """A request as it arrived."""

    method: str
    target: str
    headers: Fields
    body: bytes


class Answer(Struct, frozen=True, kw_only=True):
    """What is answered; an empty `status` closes the connection without a word."""

    status: int = 200
    headers: Fields = []
    body: bytes = b""
    is_cut: bool = False  # whether the connection ends before all of the body was sent


class Passed(Struct, frozen=True, kw_only=True):
    """One exchange that a tap has seen."""

    by: str
    received: Received
    answer: Answer


Play = Callable[[Received], Answer]


class Tap:
    """Listens on a port of its own while it is entered."""

    def __init__(
        self,
        name: str,
        play: Play,
        passed: list[Passed],
        *,
        tells: bool = True,
    ) -> None:
        """`passed` is the one list of all taps; `tells` says whether answers are kept."""
        self.name = name
        tap = self

        class Listening(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # an answer is one write

            def handle_one(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                received = Received(
                    method=self.command,
                    target=self.path,
                    headers=list(self.headers.items()),
                    body=body,
                )
                answer = play(received)
                kept = answer if tells else Answer(status=answer.status)
                with tap.lock:
                    passed.append(Passed(by=name, received=received, answer=kept))
                self._say(answer)

            do_GET = do_POST = handle_one  # noqa: N815  names of the standard library

            def _say(self, answer: Answer) -> None:
                if not answer.status:
                    self.close_connection = True
                    return
                self.send_response_only(answer.status)
                for field, value in answer.headers:
                    self.send_header(field, value)
                self.send_header("content-length", str(len(answer.body) + answer.is_cut))
                self.end_headers()
                self.wfile.write(answer.body)
                self.close_connection = self.close_connection or answer.is_cut

            def log_message(self, *_: object) -> None:
                """Stay quiet."""

        self.lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Listening)
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )

    def start(self) -> "Tap":
        self._thread.start()
        return self

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def passing_on(port_of: Callable[[], int]) -> Play:
    """Pass everything on to a port of this machine, known when the first request comes."""

    def play(received: Received) -> Answer:
        onward = http.client.HTTPConnection("127.0.0.1", port_of(), timeout=60)
        try:
            onward.putrequest(
                received.method, received.target, skip_host=True, skip_accept_encoding=True
            )
            for name, value in received.headers:
                onward.putheader(name, value.encode("latin-1"))
            onward.endheaders(received.body or None)
            answer = onward.getresponse()
            body = answer.read()
        finally:
            onward.close()
        headers = [(name, value) for name, value in answer.getheaders() if name.lower() not in _OWN]
        return Answer(status=answer.status, headers=headers, body=body)

    return play
