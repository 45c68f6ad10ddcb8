"""What leaves in the signed dialect is signed, whatever happens to the keys meanwhile (F33)."""

import json
import threading
from base64 import b64decode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from msgspec import Struct
from nacl.signing import VerifyKey

from carnet.testing.wait import until
from tests.security.support.cards import card, key_of
from tests.support.federation import organisation
from tests.support.http import request
from tests.support.organisation import Organisation
from tests.support.signing.signed import MESSAGE, Sender, digest

CALLS = 60
AWAY = '[agents.away]\nkind = "samvad"\nurl = "{url}"\n'
THEIRS = "agent://away.example"


class Received(Struct, frozen=True):
    """One request as it arrived."""

    headers: dict[str, str]
    body: bytes

    @property
    def envelope(self) -> Any:
        return json.loads(self.body)

    def holds(self, keys: dict[str, bytes]) -> bool:
        """Whether it is signed with one of these keys, in the form of the dialect."""
        given = self.headers["signature-input"].removeprefix("sig1=")
        keyid = given.partition('keyid="')[2].partition('"')[0]
        assert given.startswith('("@method" "@path" "content-digest");keyid=')
        assert self.headers["content-digest"] == digest(self.body)
        base = (
            f'"@method": POST\n"@path": {MESSAGE}\n"content-digest": {digest(self.body)}\n'
            f'"@signature-params": {given}\n'
        )
        signature = self.headers["signature"].removeprefix("sig1=:").removesuffix(":")
        VerifyKey(keys[keyid]).verify(base.encode(), b64decode(signature))
        return True


class Away:
    """An agent elsewhere that answers everything, and keeps what it received."""

    def __init__(self) -> None:
        received: list[Received] = []
        key = Sender(THEIRS)

        class Serving(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                known = self.path == "/.well-known/agent.json"
                shown = card(THEIRS, key_of(key), url=f"http://{self.headers['host']}")
                self._say(200 if known else 404, shown if known else {})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                fields = {name.lower(): value for name, value in self.headers.items()}
                received.append(Received(fields, body))
                answer = {"traceId": json.loads(body)["traceId"], "spanId": "s", "status": "ok"}
                self._say(200, {**answer, "result": {"text": "received"}})

            def _say(self, status: int, value: dict[str, Any]) -> None:
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Stay quiet."""

        self.received = received
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Serving)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture(scope="module")
def away() -> Iterator[Away]:
    away = Away()
    threading.Thread(target=away.server.serve_forever, daemon=True).start()
    yield away
    away.server.shutdown()
    away.server.server_close()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, away: Away) -> Iterator[Organisation]:
    gateway = organisation(tmp_path_factory.mktemp("leaving"), "acme.example")
    gateway.configure(AWAY.format(url=away.url))
    gateway.start()
    yield gateway
    assert gateway.stop() == 0


def shown(gateway: Organisation) -> list[dict[str, Any]]:
    keys: list[dict[str, Any]] = request("GET", gateway.url + "/.well-known/agent.json").json[
        "publicKeys"
    ]
    return keys


def published(gateway: Organisation) -> dict[str, bytes]:
    return {key["kid"]: b64decode(key["key"]) for key in shown(gateway)}


def test_no_request_leaves_unsigned_while_the_key_is_replaced(
    gateway: Organisation, away: Away
) -> None:
    """F33: rotated and revoked amid the calls, each is signed with a key that was ours then."""
    keys = published(gateway)
    (first,) = keys
    rotated = threading.Event()

    def call(number: int) -> int:
        if number == CALLS // 3:
            gateway.carnet("keys", "rotate")
            rotated.set()
        if number == 2 * CALLS // 3:
            assert rotated.wait(60)
            gateway.carnet("keys", "revoke", first)
        return gateway.chat(f"call {number}", "away").status

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(call, range(CALLS))) == {200}
    # What a command did is seen within a second.
    until(lambda: sorted(key["active"] for key in shown(gateway)) == [False, True])
    keys |= published(gateway)
    assert gateway.chat("the last", "away").text == "received"
    assert all(received.holds(keys) for received in away.received)
    assert (
        len({received.envelope["nonce"] for received in away.received})
        == len(away.received)
        == CALLS + 1
    )
    last = away.received[-1].headers["signature-input"]
    assert f'keyid="{first}"' not in last
    assert {received.envelope["to"] for received in away.received} == {THEIRS}
    assert {received.envelope["from"] for received in away.received} == {"agent://acme.example"}
