"""A proxy that stands between two gateways and keeps the headers of every request."""

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Fields = list[tuple[str, str]]


class Recorder:
    """Forwards to a port on this machine; `seen` holds the headers, one list a request."""

    def __init__(self, port: int) -> None:
        seen: list[Fields] = []

        class Forwarding(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                seen.append(list(self.headers.items()))
                body = self.rfile.read(int(self.headers["content-length"]))
                upstream = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                try:
                    upstream.request("POST", self.path, body, dict(self.headers.items()))
                    answer = upstream.getresponse()
                    data = answer.read()
                finally:
                    upstream.close()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in {"transfer-encoding", "content-length", "date"}:
                        self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Stay quiet."""

        self.seen = seen
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Forwarding)
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def stamps(self) -> list[dict[str, str]]:
        """The x-tangle headers of every request, as they were spelled."""
        return [
            {name: value for name, value in fields if name.lower().startswith("x-tangle-")}
            for fields in self.seen
        ]

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def recording(port: int) -> Iterator[Recorder]:
    """A recorder before a port, while the context is entered."""
    recorder = Recorder(port)
    recorder.start()
    try:
        yield recorder
    finally:
        recorder.stop()
