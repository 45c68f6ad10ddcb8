"""A payment is brought, and refused, in the words of every dialect."""

import json
from typing import Any

import pytest
from nacl.signing import SigningKey

from tests.interop.identity.scene import Elsewhere
from tests.interop.payers.conftest import Payers
from tests.support.agents_api.client import message
from tests.support.http import Reply, request
from tests.support.signing.signed import Line, Sender, Signed, travelling

X402 = "https://github.com/google-a2a/a2a-x402/v0.1"


def send(payers: Payers, path: str, body: Any, *headers: tuple[str, str]) -> Reply:
    fields = [
        ("authorization", f"Bearer {payers.globex.token}"),
        ("content-type", "application/json"),
        *headers,
    ]
    return request("POST", payers.globex.url + path, fields, json.dumps(body).encode())


def a2a(payers: Payers, text: str, *headers: tuple[str, str], **metadata: Any) -> Reply:
    sent: dict[str, Any] = {
        "messageId": f"m-{text}",
        "role": "ROLE_USER",
        "parts": [{"text": text}],
    }
    if metadata:
        sent["metadata"] = {f"x402.payment.{name}": value for name, value in metadata.items()}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": sent}}
    return send(payers, "/agents/paid/a2a", body, ("a2a-extensions", X402), *headers)


def agents_api(payers: Payers, text: str, *headers: tuple[str, str]) -> Reply:
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": message(text)}
    return send(payers, "/agents-api/v1/agent/paid", body, *headers)


def chat(payers: Payers, text: str, *headers: tuple[str, str]) -> Reply:
    body = {"model": "paid", "messages": [{"role": "user", "content": text}]}
    return send(payers, "/v1/chat/completions", body, *headers)


DOORS = {"openai": chat, "a2a": a2a, "agents_api": agents_api}


@pytest.mark.parametrize("door", DOORS)
def test_a_voucher_pays_once_at_every_door(payers: Payers, door: str) -> None:
    voucher = payers.forge()
    paid = DOORS[door](payers, f"first-{door}", ("carnet-payment", voucher))
    assert (paid.status, "error" in paid.json) == (200, False), paid
    spent = DOORS[door](payers, f"second-{door}", ("carnet-payment", voucher))
    error = json.dumps(spent.json)
    assert "used before" in error, error
    assert "Ask its issuer for another one." in error
    assert voucher not in error


def test_x402_over_a2a_brings_a_voucher_in_our_own_scheme(payers: Payers) -> None:
    voucher = payers.forge()
    given = {"x402Version": 1, "scheme": "carnet", "payload": {"voucher": voucher}}
    paid = a2a(payers, "x402-own", status="payment-submitted", payload=given)
    assert "result" in paid.json, paid
    spent = a2a(payers, "x402-again", status="payment-submitted", payload=given)
    assert "used before" in json.dumps(spent.json)


def test_x402_of_another_scheme_goes_to_its_verifier_as_it_came(payers: Payers) -> None:
    given = {"x402Version": 1, "scheme": "exact", "network": "base", "payload": {"nonce": "0x01"}}
    paid = a2a(payers, "x402-exact", status="payment-submitted", payload=given)
    assert "result" in paid.json, paid
    spent = a2a(payers, "x402-exact-2", status="payment-submitted", payload=given)
    assert "used before" in json.dumps(spent.json)
    assert "0x01" not in payers.globex.log.read_text()


@pytest.mark.parametrize("header", ["x-payment", "payment-signature"])
def test_x402_over_http_goes_to_its_verifier(payers: Payers, header: str) -> None:
    paid = chat(payers, "hello", (header, f"eyJ4Ijp7fX0-{header}"))
    assert paid.status == 200, paid
    (posting,) = payers.billed(paid.headers["x-tangle-runid"])
    assert posting[:2] == ("x402", "0xab12")
    spent = chat(payers, "again", (header, f"eyJ4Ijp7fX0-{header}"))
    assert (spent.status, spent.json["error"]["reason"]) == (402, "used")


@pytest.mark.parametrize(
    ("payment", "reason"),
    [
        ("x402:raise-1", "verifier"),
        ("x402:why-1", "verifier"),
        ("x402:odd-1", "verifier"),
        ("x402:late-1", "late"),
        ("wallet:1", "unknown"),
    ],
)
def test_a_verifier_fails_closed_and_tells_nothing(
    payers: Payers, payment: str, reason: str
) -> None:
    reply = chat(payers, "hello", ("carnet-payment", payment))
    assert (reply.status, reply.json["error"]["reason"]) == (402, reason)
    secret = f"{payment.removeprefix('x402:')}-canary"
    chat(payers, "hello", ("carnet-payment", f"x402:{secret}"))
    assert secret not in payers.globex.log.read_text()


