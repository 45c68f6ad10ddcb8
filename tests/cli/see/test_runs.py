"""Runs as lists and trees, and codes explained."""

from pathlib import Path
from typing import Any

import pytest

from carnet.cli.scopes import OPERATOR, PLAIN, check_scope
from carnet.cli.see.tree import draw
from carnet.cli.times import read_rate, read_since, read_span, short, write_rate
from carnet.core.people.identity import allows
from carnet.errors import BY_CODE, UsageInvalid
from carnet.wire.dialects.samvad import STATUSES
from tests.cli.conftest import Cli


def turn(**changes: Any) -> dict[str, Any]:
    page: dict[str, Any] = {
        "turn": "r.t0.echo",
        "parent_turn": None,
        "agent": "echo",
        "speaker": None,
        "depth": 0,
        "state": "done",
        "attempt": 1,
        "actor": "token:alice",
        "payer": "alice@token:alice",
        "cost": "0.5",
        "started": None,
        "ended": None,
        "code": None,
        "legs": [],
        "children": [],
    }
    return page | changes


def run_page(*turns: dict[str, Any]) -> dict[str, Any]:
    return {
        "run": "conv_1",
        "state": "done",
        "payer": "alice@token:alice",
        "cost": "0.5",
        "currency": "credits",
        "started": "2026-11-15T09:00:00.000+00:00",
        "ended": None,
        "depth": 1,
        "limit": 4,
        "turns": list(turns),
    }


def test_a_run_is_drawn_as_a_tree_with_calls_out_indented() -> None:
    outbound = {
        "turn": "r.t0.critic",
        "to": "@critic@globex.example",
        "depth": 1,
        "status": "done",
        "cost": "0.2",
        "code": None,
    }
    child = turn(turn="r.t1.helper", agent="helper", depth=1)
    assert draw(run_page(turn(legs=[outbound], children=[child]))).splitlines() == [
        "run conv_1  done  payer alice@token:alice  cost 0.5 credits  deepest 1 of 4",
        "started 2026-11-15T09:00:00.000+00:00",
        "└─ echo  depth 0 of 4  done  cost 0.5  payer alice@token:alice  r.t0.echo",
        "   ├─ → @critic@globex.example  depth 1  done  cost 0.2  r.t0.critic",
        "   └─ helper  depth 1 of 4  done  cost 0.5  payer alice@token:alice  r.t1.helper",
    ]


def test_the_refusal_is_marked_where_it_happened() -> None:
    code = "bridge_depth_exceeded"
    outbound = {"turn": "l", "to": "@x@b.example", "depth": 4, "status": "refused", "code": code}
    deep = turn(turn="b", agent="deep", state="failed", code=code, depth=3, legs=[outbound])
    lines = draw(run_page(turn(state="failed", code=code, children=[deep]))).splitlines()
    marked = [line for line in lines if "◀" in line]
    assert len(marked) == 1
    assert "→ @x@b.example" in marked[0]
    assert marked[0].endswith("bridge_depth_exceeded  ◀ refused here")


def test_calls_stand_in_the_order_in_which_they_were_asked_for() -> None:
    late = {"turn": "b", "to": "@x@b.example", "depth": 1, "status": "refused", "ordinal": 2}
    own = {"turn": "a", "to": "@y@b.example", "depth": 0, "status": "done", "ordinal": None}
    asked = [turn(agent="third", ordinal=10), turn(agent="first", ordinal=0)]
    foreign = turn(agent="foreign", ordinal=None)
    page = run_page(turn(legs=[late, own], children=[foreign, *asked]))
    lines = draw(page).splitlines()[3:]
    names = ["@y@b.example", "first", "@x@b.example", "third", "foreign"]
    assert [line.removeprefix("   ")[3:].removeprefix("→ ").split()[0] for line in lines] == names


def test_what_the_other_side_answered_is_told_in_its_own_word() -> None:
    code = "peer_refused"
    outbound = {"turn": "l", "to": "@x@b.example", "depth": 1, "status": "refused", "code": code}
    answered = {"peer_status": 409, "peer_code": "loop_\x1bdetected"}
    line = draw(run_page(turn(state="failed", code=code, legs=[outbound | answered]))).splitlines()[
        -1
    ]
    assert line.endswith(
        "it said 409 loop_\N{REPLACEMENT CHARACTER}detected  peer_refused  ◀ refused here"
    )


