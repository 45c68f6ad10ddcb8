"""An agent loop that says what it was told: it knows the contract, and nothing of Carnet.

    python echo_loop.py PORT TOKEN REQUEST_SCHEMA [KEY]

It takes requests in the form of the published schema, from who has TOKEN and from the gateway that
signs the bearers of its turns with KEY (`carnet keys list`).
"""

import hmac
import json
import sys
import time
from base64 import b64decode, urlsafe_b64decode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from jsonschema_rs import validator_for
from nacl.exceptions import CryptoError
from nacl.signing import VerifyKey


class EchoLoop(BaseHTTPRequestHandler):
    """One request, from its head to the end of its stream."""

    token, key, form = "", "", None

    def is_known(self):
        scheme, _, credential = self.headers.get("authorization", "").partition(" ")
        signed, _, signature = credential.rpartition(".")
        try:
            VerifyKey(b64decode(self.key)).verify(signed.encode(), _decoded(signature))
            return json.loads(_decoded(signed.split(".")[1]))["exp"] > time.time()  # noqa: TID251  no Carnet here
        except (CryptoError, ValueError, TypeError):  # no bearer of a turn
            return scheme.lower() == "bearer" and hmac.compare_digest(credential, self.token)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if not self.is_known():
            self.refuse(401, "unauthorized", "The request needs a valid credential.")
        elif self.path != "/engine/chat":
            self.refuse(404, "not_found", "There is nothing at this path.")
        elif self.command != "POST":
            self.refuse(405, "method_not_allowed", "This path takes POST.")
        elif (request := self.read(body)) is None:
            self.refuse(400, "invalid_request", "The request is not in its form.")
        else:
            frames = [
                f"event: {name}\ndata: {json.dumps(data)}\n\n"
                for name, data in self.events(request)
            ]
            self.answer(200, "text/event-stream", "".join(frames))

    do_GET = do_PUT = do_POST  # noqa: N815  names of the standard library

    def read(self, body):
        try:
            request = json.loads(body)
        except ValueError:
            return None
        return request if self.form.is_valid(request) else None

    def events(self, request):
        yield "text-delta", {"content": "Echo: " + request["messages"][-1]["content"]}
        yield (
            "done",
            {"finish_reason": "stop", "usage": {"prompt_tokens": 1, "completion_tokens": 2}},
        )

    def refuse(self, status, code, message):
        self.answer(status, "application/json", json.dumps({"code": code, "message": message}))

    def answer(self, status, media, text):
        self.send_response(status)
        self.send_header("content-type", media)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


def _decoded(text):
    return urlsafe_b64decode(text + "==")


if __name__ == "__main__":
    if not sys.argv[3:]:
        sys.exit(__doc__)
    port, EchoLoop.token, schema, *keys = sys.argv[1:]
    EchoLoop.key = keys[0] if keys else ""
    EchoLoop.form = validator_for(json.loads(Path(schema).read_text()))
    server = ThreadingHTTPServer(("127.0.0.1", int(port)), EchoLoop)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
