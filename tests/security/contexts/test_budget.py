"""The budget `chain_depth`, of an agent and of a token: what ends it, and what is told."""

import pytest

from tests.security.contexts.requests import chain, fresh, run_of, seen_by
from tests.support.organisation import Organisation
from tests.support.served import executions

TANGLE = "x-tangle-forwarded-depth"


@pytest.mark.parametrize("depth", ["3", "7"])
def test_a_call_at_the_ceiling_of_an_agent_is_refused_and_told_all_of_it(
    site: Organisation, depth: str
) -> None:
    before = executions(site.folder, "near")
    reply = site.chat("hi", "near", headers=chain("the-root", depth))
    assert (reply.status, reply.code) == (429, "bridge_depth_exceeded")
    error = reply.json["error"]
    assert (error["observed"], error["ceiling"]) == (int(depth), 3)
    assert (error["root"], error["stamp"]) == ("the-root", "chain_depth")
    assert "chain_depth of the agent" in error["hint"]
    assert "retry-after" not in reply.headers
    assert executions(site.folder, "near") == before


def test_a_call_below_it_is_answered(site: Organisation) -> None:
    assert seen_by(site.chat("hi", "near", headers=chain(depth="2")))["context"]["depth"] == 2
    assert site.chat("hi", "near").status == 200


def test_depth_counts_whichever_headers_tell_it(site: Organisation) -> None:
    reply = site.chat("hi", "near", headers=[(TANGLE, "3"), ("x-tangle-runid", "conv_x")])
    assert (reply.status, reply.json["error"]["stamp"]) == (429, "chain_depth")


def test_a_token_has_a_budget_of_its_own_for_all_that_is_called_with_it(
    site: Organisation,
) -> None:
    token = site.new_token(fresh("short"), "--chain-depth", "2")
    assert site.chat("hi", token=token).status == 200
    assert site.chat("echo hi", "relay", token=token).text == "hi"
    assert site.chat("onward echo hi", "relay", token=token).text == "stopped at 2 of 2"
    refused = site.chat("hi", token=token, headers=chain("r-2", "2"))
    error = refused.json["error"]
    assert (refused.status, error["observed"], error["ceiling"]) == (429, 2, 2)
    assert (error["root"], error["stamp"]) == ("r-2", "chain_depth")
    assert "chain_depth of the token" in error["hint"]
    assert site.chat("hi", headers=chain("r-2", "2")).status == 200


def test_an_agent_that_may_be_at_the_top_alone_calls_nobody(site: Organisation) -> None:
    before = executions(site.folder, "echo")
    reply = site.chat("echo hi", "starts")
    assert (reply.status, reply.code) == (429, "bridge_depth_exceeded")
    assert executions(site.folder, "echo") == before
    child = site.chat("starts x", "relay")
    assert (child.status, child.code) == (429, "bridge_depth_exceeded")


def test_the_budget_that_bound_a_call_is_shown_with_it(site: Organisation) -> None:
    reply = site.chat("hi", "near", headers=chain(depth="1"))
    [turn] = site.get(f"/runs/{run_of(reply)}").json["turns"]
    assert (turn["depth"], turn["limit"], turn["limit_by"]) == (1, 3, "chain_depth")