def test_what_somebody_cancelled_is_no_refusal() -> None:
    late = {"turn": "b", "to": "@x@b.example", "depth": 1, "status": "failed"}
    cut = turn(
        agent="cut", state="failed", code="cancelled", legs=[late | {"code": "provider_timeout"}]
    )
    marked = [line for line in draw(run_page(cut)).splitlines() if "◀" in line]
    assert len(marked) == 1
    assert "cut" in marked[0]
    assert marked[0].endswith("cancelled  ◀ cancelled here")


def test_a_failure_that_is_no_refusal_is_marked_as_such() -> None:
    assert draw(run_page(turn(state="failed", code="agent_failed"))).endswith("◀ failed here")
    assert draw(run_page(turn(state="failed", code=None))).endswith("◀ failed here")


def test_a_cost_that_nobody_knows_is_a_dash_and_attempts_are_told() -> None:
    line = draw(run_page(turn(cost=None, attempt=2))).splitlines()[-1]
    assert "cost -" in line
    assert line.endswith("attempt 2")


# ----------------------------------------------------------------------------------- explain


@pytest.mark.parametrize("code", sorted(BY_CODE))
def test_every_code_is_explained(cli: Cli, code: str) -> None:
    page = cli("explain", code, "--format", "json").page
    kind = BY_CODE[code]
    assert (page["code"], page["status"], page["retryable"]) == (code, kind.status, kind.retryable)
    assert page["meaning"]
    assert page["hint"]


def test_an_explanation_says_meaning_and_next_step(cli: Cli) -> None:
    delegated = cli("explain", "delegation_exceeded")
    assert "HTTP 403" in delegated.out
    assert "To callers that sign: HTTP 400 DELEGATION_EXCEEDED" in delegated.out
    ran = cli("explain", "bridge_depth_exceeded")
    assert ran.code == 0
    assert "HTTP 429" in ran.out
    assert "will be refused again" in ran.out
    assert "raise max_depth" in ran.out


def test_alone_it_lists_all_codes(cli: Cli) -> None:
    page = cli("explain", "--format", "json").page
    assert [row["code"] for row in page["codes"]] == sorted(BY_CODE)
    assert {row["code"]: row["status"] for row in page["samvad"]} == STATUSES
    assert all(row["meaning"].endswith(".") for row in (*page["codes"], *page["samvad"]))
    lines = cli("explain").out.splitlines()
    assert len(lines) == 2 + len(BY_CODE) + len(STATUSES)
    assert lines[-1].endswith("carnet explain CODE")


def test_a_status_lists_the_codes_that_come_with_it(cli: Cli) -> None:
    page = cli("explain", "429", "--format", "json").page
    assert {row["status"] for row in (*page["codes"], *page["samvad"])} == {429}
    assert {"bridge_depth_exceeded", "rate_limited"} < {row["code"] for row in page["codes"]}
    assert "rate_limited" in cli("explain", "429").out
    ran = cli("explain", "299")
    assert (ran.code, "No code comes with the status 299." in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("code", "other"), [("payment_required", "payment_wanted"), ("rate_limited", "wait_required")]
)
def test_a_code_with_two_meanings_is_explained_with_both(cli: Cli, code: str, other: str) -> None:
    page = cli("explain", code, "--format", "json").page
    assert (page["code"], [each["code"] for each in page["also"]]) == (code, [other])
    text = cli("explain", code).out
    assert page["meaning"].partition("\n")[0] in text
    assert page["also"][0]["meaning"].partition("\n")[0] in text
    assert "also" not in cli("explain", other, "--format", "json").page
    assert code in cli("explain", other).out


def test_an_unknown_code_is_answered_with_the_nearest(cli: Cli) -> None:
    ran = cli("explain", "depth_exceeded")
    assert ran.code == 2
    assert "Did you mean 'bridge_depth_exceeded'?" in ran.err
    assert "Did you mean 'token_missing'?" in cli("explain", "TOKEN_MISING").err
    assert "'carnet explain' lists all codes." in cli("explain", "nonsense").err


@pytest.mark.parametrize("word", sorted(STATUSES))
def test_the_nine_words_of_samvad_are_explained(cli: Cli, word: str) -> None:
    page = cli("explain", word, "--format", "json").page
    assert (page["code"], page["status"]) == (word, STATUSES[word])
    assert page["carnet_codes"]
    assert page["meaning"] in cli("explain", word).out


