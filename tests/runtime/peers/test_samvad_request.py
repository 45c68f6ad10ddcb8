"""Calls to a SAMVAD server that verifies by RFC 9421 to the letter: `signature_form` (R50)."""

import base64
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from tests.security.support.cards import card, key_of, says, shows
from tests.support.http import request
from tests.support.organisation import Organisation
from tests.support.served import AGENTS
from tests.support.signing.signed import Sender

PREFIX = "/agents/strict"
STRICT = Sender("agent://strict.globex.example")
INPUT = re.compile(r'sig1=(\("@method" "@path" "content-digest"\);.*)')


class StrictServer(ThreadingHTTPServer):
    """Answers what is signed over the path as it was sent, without a line break at the end."""

    daemon_threads = True
    key: bytes = b""

    def holds(self, method: str, path: str, fields: Any) -> bool:
        found = INPUT.fullmatch(fields["signature-input"])
        assert found is not None, fields["signature-input"]
        lines = [
            f'"@method": {method}',
            f'"@path": {path}',
            f'"content-digest": {fields["content-digest"]}',
            f'"@signature-params": {found[1]}',
        ]
        value = fields["signature"].removeprefix("sig1=:").removesuffix(":")
        try:
            VerifyKey(self.key).verify("\n".join(lines).encode(), base64.b64decode(value))
        except BadSignatureError:
            return False
        return True


class Strict(BaseHTTPRequestHandler):
    """One request to it."""

    server: StrictServer

    def do_GET(self) -> None:
        here = f"http://127.0.0.1:{self.server.server_address[1]}{PREFIX}"
        if self.path == PREFIX + "/.well-known/agent.json":
            shows(card(STRICT.identity, key_of(STRICT), url=here))(self)
        else:
            says(b"{}", status=404)(self)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        ids = {"traceId": asked["traceId"], "spanId": asked["spanId"]}
        if self.server.holds("POST", self.path, self.headers):
            shows({**ids, "status": "ok", "result": {"text": "it holds"}})(self)
        else:
            error = {"code": "AUTH_FAILED", "message": "no"}
            says(json.dumps({**ids, "status": "error", "error": error}).encode(), status=401)(self)

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    with StrictServer(("127.0.0.1", 0), Strict) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        where = f"http://127.0.0.1:{server.server_address[1]}{PREFIX}"
        gateway = Organisation(tmp_path_factory.mktemp("strict"), "acme.example")
        sections = [
            f'[agents.{form}]\nkind = "samvad"\nurl = "{where}"\nsignature_form = "{form}"\n'
            f'identity = "{STRICT.identity}"\n'
            for form in ("rfc9421", "samvad")
        ]
        gateway.configure("".join(sections), agents=AGENTS)
        gateway.start()
        (own,) = request("GET", gateway.url + "/.well-known/carnet.json").json["keys"]
        server.key = base64.b64decode(own["key"])
        yield gateway
        assert gateway.stop() == 0
        server.shutdown()


def test_a_call_is_signed_to_the_letter_of_the_rfc_where_the_operator_says_so(
    acme: Organisation,
) -> None:
    """R50: the path as it is sent, and no line break at the end."""
    reply = acme.chat("hi", "rfc9421")
    assert reply.status == 200, reply.json
    assert reply.json["choices"][0]["message"]["content"] == "it holds"


def test_the_form_of_the_protocol_stays_what_it_is(acme: Organisation) -> None:
    """R8: which this server does not read."""
    assert acme.chat("hi", "samvad").json["code"] == "peer_refused"
