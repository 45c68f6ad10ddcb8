"""The recursion bound over HTTP."""

from pathlib import Path

import pytest

from tests.support.organisation import Organisation
from tests.support.served import executions

DEPTH = "x-tangle-forwarded-depth"


@pytest.mark.parametrize(("value", "depth"), [("0", 0), ("3", 3), ("01", 1), ("", 0), (" 2 ", 2)])
def test_a_depth_below_the_limit_is_answered(acme: Organisation, value: str, depth: int) -> None:
    reply = acme.chat("hi", headers=[(DEPTH, value)])
    assert reply.status == 200
    page = acme.get(f"/runs/{reply.headers['x-tangle-runid']}").json
    assert page["turns"][0]["depth"] == depth


@pytest.mark.parametrize("value", ["4", "5", "99", "9999", "9" * 20, "1" * 400])
def test_a_depth_at_or_above_the_limit_is_refused_before_anything_runs(
    acme: Organisation, value: str
) -> None:
    before = executions(acme.folder, "echo")
    reply = acme.chat("hi", headers=[(DEPTH, value), ("x-tangle-runid", f"conv_deep_{len(value)}")])
    assert (reply.status, reply.code) == (429, "bridge_depth_exceeded")
    assert reply.json["error"]["limit"] == 4
    assert reply.json["error"]["observed"] == min(int(value), 2**31 - 1)
    assert "retry-after" not in reply.headers
    assert executions(acme.folder, "echo") == before
    assert acme.get(f"/runs/conv_deep_{len(value)}").status == 404


@pytest.mark.parametrize(
    "value",
    ["banana", "-1", "1.5", "+1", "\u0663".encode().decode("latin-1"), "2, 99", "1_0", "0x2"],
)
def test_a_malformed_depth_is_refused_and_never_read_as_zero(
    acme: Organisation, value: str
) -> None:
    before = executions(acme.folder, "echo")
    reply = acme.chat("hi", headers=[(DEPTH, value)])
    assert (reply.status, reply.code) == (400, "malformed_caller_context")
    assert executions(acme.folder, "echo") == before


def test_a_repeated_depth_is_refused(acme: Organisation) -> None:
    reply = acme.chat("hi", headers=[(DEPTH, "2"), (DEPTH, "99")])
    assert (reply.status, reply.code) == (400, "malformed_caller_context")


def test_the_header_is_read_whatever_its_case(acme: Organisation) -> None:
    assert acme.chat("hi", headers=[("X-Tangle-Forwarded-Depth", "4")]).status == 429


def test_the_final_hop_answers_but_does_not_call_on(acme: Organisation) -> None:
    before = executions(acme.folder, "echo")
    reply = acme.chat("echo hi", "relay", headers=[(DEPTH, "3")])
    assert (reply.status, reply.code) == (429, "bridge_depth_exceeded")
    assert reply.json["error"]["observed"] == 4
    assert executions(acme.folder, "echo") == before


def test_a_chain_in_process_stops_at_the_limit_and_shows_where(acme: Organisation) -> None:
    reply = acme.chat("careful", "careful")
    assert reply.text == "0 > 1 > 2 > stopped at 4 of 4"
    page = acme.get(f"/runs/{reply.headers['x-tangle-runid']}").json
    turn, depths = page["turns"][0], []
    while turn["children"]:
        depths.append(turn["depth"])
        turn = turn["children"][0]
    assert [*depths, turn["depth"]] == [0, 1, 2, 3]
    assert turn["legs"][0]["status"] == "refused"
    assert turn["legs"][0]["code"] == "bridge_depth_exceeded"
    assert turn["legs"][0]["depth"] == 4


def test_two_stamps_give_the_deeper_depth_and_must_agree_on_the_run(acme: Organisation) -> None:
    agents_api = [
        ("x-agents-api-caller-agent", "source"),
        ("x-agents-api-caller-host", "https://source.example"),
        ("x-agents-api-chain-root", "conv_both"),
    ]
    tangle = [(DEPTH, "1"), ("x-tangle-runid", "conv_both")]
    both = [*tangle, *agents_api, ("x-agents-api-chain-depth", "2")]
    assert acme.chat("hi", headers=both).status == 200
    assert acme.get("/runs/conv_both").json["turns"][0]["depth"] == 2
    other = [(DEPTH, "1"), ("x-tangle-runid", "conv_other"), *both[2:]]
    assert acme.chat("hi", headers=other).code == "chain_mismatch"
    zero = [(DEPTH, "0"), ("x-tangle-runid", "conv_both"), *both[2:]]
    assert acme.chat("hi", headers=zero).code == "chain_mismatch"


def test_agents_api_depth_sixteen_is_answered_and_seventeen_is_not(acme: Organisation) -> None:
    chain = [
        ("x-agents-api-caller-agent", "source"),
        ("x-agents-api-caller-host", "https://source.example"),
        ("x-agents-api-chain-root", "root-1"),
    ]
    assert acme.chat("hi", headers=[*chain, ("x-agents-api-chain-depth", "16")]).status == 200
    over = acme.chat("hi", headers=[*chain, ("x-agents-api-chain-depth", "17")])
    assert (over.status, over.code) == (429, "bridge_depth_exceeded")
    broken = acme.chat("hi", headers=[*chain, ("x-agents-api-chain-depth", "bogus")])
    assert (broken.status, broken.code) == (400, "malformed_caller_context")


@pytest.mark.parametrize("name", ["x-tangle-protocol-version", "X-Tangle-Protocol-Version"])
def test_another_protocol_version_is_refused(acme: Organisation, name: str) -> None:
    assert acme.chat("hi", headers=[(name, "1")]).code == "unsupported_protocol_version"
    assert acme.chat("hi", headers=[(name, "0")]).status == 200
    assert acme.chat("hi", headers=[("x-tangle-source", "whatever")]).status == 200


def test_the_environment_has_the_last_word_on_the_limit(tmp_path: Path) -> None:
    gateway = Organisation(tmp_path, "deep.example")
    gateway.start(env={"CLI_BRIDGE_MAX_DEPTH": "2"})
    try:
        assert gateway.chat("hi", headers=[(DEPTH, "1")]).status == 200
        refused = gateway.chat("hi", headers=[(DEPTH, "2")])
        assert (refused.status, refused.json["error"]["limit"]) == (429, 2)
    finally:
        gateway.stop()
    broken = gateway.try_carnet("serve", env={"CLI_BRIDGE_MAX_DEPTH": "banana"})
    assert broken.returncode == 2
    assert "CLI_BRIDGE_MAX_DEPTH" in broken.stderr
