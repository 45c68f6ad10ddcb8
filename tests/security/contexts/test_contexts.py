"""What a caller says of itself: kept with the call, shown to people and agents, never believed."""

import json

import pytest

from tests.security.contexts.requests import (
    AGENT,
    DEPTH,
    HOST,
    ROOT,
    SITE,
    USER,
    chain,
    fresh,
    last_used,
    run_of,
    seen_by,
    turn_of,
)
from tests.support.http import HeaderList
from tests.support.organisation import Organisation
from tests.support.served import executions


def test_an_agent_is_told_who_calls_from_where_how_deep_and_under_which_request(
    site: Organisation,
) -> None:
    found = seen_by(site.chat("hi", "about", headers=chain("root-request-123", user="42")))
    assert found["context"] == {
        "agent": "source",
        "user": 42,
        "host": SITE,
        "root": "root-request-123",
        "verified": False,
        "depth": 2,
        "metadata": {},
    }
    assert found["cross_site"] is True


def test_without_headers_a_call_is_at_the_top_of_a_chain_of_its_own(site: Organisation) -> None:
    reply = site.chat("hi", "about")
    found = seen_by(reply)
    context = found["context"]
    assert (context["agent"], context["user"], context["host"]) == ("", 0, "self")
    assert (context["depth"], context["root"]) == (0, run_of(reply))
    assert found["cross_site"] is False


def test_the_names_of_the_headers_are_read_whatever_their_case(site: Organisation) -> None:
    headers = [(name.upper(), value) for name, value in chain()]
    assert seen_by(site.chat("hi", "about", headers=headers))["context"]["agent"] == "source"


def test_the_context_stays_with_the_principal_of_what_is_called_for_it(site: Organisation) -> None:
    direct = seen_by(site.chat("hi", "about", headers=chain()))
    below = seen_by(site.chat("hi", "about_below", headers=chain()))
    assert below["context"] == direct["context"]
    changed = {"effective_agent_id", "request_context"}
    assert {k: v for k, v in below["safe"].items() if k not in changed} == {
        k: v for k, v in direct["safe"].items() if k not in changed
    }


def test_people_are_shown_agent_host_and_that_it_is_a_claim(site: Organisation) -> None:
    reply = site.chat("hi", headers=chain(fresh("root"), agent="franklin"))
    shown = f"franklin@{SITE} (claimed)"
    turn = turn_of(site, reply)
    assert (turn["context"]["caller"], turn["context"]["how"]) == (shown, "claimed")
    assert (turn["context"]["user"], turn["context"]["depth"]) == (7, 2)
    run = run_of(reply)
    [line] = [line for line in site.get("/runs").json["runs"] if line["run"] == run]
    assert line["caller"] == shown
    assert shown in site.carnet("runs").stdout
    assert f"called by {shown}" in site.carnet("run", "show", run).stdout
    assert any(
        entry.get("caller") == shown
        for entry in map(json.loads, site.log.read_text().splitlines())
        if entry.get("run") == run
    )


def test_a_name_that_would_pass_for_a_verified_one_is_shown_in_quotes(site: Organisation) -> None:
    agent = "root@https://good.example (verified) x"
    reply = site.chat("hi", headers=chain(agent=agent))
    assert turn_of(site, reply)["context"]["caller"] == f'"{agent}"@{SITE} (claimed)'


def test_the_depth_is_shown_against_the_limit_that_bound_it(site: Organisation) -> None:
    reply = site.chat("hi", headers=chain(depth="5"))
    turn = turn_of(site, reply)
    assert (turn["depth"], turn["limit"], turn["limit_by"]) == (5, 17, "caller_context")
    page = site.get(f"/runs/{run_of(reply)}").json
    assert (page["depth"], page["limit"]) == (5, 17)
    assert "depth 5 of 17 (caller_context)" in site.carnet("run", "show", run_of(reply)).stdout


