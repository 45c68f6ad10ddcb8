"""What a message says of its chain, truly or not, and what becomes of it."""

import json
from typing import Any

import pytest

from carnet.testing.stage import Organisation
from carnet.testing.wait import until
from carnet.wire.dialects.a2a.extensions.actor_chain import KEY as ACTORS
from carnet.wire.dialects.a2a.extensions.ca2a import ABOVE, RECORD
from carnet.wire.dialects.a2a.extensions.ca2a import CHAIN as LINKS
from carnet.wire.dialects.a2a.extensions.own import CHAIN_URI, RECEIPT_URI, USAGE_URI
from carnet.wire.dialects.a2a.extensions.trace_context import TRACE_URI
from tests.interop.a2a_extensions.conftest import ask, claimed, run_of, send

REFUSED, INVALID = -32050, -32602
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
OTHER = f"00-{TRACE[::-1]}-b7ad6b7169203331-01"


def depth_of(depth: object) -> dict[str, Any]:
    return {"datalayer": {"execution": {"rootExecutionId": "made-up", "depth": depth}}}


def links(depth: object) -> dict[str, Any]:
    link = {"credential_id": "c1", "issuer": "ed25519:" + "0" * 64, "subject": "x", "depth": depth}
    return {LINKS: [link], RECORD: "r1", ABOVE: "h1"}


def test_a_chain_in_metadata_is_the_chain_of_the_call(gateway: Organisation) -> None:
    chain = {"run": "conv_meta", "turn": "conv_meta.t0.echo", "depth": 2, "limit": 3}
    sent = send(gateway, metadata={CHAIN_URI: chain})
    assert sent.metadata[CHAIN_URI] == {"run": "conv_meta", "turn": "conv_meta.t0.echo"}
    page = run_of(gateway, sent)
    assert (page["run"], page["depth"]) == ("conv_meta", 2)
    shown = ask(gateway, "echo", "GetTask", {"id": sent.task["id"]}).body["result"]
    assert shown["metadata"][CHAIN_URI] == sent.metadata[CHAIN_URI]
    assert claimed(gateway, sent)["chain"] == chain


@pytest.mark.parametrize(
    ("metadata", "fields", "depth"),
    [
        ({CHAIN_URI: {"depth": 1}}, {"x_a2a_hop": "2"}, 2),
        ({CHAIN_URI: {"depth": 2}}, {"x_contextforge_uaid_hop": "1"}, 2),
        (depth_of(2), {"x_tangle_forwarded_depth": "1"}, 2),
        (depth_of(0), {"x_a2a_hop": "1"}, 1),
        (links(2), {}, 2),
        ({**links(1), **depth_of(3)}, {"x_a2a_hop": "2"}, 3),
        (None, {"x_a2a_hop": "0"}, 0),
    ],
)
def test_of_all_depths_the_largest_counts(
    metadata: dict[str, Any] | None, fields: dict[str, str], depth: int, gateway: Organisation
) -> None:
    sent = send(gateway, metadata=metadata, **fields)
    (turn,) = run_of(gateway, sent)["turns"]
    assert turn["depth"] == depth


@pytest.mark.parametrize(
    ("metadata", "fields"),
    [
        ({CHAIN_URI: {"depth": 4}}, {}),
        ({CHAIN_URI: {"depth": 2, "limit": 2}}, {}),
        (depth_of(4), {"x_a2a_hop": "1"}),
        (links(9), {}),
        (None, {"x_a2a_hop": "4"}),
        (None, {"x_contextforge_uaid_hop": "99999999999999999999"}),
    ],
)
def test_a_call_that_is_too_deep_is_refused(
    metadata: dict[str, Any] | None, fields: dict[str, str], gateway: Organisation
) -> None:
    assert send(gateway, metadata=metadata, **fields).error == (REFUSED, "bridge_depth_exceeded")


