"""An issuer of access tokens that remembers what it was asked."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs


class Issuer:
    """Gives tokens at /token, tells of them at /introspect, and shows its keys."""

    def __init__(self) -> None:
        asked: list[tuple[str, dict[str, str], dict[str, list[str]]]] = []
        answers: dict[str, Any] = {"expires_in": 3600}
        active: dict[str, dict[str, Any]] = {}
        keys: dict[str, bytes] = {}

        class Serving(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("content-length", "0"))
                form = parse_qs(self.rfile.read(length).decode())
                asked.append((self.path, dict(self.headers), form))
                if self.path == "/token" and answers.get("refuses"):
                    self._reply(b'{"error":"invalid_grant"}', 400)
                    return
                if self.path == "/token":
                    given = {"access_token": f"at-{len(asked)}", "token_type": "Bearer"} | answers
                else:
                    given = active.get(form.get("token", [""])[0], {"active": False})
                self._reply(json.dumps(given).encode())

            def do_GET(self) -> None:
                asked.append((self.path, dict(self.headers), {}))
                self._reply(keys.get(self.path, b"{}"))

            def _reply(self, body: bytes, status: int = 200) -> None:
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Stay quiet."""

        self.asked, self.answers, self.active, self.keys = asked, answers, active, keys
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Serving)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def times(self, path: str) -> int:
        return len([1 for each in self.asked if each[0] == path])