def test_a_depth_over_the_limit_is_refused_by_the_limit_and_its_stamp(site: Organisation) -> None:
    before = executions(site.folder, "echo")
    reply = site.chat("hi", headers=chain("deep-root", depth="17"))
    assert (reply.status, reply.code) == (429, "bridge_depth_exceeded")
    error = reply.json["error"]
    assert (error["observed"], error["limit"], error["stamp"]) == (17, 17, "caller_context")
    assert "max_chain_depth" in error["hint"]
    assert "retry-after" not in reply.headers
    assert executions(site.folder, "echo") == before
    assert site.chat("hi", headers=chain(depth="16")).status == 200


def test_a_claimed_root_is_kept_and_joins_no_run(site: Organisation) -> None:
    run = run_of(site.chat("hi"))
    reply = site.chat("hi", headers=chain(run))
    assert run_of(reply) != run
    assert turn_of(site, reply)["context"]["root"] == run
    assert len(site.get(f"/runs/{run}").json["turns"]) == 1


def test_only_a_root_is_the_top_of_a_chain_with_that_root(site: Organisation) -> None:
    found = seen_by(site.chat("hi", "about", headers=[(ROOT, "R")]))["context"]
    assert (found["root"], found["depth"], found["host"]) == ("R", 0, "self")


@pytest.mark.parametrize(("user", "status"), [("0", 200), ("5", 400)])
def test_a_user_alone_is_refused_unless_it_is_nobody(
    site: Organisation, user: str, status: int
) -> None:
    assert site.chat("hi", headers=[(USER, user)]).status == status


def test_a_claimed_root_is_compared_with_the_run_of_another_stamp(site: Organisation) -> None:
    run = fresh("conv")
    tangle = [("x-tangle-runid", run), ("x-tangle-forwarded-depth", "1")]
    reply = site.chat("hi", headers=[*tangle, *chain(run)])
    assert (reply.status, run_of(reply)) == (200, run)
    assert turn_of(site, reply)["depth"] == 2
    other = site.chat("hi", headers=[*tangle, *chain("another")])
    assert (other.status, other.code) == (400, "chain_mismatch")


@pytest.mark.parametrize(
    "odd",
    [
        [(DEPTH, "bogus")],
        [(DEPTH, "-5")],
        [(AGENT, "x")],
        [(HOST, "self"), (DEPTH, "1"), (AGENT, "x"), (ROOT, "r")],
        chain(depth="1.0"),
        chain(depth="+1"),
        chain(agent=""),
        chain(root=""),
        chain(host=""),
        chain(host="HTTPS://s.example"),
        chain(host="SELF"),
    ],
)
def test_malformed_headers_beside_a_live_token_run_nothing_and_do_not_use_it(
    site: Organisation, odd: HeaderList
) -> None:
    name = fresh("unused")
    token = site.new_token(name)
    before = executions(site.folder, "echo")
    tangle = [("x-tangle-forwarded-depth", "1"), ("x-tangle-runid", fresh("conv"))]
    for headers in (odd, [*odd, *tangle]):
        reply = site.chat("hi", token=token, headers=headers)
        assert (reply.status, reply.code) == (400, "malformed_caller_context")
    assert executions(site.folder, "echo") == before
    assert last_used(site, name) is None


def test_a_token_is_used_when_its_headers_parse(site: Organisation) -> None:
    name = fresh("used")
    token = site.new_token(name)
    assert site.chat("hi", token=token, headers=chain()).status == 200
    site.stop()
    site.start()
    assert last_used(site, name) is not None


def test_a_token_that_has_ended_is_unknown_whatever_stands_beside_it(site: Organisation) -> None:
    name = fresh("ended")
    ended = site.new_token(name)
    site.carnet("tokens", "revoke", name)
    site.stop()  # what another process wrote is seen within a second; at once after a start
    site.start()
    refusals = [site.chat("hi", token=each, headers=chain()) for each in (ended, "ck_unknown")]
    assert {(each.status, each.code) for each in refusals} == {(401, "token_invalid")}