def test_an_account_without_an_id_pays_up_to_its_limit_in_all(payers: Payers) -> None:
    shown = ("carnet-payment", "acct-of-mallory")
    assert [chat(payers, f"{n}", shown).status for n in range(3)] == [200, 200, 402]
    assert chat(payers, "other", ("carnet-payment", "acct-of-trent")).status == 200


def test_an_id_that_one_account_has_used_is_not_used_by_another(payers: Payers) -> None:
    """Who pays chooses it, and could else use up what somebody else is about to pay with."""

    def paid(account: str) -> tuple[int, list[tuple[str, str]]]:
        reply = chat(payers, "hi", ("carnet-payment", f"x402:id-{account}-nonce-1"))
        if reply.status != 200:
            return reply.status, []
        run = reply.headers["x-tangle-runid"]
        return reply.status, [posting[:2] for posting in payers.billed(run)]

    assert paid("mallory") == (200, [("x402", "mallory")])
    assert paid("trent") == (200, [("x402", "trent")])
    assert paid("mallory") == (402, [])


@pytest.mark.parametrize("header", ["carnet-payment", "x-payment", "payment-signature"])
def test_a_payment_beside_a_signature_must_be_signed(payers: Payers, header: str) -> None:
    """What a middlebox could have written pays for nothing, and what it takes away is missed."""
    stark = Sender("stark.example", payers.stark.kid, bytes(range(32)))
    value = payers.forge() if header == "carnet-payment" else f"itself-{header[:9]}-signed"
    body = json.dumps({"model": "open", "messages": [{"role": "user", "content": "hi"}]}).encode()

    def signed(*more: tuple[str, str]) -> Signed:
        return travelling(stark, "globex.example", body, beside=more)

    port = int(payers.globex.url.rpartition(":")[2])
    with Line(port) as line:
        added = line.send(signed(("accept", f'"{header}": x')).beside((header, value)))
        assert (added.status, added.code) == (401, "header_not_signed")
        taken = line.send(signed((header, value)).but(without=(header,)))
        assert (taken.status, taken.code) == (401, "signature_invalid")
        paid = line.send(signed((header, value)))
        assert paid.status == 200, paid
    (posting,) = payers.billed(paid.headers["x-tangle-runid"])
    payer = ("stark.example", "pepper") if header == "carnet-payment" else ("x402", "0xab12")
    assert (posting[0], posting[1].partition("#")[0]) == payer


def test_a_payment_beside_a_credential_pays(payers: Payers) -> None:
    """A JWT covers nothing of its request, as a token does not."""
    stark = Elsewhere("stark.example", SigningKey(bytes(range(32))), payers.stark.kid)
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendMessage",
        "params": {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}},
    }
    headers = [
        ("authorization", f"Bearer {stark.jwt('@open@globex.example')}"),
        ("content-type", "application/json"),
        ("carnet-payment", payers.forge()),
    ]
    url = f"{payers.globex.url}/agents/open/a2a"
    reply = request("POST", url, headers, json.dumps(body).encode())
    assert "result" in reply.json, reply


def test_a_payment_that_is_in_no_form_is_refused_by_its_header(payers: Payers) -> None:
    for value in ("voucher_a b", "x" * 9000):
        reply = chat(payers, "hi", ("carnet-payment", value))
        assert (reply.status, reply.code) == (400, "malformed_caller_context"), value[:20]
    twice = chat(payers, "hi", ("carnet-payment", "voucher_a"), ("carnet-payment", "voucher_a"))
    assert twice.status == 400


def test_a_payment_token_that_is_forwarded_is_verified_and_pays(payers: Payers) -> None:
    listed = payers.globex.new_token("bridge-x402", "--may-forward-authorization")
    forwarded = [("x-tangle-forwarded-authorization", "Bearer x402:eyJmb3J3YXJkZWQiOjF9")]
    reply = payers.globex.chat("hi", "paid", token=listed, headers=forwarded)
    assert reply.status == 200, reply
    (posting,) = payers.billed(reply.headers["x-tangle-runid"])
    assert posting[:2] == ("x402", "0xab12")
    again = payers.globex.chat("hi", "paid", token=listed, headers=forwarded)
    assert (again.status, again.json["error"]["reason"]) == (402, "used")