def test_a_word_of_samvad_and_a_code_of_ours_are_told_apart_by_their_letters(cli: Cli) -> None:
    assert cli("explain", "skill_not_found", "--format", "json").page["retryable"] is False
    assert cli("explain", "auth_failed", "--format", "json").page["code"] == "AUTH_FAILED"


def test_a_code_may_be_written_in_capitals(cli: Cli) -> None:
    assert cli("explain", "Token_Missing", "--format", "json").page["code"] == "token_missing"


@pytest.mark.usefixtures("home")
def test_an_id_alone_is_answered_with_the_command_that_takes_it(cli: Cli) -> None:
    ran = cli("run", "conv_1")
    assert ran.code == 2
    assert "Did you mean 'run show conv_1'?" in ran.err
    assert "Did you mean 'show'?" in cli("run", "shwo").err


@pytest.mark.usefixtures("home")
def test_a_list_that_is_empty_by_its_options_says_that_there_may_be_others(cli: Cli) -> None:
    for option in ("agent", "actor", "speaker", "payer", "state", "code", "correlation"):
        ran = cli("runs", f"--{option}", "x")
        assert (ran.code, ran.out) == (0, "No run is like that. All of them: carnet runs\n")
    assert cli("runs", "--since", "2h").out.startswith("No run is like that.")
    assert cli("runs", "--since", "soon").code == 2


@pytest.mark.usefixtures("home")
def test_a_list_that_has_ended_says_so(cli: Cli) -> None:
    assert cli("runs", "--before", "5").out == "No earlier runs: the list ended.\n"


def test_what_is_printed_to_be_typed_keeps_the_configuration(cli: Cli, home: Path) -> None:
    config = str(home / "carnet.toml")
    assert f"carnet -c {config} call echo hello" in cli("-c", config, "runs").out
    assert f"carnet -c {config} tokens list" in cli("-c", config, "tokens", "revoke", "x").err


# ---------------------------------------------------------------- times, rates, permissions


def test_spans_are_read_and_anything_else_is_refused() -> None:
    assert read_span("30d", option="--expires") == 30 * 86_400
    assert read_span("12h", option="--expires") == 12 * 3600
    assert read_span("never", option="--expires") is None
    for text in ["", "30", "d", "-1d", "1w", " 1d", "0d", "1.5h", "٣d"]:
        with pytest.raises(UsageInvalid):
            read_span(text, option="--expires")


@pytest.mark.parametrize("text", ["5/s", "60/min", "1000/h"])
def test_rates_are_read_and_written(text: str) -> None:
    assert write_rate(*read_rate(text)) == text


@pytest.mark.parametrize("text", ["", "5", "0/s", "5/day", "5 /s", "a/s"])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(UsageInvalid):
        read_rate(text)


def test_a_rate_of_another_length_is_still_told() -> None:
    assert write_rate(5, 90) == "5 in 90 s"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2h", "2027-01-15T06:00:00.000+00:00"),
        ("999999d", "1970-01-01T00:00:00.000+00:00"),
        ("2026-11-15 09:00:00", "2026-11-15T09:00:00.000+00:00"),
        ("2026-11-15", "2026-11-15T00:00:00.000+00:00"),
    ],
)
def test_since_is_a_span_before_now_or_a_moment(text: str, moment: str) -> None:
    assert read_since(text, 1_800_000_000_000_000) == moment


def test_what_is_neither_is_refused() -> None:
    for text in ("yesterday", "2", "h", "never"):
        with pytest.raises(UsageInvalid):
            read_since(text, 0)


def test_a_time_is_shortened_for_a_column() -> None:
    assert short("2026-11-15T09:00:00.123+00:00") == "2026-11-15 09:00:00"
    assert short(None) == "-"


def test_permissions_are_checked_against_the_vocabulary() -> None:
    for scope in ["call:echo", "call:bridge/x", "call:*", "pay", "admin:runs", "*"]:
        assert check_scope(scope) == scope
    for scope in ["cal:*", "call:", "call:a b", "run:write", "", "pay:x"]:
        with pytest.raises(UsageInvalid):
            check_scope(scope)


def test_a_plain_token_is_no_operator() -> None:
    assert not allows(PLAIN, "admin:runs")
    assert not allows(PLAIN, "metrics")
    for permission in ["admin:runs", "metrics", "run:read", "call:echo", "call:remote", "pay"]:
        assert allows(OPERATOR, permission)