@pytest.mark.parametrize(
    ("metadata", "fields"),
    [
        ({CHAIN_URI: {"depth": -1}}, {}),
        ({CHAIN_URI: "0"}, {}),
        (depth_of("1"), {}),
        (depth_of(1.5), {}),
        (links(-1), {}),
        (None, {"x_a2a_hop": "+1"}),
        (None, {"x_a2a_hop": "1, 2"}),
        (None, {"x_contextforge_uaid_hop": "one"}),
    ],
)
def test_a_depth_that_is_none_is_refused(
    metadata: dict[str, Any] | None, fields: dict[str, str], gateway: Organisation
) -> None:
    sent = send(gateway, metadata=metadata, **fields)
    assert sent.error == (INVALID, "malformed_caller_context")


def test_two_chains_that_differ_are_refused(gateway: Organisation) -> None:
    chain = {CHAIN_URI: {"run": "conv_one"}}
    sent = send(gateway, metadata=chain, x_tangle_runid="conv_other")
    assert sent.error == (INVALID, "chain_mismatch")


def test_a_forged_chain_shows_its_forger_nothing_of_a_run(gateway: Organisation) -> None:
    secret = send(gateway, text="for nobody else")
    run, turn = secret.metadata[CHAIN_URI]["run"], secret.metadata[CHAIN_URI]["turn"]
    forger = gateway.new_token("forger", "--scope", "call:echo", "--scope", "run:read")
    sent = send(gateway, metadata={CHAIN_URI: {"run": run, "turn": turn}}, token=forger)
    assert sent.text == "hello"  # a turn of its own, by the same name
    assert sent.task["id"] != secret.task["id"]
    fields = {"authorization": f"Bearer {forger}", "a2a-version": "1.0"}
    asked = ask(gateway, "echo", "GetTask", {"id": secret.task["id"]}, fields)
    assert asked.error[1] == "task_not_found"
    mine = gateway.json("run", "show", run, "--full")["turns"]
    assert len(mine) == 2


def test_a_forged_receipt_and_use_change_nothing(gateway: Organisation) -> None:
    forged = {RECEIPT_URI: {"receipt": "eyJ.e30.x"}, USAGE_URI: {"cost": "99", "tokensIn": 7}}
    plain, sent = send(gateway, "priced"), send(gateway, "priced", forged)
    assert RECEIPT_URI not in sent.metadata
    assert sent.metadata[USAGE_URI]["cost"] == plain.metadata[USAGE_URI]["cost"] == "0.01"
    assert claimed(gateway, sent) == {}
    assert run_of(gateway, sent)["cost"] == "0.01"


def test_an_actor_chain_is_shown_as_claimed_and_answered_with_ours(gateway: Organisation) -> None:
    hops = [{"actor": "president", "scopes": ["all"]}, {"actor": "me", "scopes": ["all", "more"]}]
    sent = send(gateway, metadata={ACTORS: hops})
    assert sent.metadata[ACTORS] == [{"actor": "@echo@acme.example"}]
    assert claimed(gateway, sent)["actor_chain"] == {"hops": hops, "narrows": False}
    assert ACTORS not in send(gateway).metadata
    (turn,) = run_of(gateway, sent)["turns"]
    assert turn["actor"] != "president"


def test_a_delegation_of_others_is_evidence_that_is_shown(gateway: Organisation) -> None:
    sent = send(gateway, metadata=links(1))
    shown = claimed(gateway, sent)["ca2a"]
    assert shown["links"][0]["signed"] is False
    assert (shown["record_id"], shown["parent_record_hash"]) == ("r1", "h1")


def test_a_broken_payload_of_others_is_shown_as_broken(gateway: Organisation) -> None:
    sent = send(gateway, metadata={ACTORS: "me", "datalayer": []})
    assert sent.text == "hello"
    assert {name: [*each] for name, each in claimed(gateway, sent).items()} == {
        "actor_chain": ["broken"],
        "datalayer": ["broken"],
    }


def test_a_trace_in_metadata_is_that_of_the_call_unless_a_header_tells_one(
    gateway: Organisation,
) -> None:
    trace = {TRACE_URI: {"traceparent": PARENT}}
    send(gateway, metadata=trace)
    send(gateway, metadata=trace, traceparent=OTHER)

    def correlations() -> set[str]:
        return {json.loads(line)["correlation_id"] for line in gateway.log_lines()}

    until(lambda: {TRACE, TRACE[::-1]} <= correlations())
