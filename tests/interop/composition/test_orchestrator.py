"""Orchestrators at a real gateway, on each store: whom they ask, and what they make of it.

What one of those asks for is shown and answered while the others go on.
"""

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import carnet
from carnet.testing.wait import PATIENCE_SECONDS, until
from tests.faults.stores import end_leases, rows, served_on
from tests.selection import STORES
from tests.support.http import Reply, request
from tests.support.organisation import Organisation
from tests.support.served import AGENTS, executions

MORE = '''

async def held(visit: carnet.Visit) -> str:
    """Answer when somebody has made the file that the text names."""
    note(visit)
    while not (RAN.parent / visit.text).exists():
        await asyncio.sleep(0.01)
    return "let go"


async def editor(visit: carnet.Visit) -> str:
    note(visit)
    return f"<{visit.text}>"


async def shop(visit: carnet.Visit) -> str:
    """Sell something."""
    note(visit)
    answer = await visit.interrupt(payment="0.02", message="Two cents")
    return f"sold: {answer.outcome}"
'''
CONFIG = """
[agents.panel]
kind = "orchestrator"
agents = ["echo", "cautious", "held"]

[agents.edited]
kind = "orchestrator"
agents = ["words", "broken", "echo"]
join = "editor"

[agents.mentions]
kind = "orchestrator"

[agents.quick]
kind = "orchestrator"
agents = ["held", "echo"]
first = 1
branch_timeout = 60

[agents.strict]
kind = "orchestrator"
agents = ["held", "broken"]
on_failure = "fail"

[agents.sale]
kind = "orchestrator"
agents = ["shop", "echo"]
""" + "".join(
    f'\n[agents.{name}]\nkind = "python"\ntarget = "agents:{name}"\n'
    for name in ("words", "cautious", "held", "editor", "broken", "relay", "shop")
)
BESIDE = "echo:\n{0}\n\ncautious:\naccepted\n\nheld:\nlet go"

ASKING = ("question.begin", "question.asked", "question.withheld")  # where it is killed

numbers = itertools.count()


@pytest.fixture(scope="module", params=STORES)
def acme(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Organisation]:
    folder = tmp_path_factory.mktemp("orchestrator")
    with served_on(request, folder, CONFIG, agents=AGENTS + MORE) as gateway:
        yield gateway


@pytest.fixture
def run() -> str:
    return f"run-{next(numbers)}"


class Asked:
    """A call that somebody waits for in a thread."""

    def __init__(self, acme: Organisation, run: str, agent: str, text: str, token: str) -> None:
        ids = [("x-tangle-runid", run), ("x-tangle-turnid", "t1")]
        self._reply: Reply | None = None
        self._call: Callable[[], Reply] = lambda: acme.chat(text, agent, token=token, headers=ids)
        self._thread = threading.Thread(target=self._wait)
        self._thread.start()

    def _wait(self) -> None:
        with contextlib.suppress(OSError):  # the gateway was killed
            self._reply = self._call()

    def reply(self) -> Reply:
        self._thread.join(PATIENCE_SECONDS)
        assert self._reply is not None
        return self._reply

    def left(self) -> None:
        """The gateway is gone."""
        self._thread.join(PATIENCE_SECONDS)

    def again(self) -> Reply:
        """The same call, until it has an end."""
        return until(self._call, lambda reply: reply.status == 200)


def questions(
    acme: Organisation, run: str, status: str = "open", token: str | None = None
) -> list[dict[str, Any]]:
    page = acme.get(f"/approvals?status={status}", token=token).json
    return [entry for entry in page["approvals"] if entry["run"] == run]


def question(acme: Organisation, run: str, token: str | None = None) -> dict[str, Any]:
    found = until(lambda: questions(acme, run, token=token))
    assert len(found) == 1
    return found[0]


def answer(acme: Organisation, name: str, token: str, outcome: str, **more: Any) -> Reply:
    fields = [("authorization", f"Bearer {token}"), ("content-type", "application/json")]
    body = msgspec.json.encode({"outcome": outcome, **more})
    return request("POST", f"{acme.url}/approvals/{name}", fields, body)


