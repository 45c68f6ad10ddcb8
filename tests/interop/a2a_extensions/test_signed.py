"""Messages of a peer that signs: what it is owed, and what must agree with its travel document."""

import http.client
import json
from hashlib import sha256
from typing import Any

import pytest

from carnet.testing.stage import Organisation
from carnet.wire.dialects.a2a.extensions import signed_receipts
from carnet.wire.dialects.a2a.extensions.actor_chain import KEY as ACTORS
from carnet.wire.dialects.a2a.extensions.own import CHAIN_URI, RECEIPT_URI
from tests.interop.a2a_extensions.conftest import Answered
from tests.support.signing.signed import (
    Sender,
    Signed,
    document,
    fresh_nonce,
    sign,
    token,
    travelling,
    unsigned,
)

TARGET = "/agents/priced/a2a"
FRONT = "@front@globex.example"


@pytest.fixture(scope="module")
def peer(gateway: Organisation) -> Sender:
    sender = Sender("agent://globex.example", kid="k-globex")
    gateway.carnet("peers", "add", sender.identity, "--key", sender.public, "--kid", sender.kid)
    listed = ("peers", "add", "globex.example", "--url", "http://127.0.0.1:9", "--credit", "10")
    gateway.carnet(*listed)
    return sender


def body_of(method: str, params: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


def message(metadata: dict[str, Any] | None = None) -> bytes:
    sent = {"messageId": fresh_nonce(), "role": "ROLE_USER", "parts": [{"text": "hello"}]}
    return body_of("SendMessage", {"message": sent | {"metadata": metadata}})


def post(gateway: Organisation, request: Signed, *, is_late: bool = False) -> Answered:
    """Send a request; one that is late sends its body once its head has been read."""
    line = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=30)
    line.putrequest(request.method, request.target, skip_host=True)
    for name, value in (("host", "127.0.0.1"), *request.headers):
        line.putheader(name, value)
    line.putheader("content-length", str(len(request.body)))
    if is_late:
        line.putheader("expect", "100-continue")
        line.endheaders()
        assert line.sock.recv(4096).startswith(b"HTTP/1.1 100 ")
        line.send(request.body)
    else:
        line.endheaders(request.body)
    reply = line.getresponse()
    content = reply.read()
    line.close()
    return Answered(reply.status, dict(reply.getheaders()), json.loads(content))


def call(
    gateway: Organisation, peer: Sender, metadata: dict[str, Any] | None = None, **claims: Any
) -> Answered:
    body = message(metadata)
    return post(gateway, travelling(peer, "acme.example", body, target=TARGET, **claims))


def test_a_receipt_comes_with_the_task_and_again_when_it_is_asked_for(
    gateway: Organisation, peer: Sender
) -> None:
    sent = call(gateway, peer)
    receipt = sent.metadata[RECEIPT_URI]["receipt"]
    assert receipt == sent.headers["carnet-receipt"]
    asked = unsigned(body_of("GetTask", {"id": sent.task["id"]}), TARGET)
    for is_late in (False, True):
        answered = post(gateway, sign(peer, asked, path=TARGET), is_late=is_late)
        assert answered.body["result"]["metadata"][RECEIPT_URI]["receipt"] == receipt


def test_a_receipt_in_the_form_of_others_comes_beside_ours_where_it_is_active(
    gateway: Organisation, peer: Sender
) -> None:
    beside = (("a2a-extensions", signed_receipts.RECEIPTS_URI),)
    sent = call(gateway, peer, beside=beside)
    statement = sent.metadata[signed_receipts.KEY]
    assert signed_receipts.holds(statement)
    assert (statement["issuer"], statement["task_id"]) == ("did:web:acme.example", sent.task["id"])
    (claim,) = statement["claims"]
    assert claim["receipt"] == sent.metadata[RECEIPT_URI]["receipt"]
    assert signed_receipts.KEY not in call(gateway, peer).metadata


def test_an_actor_chain_is_answered_with_the_path_and_the_digest_of_the_document(
    gateway: Organisation, peer: Sender
) -> None:
    body = message({ACTORS: [{"actor": "forged"}]})
    carnet = token(peer, document(peer, "acme.example", body, path=[FRONT]))
    sent = post(gateway, travelling(peer, "acme.example", body, target=TARGET, carnet=carnet))
    signed = carnet.rpartition(".")[0].encode()
    assert sent.metadata[ACTORS] == [
        {"actor": FRONT},
        {
            "actor": "@priced@acme.example",
            "proof_ref": f"sha-256:{sha256(signed).hexdigest()}",
        },
    ]


@pytest.mark.parametrize(
    "metadata",
    [
        {CHAIN_URI: {"run": "another"}},
        {CHAIN_URI: {"depth": 2}},
        {"datalayer": {"execution": {"depth": 2}}},
    ],
)
def test_metadata_that_tells_another_chain_than_the_document_is_refused(
    metadata: dict[str, Any], gateway: Organisation, peer: Sender
) -> None:
    assert call(gateway, peer, metadata, d=1).error[1] == "chain_mismatch"


def test_metadata_that_tells_the_same_chain_is_taken(gateway: Organisation, peer: Sender) -> None:
    chain = {"run": "run-same", "turn": "run-same.t0.a", "depth": 1}
    sent = call(gateway, peer, {CHAIN_URI: chain}, run="run-same", turn="run-same.t0.a", d=1)
    assert sent.metadata[CHAIN_URI]["run"] == "run-same"
