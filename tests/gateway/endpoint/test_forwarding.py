"""Forwarded credentials: honoured from listed callers, refused from everybody else."""

import pytest

from carnet.testing.wait import until
from tests.support.organisation import Organisation
from tests.support.served import executions

FORWARDED = "x-tangle-forwarded-authorization"
CANARY = "sk-tan-canary-7f3a9c"


def test_a_forwarded_credential_from_a_caller_that_is_not_listed_bills_nobody(
    acme: Organisation,
) -> None:
    before = executions(acme.folder, "paid")
    fields = [(FORWARDED, f"Bearer {CANARY}"), ("x-tangle-runid", "conv_unlisted")]
    reply = acme.chat("hi", "paid", headers=fields)
    assert (reply.status, reply.code) == (403, "forwarding_not_allowed")
    assert executions(acme.folder, "paid") == before
    assert acme.json("ledger", "--run", "conv_unlisted")["entries"] == []
    assert CANARY.encode() not in reply.body


def test_a_listed_caller_bills_the_account_it_vouches_for(acme: Organisation) -> None:
    token = acme.new_token("bridge", "--may-forward-authorization", "--limit", "1")
    fields = [(FORWARDED, f"Bearer {CANARY}"), ("x-tangle-runid", "conv_listed")]
    assert acme.chat("hi", "paid", headers=fields, token=token).status == 200
    (entry,) = acme.json("ledger", "--run", "conv_listed")["entries"]
    assert entry["debit"].endswith("@token:bridge")
    assert entry["amount"] == "0.0002"
    assert CANARY not in str(entry)


def test_a_forwarded_credential_of_ours_is_the_effective_payer(acme: Organisation) -> None:
    alice = acme.new_token("alice")
    bridge = acme.new_token("bridge-2", "--may-forward-authorization")
    fields = [(FORWARDED, f"Bearer {alice}"), ("x-tangle-runid", "conv_alice")]
    reply = acme.chat("hi", "paid", headers=fields, token=bridge)
    (entry,) = acme.json("ledger", "--run", "conv_alice")["entries"]
    assert entry["debit"] == "alice@acme.example"
    assert reply.json["usage"]["cost"] == "0"  # we bill alice; the forwarder owes nothing


def test_a_revoked_credential_is_refused_and_never_replaced(acme: Organisation) -> None:
    bob = acme.new_token("bob")
    bridge = acme.new_token("bridge-3", "--may-forward-authorization")
    acme.carnet("tokens", "revoke", "bob")
    fields = [(FORWARDED, f"Bearer {bob}")]
    reply = until(  # it reaches the gateway within a second or two
        lambda: acme.chat("hi", "paid", headers=fields, token=bridge),
        lambda reply: reply.status != 200,
    )
    assert (reply.status, reply.code) == (402, "payer_refused")


@pytest.mark.parametrize(
    "value",
    [
        "sk-tan-x",
        "Basic abc",
        "Bearer a, Bearer b",
        "Bearer ",
        "Bearer a b",
        "Bearer " + "x" * 9000,
        "Bearer caf\xe9",
    ],
)
def test_a_malformed_forwarded_credential_is_refused(acme: Organisation, value: str) -> None:
    token = acme.token
    reply = acme.chat("hi", "paid", headers=[(FORWARDED, value)], token=token)
    assert (reply.status, reply.code) == (400, "malformed_caller_context")


def test_two_forwarded_credentials_are_refused(acme: Organisation) -> None:
    fields = [(FORWARDED, "Bearer a"), (FORWARDED, "Bearer b")]
    assert acme.chat("hi", "paid", headers=fields).code == "malformed_caller_context"


@pytest.mark.parametrize(
    "name", ["x_tangle_forwarded_authorization", "x_actor_id", "x-tangle_runid", "x_forwarded_for"]
)
def test_lookalike_spellings_are_refused(acme: Organisation, name: str) -> None:
    reply = acme.chat("hi", headers=[(name, "1")])
    assert (reply.status, reply.code) == (400, "malformed_caller_context")


def test_identity_headers_from_outside_are_believed_by_nobody(acme: Organisation) -> None:
    fields = [
        ("x-actor-id", "root"),
        ("x-actor-permissions", '{"allow": ["*"]}'),
        ("x-forwarded-for", "10.0.0.1"),
        ("x-forwarded-user", "root"),
    ]
    token = acme.new_token("nobody", "--scope", "call:echo", "--scope", "run:read")
    assert acme.chat("hi", "words", headers=fields, token=token).code == "permission_missing"
    reply = acme.chat("hi", headers=fields, token=token)
    page = acme.get(f"/runs/{reply.headers['x-tangle-runid']}", token=token).json
    assert page["turns"][0]["actor"] == "token:nobody"


def test_an_agent_owned_call_is_paid_by_the_agent(acme: Organisation) -> None:
    reply = acme.chat("paid", "own_pocket", headers=[("x-tangle-runid", "conv_pocket")])
    assert reply.text == "mine"
    entries = acme.json("ledger", "--run", "conv_pocket")["entries"]
    payers = {entry["credit"]: entry["debit"] for entry in entries}
    assert payers["agent:paid"] == "agent:own_pocket@acme.example"
    assert payers["agent:own_pocket"] != payers["agent:paid"]


def test_no_credential_is_written_anywhere(acme: Organisation) -> None:
    """A canary search over logs, database and pages, after all that came before."""
    token = acme.new_token("bridge-canary", "--may-forward-authorization")
    secret = f"{CANARY}-last"
    fields = [(FORWARDED, f"Bearer {secret}"), ("x-tangle-runid", "conv_canary")]
    reply = acme.chat("hi", "relay", headers=fields, token=token)
    pages = reply.body + acme.get("/runs/conv_canary", token=token).body
    written = acme.written().replace(acme.token.encode(), b"", 1)  # its own starter.token file
    for needle in (secret, CANARY, token):
        assert needle.encode() not in pages
        assert needle.encode() not in written
    assert acme.token.encode() not in written
