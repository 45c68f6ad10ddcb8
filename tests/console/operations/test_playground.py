"""The playground: calls of one's own, refused where they would be refused from outside."""

import re
from pathlib import Path
from urllib.parse import urlencode

import pytest

import carnet
from carnet.http.link import Line
from tests.console.owner.test_chat import FORM, SCRIPT, send
from tests.console.pages import a_viewer
from tests.gateway.people.browser import Browser, Somebody
from tests.support.http import Reply, chat_body, request
from tests.support.organisation import Organisation

SEND = "/console/playground/send"
FAULT = "fault_injected"
SOURCE = Path(carnet.__file__).parent


@pytest.fixture
def player(acme: Organisation) -> Somebody:
    return Somebody(acme)


def play(browser: Browser, agent: str = "words", text: str = "hi", **choices: str) -> Reply:
    return send(browser, SEND, agent=agent, text=text, **choices)


def runs(browser: Browser) -> int:
    return len(browser.send("GET", "/console/runs.json").json["runs"])


@pytest.mark.parametrize("mode", ["sync", "stream"])
def test_a_call_is_made_in_the_mode_that_was_chosen(player: Somebody, mode: str) -> None:
    browser = player.browser()
    page = play(browser, mode=mode, text=f"one {SCRIPT}").body.decode()
    assert ("Answered" in page, "/console/runs/conv_" in page) == (True, True), page
    assert ("data: [DONE]" in page) == (mode == "stream")
    assert SCRIPT not in page
    assert runs(browser) == 1


def test_a_task_is_taken_on_and_looked_at(player: Somebody) -> None:
    browser = player.browser()
    page = play(browser, mode="async").body.decode()
    assert "Taken on as the task" in page, page
    (task,) = browser.send("GET", "/tasks").json["tasks"]
    name = next(str(task[key]) for key in ("taskId", "id", "task") if key in task)
    assert name in page
    looked = browser.send("GET", f"/console/playground/task?id={name}")
    assert (looked.status, name.encode() in looked.body) == (200, True)


@pytest.mark.parametrize(
    ("choices", "code"),
    [
        ({"fault": "depth"}, "bridge_depth_exceeded"),
        ({"fault": "signature"}, "signature_invalid"),
        ({"fault": "broke", "agent": "paid"}, "budget_exceeded"),
        ({"identity": "nobody"}, "token_missing"),
    ],
)
def test_a_fault_is_refused_by_the_front_door(
    player: Somebody, choices: dict[str, str], code: str
) -> None:
    browser = player.browser()
    page = play(browser, **choices).body.decode()
    assert ("Refused" in page, code in page) == (True, True), page
    assert player.token not in page
    assert runs(browser) == 0


def test_a_call_that_takes_longer_than_its_second_is_ended(player: Somebody) -> None:
    page = play(player.browser(), agent="slow", fault="slow").body.decode()
    assert "Refused" in page, page


@pytest.mark.parametrize("mode", ["sync", "stream"])
def test_a_call_is_made_to_fail_and_its_run_says_so(
    acme: Organisation, player: Somebody, mode: str
) -> None:
    browser = player.browser()
    page = play(browser, agent="paid", fault="500", mode=mode).body.decode()
    assert ("Refused" in page, FAULT in page, ">500<" in page) == (True, True, True), page
    (run,) = browser.send("GET", "/runs").json["runs"]
    assert (run["state"], run["code"], run["cost"]) == ("failed", FAULT, "0")
    assert f"/console/runs/{run['run']}" in page
    assert FAULT in browser.send("GET", f"/console/runs/{run['run']}").body.decode()
    assert FAULT in acme.carnet("run", "show", run["run"]).stdout
    assert "Answered" in play(browser, agent="paid", mode=mode).body.decode()  # that one alone


@pytest.mark.parametrize("choices", [{"mode": "async"}, {"identity": "token"}])
def test_what_runs_later_or_for_another_token_is_not_made_to_fail(
    player: Somebody, choices: dict[str, str]
) -> None:
    browser = player.browser()
    refused = play(browser, fault="500", token=player.token, **choices)
    assert (refused.status, b"invalid_request" in refused.body) == (400, True)
    assert runs(browser) == 0


def test_no_request_of_a_caller_makes_a_call_fail(acme: Organisation, player: Somebody) -> None:
    names = ("fault", "carnet-fault", "x-carnet-fault", "is-to-fail", "x-is-to-fail")
    fields = [("content-type", "application/json"), ("authorization", f"Bearer {player.token}")]
    fields += [(name, "500") for name in names]
    body = chat_body("hi", "words", fault="500", is_to_fail=True)
    path = f"{acme.url}/v1/chat/completions?fault=500&is_to_fail=true"
    assert request("POST", path, fields, body).status == 200
    (run,) = player.browser().send("GET", "/runs").json["runs"]
    assert run["state"] == "done"


def test_nobody_has_a_call_fail_who_has_not_signed_in(acme: Organisation, player: Somebody) -> None:
    token = ("authorization", f"Bearer {player.token}")
    browser, form = player.browser(), urlencode({"agent": "words", "text": "hi", "fault": "500"})
    cookie = ("cookie", browser.cookie)
    for shown, code in (
        ([token], "session_required"),
        ([token, cookie], "session_required"),
        ([cookie], "cross_site"),  # without the csrf token
    ):
        refused = request("POST", acme.url + SEND, [FORM, *shown], form.encode())
        assert (refused.status, code.encode() in refused.body) == (403, True), refused.body
    assert runs(browser) == 0


def test_the_playground_alone_has_calls_fail() -> None:
    """What says so is set where the server makes no line, and asked for by one page."""
    sets = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if re.search(r"\bis_to_fail *=[^=]", path.read_text())
    }
    assert sets == {"console/api.py", "console/operations/playground.py", "http/link.py"}
    assert Line().is_to_fail is False


def test_another_token_is_taken_if_it_is_one_of_hers(acme: Organisation, player: Somebody) -> None:
    browser, other = player.browser(), Somebody(acme)
    options = ("--person", player.name, "--scope", "run:read")
    narrow = acme.new_token(f"{player.name}-narrow", *options)
    page = play(browser, identity="token", token=narrow).body.decode()
    assert ("permission_missing" in page, narrow in page) == (True, False), page
    refused = play(browser, identity="token", token=other.token)
    assert (refused.status, b"one of yours" in refused.body) == (400, True)
    service = acme.new_token(f"{player.name}-service")
    assert play(browser, identity="token", token=service).status == 400
    for nothing in ("", "none"):
        assert play(browser, identity="token", token=nothing).status in {400, 401}


@pytest.mark.parametrize(
    "choices",
    [{"mode": "x"}, {"fault": "501"}, {"identity": "root"}, {"agent": "@words@globex.example"}],
)
def test_what_is_no_choice_is_refused_and_nobody_elsewhere_is_called(
    player: Somebody, choices: dict[str, str]
) -> None:
    browser = player.browser()
    assert play(browser, **choices).status in {400, 403, 404}
    assert runs(browser) == 0


def test_who_only_looks_plays_with_nothing(acme: Organisation) -> None:
    viewer = a_viewer(acme).browser()
    assert viewer.send("GET", "/console/playground").status == 403
    for fault in ("none", "500"):
        assert play(viewer, fault=fault).status == 403
    assert runs(viewer) == 0