def states(acme: Organisation, run: str) -> dict[str, str]:
    sql = "SELECT t.agent, t.state FROM turn t JOIN run r ON r.n = t.run WHERE r.id = ?"
    return dict(rows(acme, sql, run))


def let(acme: Organisation, name: str) -> Path:
    path = acme.folder / name
    path.touch()
    return path


def test_answers_are_listed_in_order_or_given_to_the_agent_that_joins_them(
    acme: Organisation,
) -> None:
    reply = acme.chat("hi there", "edited")
    assert reply.status == 200
    broken = "broken has failed: The agent failed while answering. (agent_failed)"
    listed = f"words:\nhi there \n\n{broken}\n\necho:\nhi there"
    assert reply.text.startswith("<3 agents were asked at once.")
    assert reply.text.endswith(f"They were asked:\nhi there\n\n{carnet.untrusted(listed)}>")
    handles = "@words@acme.example, @echo@acme.example say so"
    named = acme.chat(handles, "mentions")
    assert named.text == "@words@acme.example:\nsay so \n\n@echo@acme.example:\nsay so"
    for text, reason in (("say so", "no handle"), ("@echo@acme.example", "says nothing")):
        refused = acme.chat(text, "mentions")
        assert (refused.status, refused.code) == (400, "invalid_request")
        assert reason in refused.json["error"]["message"]
    many = " ".join(f"@a{number}@acme.example" for number in range(65))
    assert "more than 64" in acme.chat(f"{many} hi", "mentions").json["error"]["message"]


def test_enough_answers_or_a_failure_end_the_others(acme: Organisation) -> None:
    headers = [("x-tangle-runid", "quick")]
    assert acme.chat("never", "quick", headers=headers).text == "echo:\nnever"
    ended = {"quick": "done", "held": "failed", "echo": "done"}
    until(lambda: states(acme, "quick") == ended)
    failed = acme.chat("never", "strict")
    assert (failed.status, failed.code) == (500, "agent_failed")


def test_what_one_asks_for_is_asked_and_answered_while_the_others_go_on(
    acme: Organisation, run: str
) -> None:
    before = len(executions(acme.folder, "echo"))
    asked = Asked(acme, run, "panel", run, acme.token)
    entry = question(acme, run)
    assert states(acme, run)["panel"] == "running"
    assert (entry["chain"], entry["without"]) == ("panel > cautious", True)
    (top,) = acme.json("run", "show", run)["turns"]
    assert [each["id"] for each in top["waits"]] == [entry["id"]]
    shown = acme.carnet("inbox", "show", entry["id"]).stdout
    assert f"carnet inbox deny {entry['id']} --value without" in shown

    given = answer(acme, entry["id"], acme.token, "accepted")
    assert (given.status, given.json["status"]) == (200, "resolved")
    other = answer(acme, entry["id"], acme.token, "rejected")
    assert (other.status, other.code) == (409, "answered_otherwise")
    until(lambda: states(acme, run)["cautious"] == "done")  # it has gone on
    assert states(acme, run)["held"] == states(acme, run)["panel"] == "running"
    let(acme, run)
    assert asked.reply().text == BESIDE.format(run)
    assert len(executions(acme.folder, "echo")) == before + 1
    assert questions(acme, run) == []
    assert rows(acme, "SELECT COUNT(*) FROM kept_call") == [(0,)]


def test_the_question_of_a_fan_out_within_others_is_asked_at_once_as_well(
    acme: Organisation, run: str
) -> None:
    """By whoever began the chain here, and by nobody else."""
    alice = acme.new_token(f"alice-{run}")
    asked = Asked(acme, run, "relay", f"panel {run}", alice)
    entry = question(acme, run, alice)
    assert states(acme, run)["panel"] == "running"
    mallory = acme.new_token(f"mallory-{run}")
    assert answer(acme, entry["id"], mallory, "accepted").code == "interrupt_not_found"
    assert answer(acme, entry["id"], alice, "accepted").status == 200
    let(acme, run)
    assert asked.reply().text == BESIDE.format(run)


