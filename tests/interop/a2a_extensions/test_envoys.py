"""Requests that are signed as Envoys does: the key is named by the address of its host."""

import http.client
import json
import time
from typing import Any

import pytest

from carnet.testing.stage import Organisation
from tests.interop.a2a_extensions.conftest import Answered
from tests.support.signing.signed import Sender, b64, digest, fresh_nonce

TARGET = "/agents/echo/a2a"
KEYID = "https://envoy.example/keys/1"
COVERED = ("@method", "@path", "content-digest", "@authority")
REFUSED = -32050


@pytest.fixture(scope="module")
def envoy(gateway: Organisation) -> Sender:
    sender = Sender("agent://envoy.example", kid=KEYID)
    gateway.carnet("peers", "add", sender.identity, "--key", sender.public, "--kid", KEYID)
    return sender


def message(**more: Any) -> bytes:
    written = {
        "messageId": fresh_nonce(),
        "role": "ROLE_USER",
        "parts": [{"text": "hello"}],
        **more,
    }
    return body_of("SendMessage", {"message": written})


def body_of(method: str, params: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


def post(
    gateway: Organisation,
    sender: Sender,
    body: bytes,
    *,
    keyid: str = KEYID,
    host: str | None = None,
    covered: tuple[str, ...] = COVERED,
    nonce: str | None = None,
    sent: bytes | None = None,
    **fields: str,
) -> Answered:
    """A signed request; `sent` is the body in place of the signed one, `host` whom it is for."""
    authority = host or gateway.url.partition("//")[2]
    beside = {name.replace("_", "-"): value for name, value in fields.items()}
    values = {
        "@method": "POST",
        "@path": TARGET,
        "content-digest": digest(body),
        "@authority": authority,
        **beside,
    }
    names = " ".join(f'"{name}"' for name in covered)
    created = int(time.time())  # noqa: TID251  the gateway reads the machine's as well
    params = f'({names});created={created};keyid="{keyid}";nonce="{nonce or fresh_nonce()}"'
    lines = [f'"{name}": {values[name]}' for name in covered]
    base = "\n".join([*lines, f'"@signature-params": {params}'])
    given = [
        ("host", authority),
        ("content-type", "application/json"),
        ("a2a-version", "1.0"),
        ("content-digest", digest(body)),
        ("signature-input", f"sig1={params}"),
        ("signature", f"sig1=:{b64(sender.sign(base.encode()))}:"),
        *beside.items(),
    ]
    line = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=30)
    line.putrequest("POST", TARGET, skip_host=True)
    content = sent or body
    for name, value in (*given, ("content-length", str(len(content)))):
        line.putheader(name, value)
    line.endheaders(content)
    reply = line.getresponse()
    answer = json.loads(reply.read())
    line.close()
    return Answered(reply.status, dict(reply.getheaders()), answer)


def test_who_signs_is_the_caller_and_its_tasks_are_its_own(
    gateway: Organisation, envoy: Sender
) -> None:
    sent = post(gateway, envoy, message())
    assert sent.text == "hello"
    run = sent.metadata["urn:carnet:a2a:chain:v1"]["run"]
    (turn,) = gateway.json("run", "show", run)["turns"]
    assert "envoy.example" in turn["actor"]
    body = message()  # the same message, signed anew, is the same task
    assert len({post(gateway, envoy, body).task["id"] for _ in range(2)}) == 1
    asked = body_of("GetTask", {"id": sent.task["id"]})
    shown = post(gateway, envoy, asked)
    assert shown.body["result"]["id"] == sent.task["id"]
    stranger = Sender("agent://other.example", kid="https://other.example/k")
    add = ("peers", "add", stranger.identity, "--key", stranger.public, "--kid", stranger.kid)
    gateway.carnet(*add)
    hidden = post(gateway, stranger, asked, keyid=stranger.kid)
    unknown = post(gateway, stranger, body_of("GetTask", {"id": "none"}), keyid=stranger.kid)
    assert hidden.body == unknown.body
    assert hidden.error == (-32001, "task_not_found")


def test_a_chain_header_that_is_signed_counts_and_one_that_is_not_is_refused(
    gateway: Organisation, envoy: Sender
) -> None:
    covered = (*COVERED, "x-a2a-hop")
    sent = post(gateway, envoy, message(), covered=covered, x_a2a_hop="2")
    run = sent.metadata["urn:carnet:a2a:chain:v1"]["run"]
    (turn,) = gateway.json("run", "show", run)["turns"]
    assert turn["depth"] == 2
    assert post(gateway, envoy, message(), x_a2a_hop="2").error[1] == "header_not_signed"


def test_a_signature_is_for_one_host_one_body_and_one_time(
    gateway: Organisation, envoy: Sender
) -> None:
    body, nonce = message(), fresh_nonce()
    assert post(gateway, envoy, body, nonce=nonce).text == "hello"
    assert post(gateway, envoy, message(), nonce=nonce).error[1] == "nonce_replayed"
    assert post(gateway, envoy, message(), sent=message()).error[1] == "digest_mismatch"
    elsewhere = post(gateway, envoy, message(), host="elsewhere.example")
    assert elsewhere.error[1] == "destination_mismatch"
    asked = body_of("GetTask", {"id": "none"})
    asked_elsewhere = post(gateway, envoy, asked, host="elsewhere.example")
    assert asked_elsewhere.error[1] == "destination_mismatch"
    open_to_all = post(gateway, envoy, message(), covered=COVERED[:3])
    assert open_to_all.error[1] == "insufficient_coverage"


def test_a_key_that_is_not_the_hosts_signs_nothing(gateway: Organisation, envoy: Sender) -> None:
    thief = Sender(envoy.identity, kid=KEYID)
    assert post(gateway, thief, message()).error[1] == "signature_invalid"
    other = post(gateway, envoy, message(), keyid="https://nobody.example/keys/1")
    assert (other.status, other.error[1]) == (401, "key_unknown")


def test_a_token_beside_a_signature_decides(gateway: Organisation, envoy: Sender) -> None:
    thief = Sender(envoy.identity, kid=KEYID)
    sent = post(gateway, thief, message(), authorization=f"Bearer {gateway.token}")
    assert sent.text == "hello"
