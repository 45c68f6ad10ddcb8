"""A run with what was asked and answered."""

from collections.abc import Iterator
from typing import Any

import pytest

from carnet.cli.see.tree import MOST_LINES, draw, draw_cancelled
from tests.cli.see.test_runs import run_page, turn
from tests.faults.stores import served_on
from tests.selection import STORES
from tests.support.organisation import Organisation
from tests.support.served import AGENTS, CONFIG


@pytest.fixture(scope="module", params=STORES)
def acme(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Organisation]:
    with served_on(request, tmp_path_factory.mktemp("acme"), CONFIG, agents=AGENTS) as gateway:
        yield gateway


def test_a_run_in_full_tells_what_was_asked_and_answered(acme: Organisation) -> None:
    acme.chat("words good day", "relay", headers=[("x-tangle-runid", "conv_full")])
    (root,) = acme.json("run", "show", "conv_full", "--full")["turns"]
    (child,) = root["children"]
    assert root["asked"]["messages"][0]["content"] == "words good day"
    assert child["asked"]["messages"][0]["content"] == "good day"
    assert root["answered"] == child["answered"] == {"text": "good day "}
    lines = acme.carnet("run", "show", "conv_full", "--full").stdout.splitlines()
    assert [line.strip("│ ") for line in lines if "asked" in line or "answered" in line] == [
        "asked     user: words good day",
        "answered  good day",
        "asked     user: good day",
        "answered  good day",
    ]
    (plain,) = acme.json("run", "show", "conv_full")["turns"]
    assert "asked" not in plain


def test_a_run_that_waits_for_an_answer_is_shown_in_full(acme: Organisation) -> None:
    assert (
        acme.chat("cautious hi", "relay", headers=[("x-tangle-runid", "conv_waits")]).status == 403
    )
    (root,) = acme.json("run", "show", "conv_waits", "--full")["turns"]
    (child,) = root["children"]
    assert (root["state"], child["state"]) == ("waiting", "waiting")
    assert child["asked"]["messages"][0]["content"] == "hi"
    assert root["answered"] == child["answered"] == {"text": ""}
    assert acme.get("/runs/conv_waits?full=true").status == 200
    assert "user: cautious hi" in acme.carnet("run", "show", "conv_waits", "--full").stdout


def test_what_agents_asked_of_one_another_is_shown_to_the_operator_alone(
    acme: Organisation,
) -> None:
    token = acme.new_token("reader")
    run = [("x-tangle-runid", "conv_read")]
    acme.chat("words hi", "relay", headers=run, token=token)
    (root,) = acme.get("/runs/conv_read?full=true", token=token).json["turns"]
    assert root["asked"]["messages"][0]["content"] == "words hi"
    assert root["children"][0]["asked"] is None
    stranger = acme.new_token("stranger")
    assert acme.get("/runs/conv_read?full=true", token=stranger).code == "run_not_found"
    assert acme.get("/runs/conv_read?full=yes", token=token).code == "invalid_request"


def test_two_callers_of_one_run_see_their_own_words_alone(acme: Organisation) -> None:
    ids = [("x-tangle-runid", "conv_both"), ("x-tangle-turnid", "conv_both.t0.echo")]
    tokens = {name: acme.new_token(name) for name in ("left", "right")}
    for name, token in tokens.items():
        assert acme.chat(f"secret of {name}", headers=ids, token=token).status == 200
    for name, token in tokens.items():
        body = acme.get("/runs/conv_both?full=true", token=token).body.decode()
        assert [other for other in tokens if f"secret of {other}" in body] == [name]
    turns = acme.json("run", "show", "conv_both", "--full")["turns"]
    assert {each["actor"]: each["answered"]["text"] for each in turns} == {
        f"token:{name}": f"secret of {name}" for name in tokens
    }


def test_what_does_not_fit_is_left_out_and_told(acme: Organisation) -> None:
    run = [("x-tangle-runid", "conv_long")]
    for _ in range(5):
        assert acme.chat("x" * 300_000, headers=run).status == 200
    page = acme.get("/runs/conv_long?full=true").json
    assert page["is_cut"]
    assert any(each.get("is_cut") for each in page["turns"])
    assert "carnet tail conv_long" in acme.carnet("run", "show", "conv_long", "--full").stdout


def test_long_texts_are_cut_for_people_and_cannot_steer_the_terminal() -> None:
    text = "\n".join(["a\x1b[2J"] * (MOST_LINES + 2))
    lines = draw(run_page(turn(asked=None, answered={"text": text}))).splitlines()
    assert lines[-1].endswith("2 more lines (--format json)")
    assert "\x1b" not in "".join(lines)
    skilled = draw(run_page(turn(asked={"skill": "book", "payload": {"n": 1}}, answered={"n": 2})))
    assert 'asked     {"skill":"book","payload":{"n":1}}' in skilled
    assert 'answered  {"n":2}' in skilled


def test_who_agreed_to_what_is_told_when_it_is_over() -> None:
    asked = {"id": "int_1", "kind": "payment", "message": "Two cents", "chain": "front > shop"}
    paid = {**asked, "amount": "0.02", "currency": "credits", "other_amount": None}
    agreed = {**paid, "outcome": "accepted", "resolver": "alice", "at": "2026-11-16T18:00:00Z"}
    lines = draw(run_page(turn(answers=[agreed]))).splitlines()
    assert lines[-1].strip("│ ") == (
        "accepted  payment  0.02 credits  Two cents  asked by front > shop"
        "  by alice at 2026-11-16T18:00:00Z"
    )


def hop(agent: str, outcome: str, *below: Any, **more: Any) -> dict[str, Any]:
    page = {"turn": f"r.{agent}", "agent": agent, "depth": 0, "outcome": outcome, "code": None}
    return {**page, "at": None, "below": list(below), **more}


def test_a_run_that_was_cancelled_is_drawn_hop_by_hop() -> None:
    far = hop("critic", "unknown", at="globex.example", code="provider_timeout")
    others = [hop("echo", "done"), hop("bad", "failed", code="agent_failed")]
    top = hop("front", "cancelled", hop("@critic@globex.example", "cancelled", far), *others)
    page = {"run": "r", "cancelled": 2, "hops": [top]}
    assert draw_cancelled(page).splitlines() == [
        "Told 2 turns of r to stop.",
        "└─ front  cancelled  r.front",
        "   ├─ @critic@globex.example  cancelled  r.@critic@globex.example",
        "   │  └─ globex.example: critic  outcome unknown  provider_timeout  r.critic",
        "   ├─ echo  done  r.echo",
        "   └─ bad  failed  agent_failed  r.bad",
    ]
    assert len(draw_cancelled({**page, "cancelled": 0}).splitlines()) == 6
    ended = {"run": "r", "cancelled": 0, "hops": others[:1]}
    assert draw_cancelled(ended) == "Nothing of r is running here."