def test_who_leaves_takes_the_question_along(acme: Organisation, run: str) -> None:
    asked = Asked(acme, run, "panel", run, acme.token)
    entry = question(acme, run)
    acme.carnet("run", "cancel", run)
    assert asked.reply().code == "cancelled"
    assert questions(acme, run) == []
    late = answer(acme, entry["id"], acme.token, "accepted")
    assert (late.status, late.code) == (410, "interrupt_expired")
    until(lambda: set(states(acme, run).values()) == {"failed", "done"})
    assert rows(acme, "SELECT COUNT(*) FROM kept_call") == [(0,)]


def test_while_one_waits_the_answers_of_the_others_are_shown_and_can_do_without(
    acme: Organisation, run: str
) -> None:
    let(acme, run)
    asked = Asked(acme, run, "panel", run, acme.token)
    waits = asked.reply()
    assert (waits.status, waits.code) == (403, "approval_required")
    shown = f"echo:\n{run}\n\ncautious asks for something first.\n\nheld:\nlet go"
    assert waits.json["partial"] == shown
    assert waits.json["error"]["interrupts"][0]["without"] is True
    (top,) = acme.json("run", "show", run, "--full")["turns"]
    assert top["answered"]["text"] == shown
    entry = question(acme, run)
    assert answer(acme, entry["id"], acme.token, "rejected", value="without").status == 200
    done = asked.again()
    assert done.text == f"echo:\n{run}\n\ncautious was left out.\n\nheld:\nlet go"
    until(lambda: states(acme, run)["cautious"] == "failed")  # nothing waits any more


def test_the_others_go_on_without_also_while_they_run(acme: Organisation, run: str) -> None:
    asked = Asked(acme, run, "panel", run, acme.token)
    entry = question(acme, run)
    ran = len(executions(acme.folder, "cautious"))
    assert answer(acme, entry["id"], acme.token, "rejected", value="without").status == 200
    let(acme, run)
    assert asked.reply().text == f"echo:\n{run}\n\ncautious was left out.\n\nheld:\nlet go"
    assert len(executions(acme.folder, "cautious")) == ran


def test_a_payment_that_one_asks_for_is_paid_once(acme: Organisation, run: str) -> None:
    asked = Asked(acme, run, "sale", run, acme.token)
    assert asked.reply().code == "payment_required"
    assert answer(acme, question(acme, run)["id"], acme.token, "accepted").status == 200
    done = asked.again()
    assert done.text == f"shop:\nsold: accepted\n\necho:\n{run}"
    assert done.json["usage"]["cost"] == "0.02"


@pytest.mark.parametrize("point", [*ASKING, "answer.done", "resolve.used"])
def test_a_kill_while_one_asks_loses_neither_question_nor_answer(
    acme: Organisation, run: str, point: str
) -> None:
    """The call is made again: nobody who has answered is called again, nothing is asked twice."""
    before = len(executions(acme.folder, "echo"))
    acme.kill()
    end_leases(acme)
    acme.start(env={"CRASH_AT": point})
    asked = Asked(acme, run, "panel", run, acme.token)
    with contextlib.suppress(OSError):
        if point in {"answer.done", "resolve.used"}:
            answer(acme, question(acme, run)["id"], acme.token, "accepted")
        elif point == "question.withheld":
            question(acme, run)
            let(acme, run)
    until(lambda: acme.process is not None and acme.process.poll() is not None)
    asked.left()
    acme.ended()
    end_leases(acme)
    acme.start()
    answered = questions(acme, run, "all")
    is_answered = any(entry["status"] == "resolved" for entry in answered)
    assert is_answered == (point in {"answer.done", "resolve.used"})
    asked = Asked(acme, run, "panel", run, acme.token)
    if not is_answered:
        entry = question(acme, run)
        assert answer(acme, entry["id"], acme.token, "accepted").status == 200
    let(acme, run)
    assert asked.again().text == BESIDE.format(run)
    asked.left()
    assert len(questions(acme, run, "all")) == 1
    assert len(executions(acme.folder, "echo")) == before + 1
