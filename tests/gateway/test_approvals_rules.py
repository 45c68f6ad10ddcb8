"""What was answered for the future: every question of a call, however the call is made."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from carnet.testing.wait import until
from tests.faults.stores import served_on
from tests.gateway.test_approvals import answer, ask, asked
from tests.selection import STORES
from tests.support.http import chat_body, request
from tests.support.organisation import Organisation

ASKING = '''
import carnet


async def echo(visit: carnet.Visit) -> str:
    """Say it again."""
    return visit.text


async def thrice(visit: carnet.Visit) -> str:
    """Ask for leave, for money and for leave again."""
    await visit.interrupt(approval="May I begin?")
    await visit.interrupt(payment="0.02", message="Two cents")
    last = await visit.interrupt(approval="May I end?")
    return f"{visit.text}: {last.outcome}"


async def yields(visit: carnet.Visit):
    """Speak, and ask in between, twice."""
    yield "one "
    yield carnet.Interrupt(kind="approval", message="May I say two?")
    yield "two "
    yield carnet.Interrupt(kind="approval", message="May I say three?")
    yield "three"


async def fickle(visit: carnet.Visit):
    """Say something else each time."""
    fickle.times = getattr(fickle, "times", 0) + 1
    yield f"time {fickle.times}, "
    yield carnet.Interrupt(kind="approval", message="May I?")
    yield "then this"


async def endless(visit: carnet.Visit) -> str:
    """Ask the same for ever."""
    while True:
        await visit.interrupt(approval="May I go on?")
'''
NAMES = ("thrice", "yields", "fickle", "endless")
CONFIG = "".join(f'[agents.{name}]\nkind = "python"\ntarget = "agents:{name}"\n' for name in NAMES)

numbers = itertools.count()


@pytest.fixture(scope="module", params=STORES)
def acme(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Organisation]:
    with served_on(request, tmp_path_factory.mktemp("acme"), CONFIG, agents=ASKING) as gateway:
        yield gateway


@pytest.fixture
def alice(acme: Organisation) -> str:
    return acme.new_token(f"alice-{next(numbers)}", "--limit", "10")


def remember(acme: Organisation, alice: str, agent: str, most: int) -> None:
    """Have an agent asked once, and agree to all it asks for from then on."""
    run = f"first-{next(numbers)}"
    ask(acme, run, agent, token=alice)
    answered: set[str] = set()
    while len(answered) < most:
        (question,) = until(lambda: asked(acme, run, token=alice), bool)
        rule = {"ceiling": "1"} if question["kind"] == "payment" else {}
        assert answer(acme, question["id"], token=alice, remember=rule).status == 200
        answered.add(question["id"])
    until(lambda: not asked(acme, run, token=alice))


def streamed(acme: Organisation, alice: str, run: str, agent: str) -> tuple[str, list[str]]:
    """The words of a stream, and the codes of what went wrong in it."""
    fields = [
        *[("authorization", f"Bearer {alice}"), ("content-type", "application/json")],
        *[("x-tangle-runid", run), ("x-tangle-turnid", "t1")],
    ]
    body = chat_body("x", agent, stream=True)
    reply = request("POST", f"{acme.url}/v1/chat/completions", fields, body)
    assert reply.status == 200, reply
    lines = [line[6:] for line in reply.body.decode().split("\n") if line.startswith("data: ")]
    frames: list[dict[str, Any]] = [json.loads(line) for line in lines if line != "[DONE]"]
    choices = [choice for frame in frames for choice in frame.get("choices", ())]
    words = "".join(choice["delta"].get("content") or "" for choice in choices)
    return words, [frame["error"]["code"] for frame in frames if "error" in frame]


def test_rules_answer_one_question_of_a_call_after_another(acme: Organisation, alice: str) -> None:
    remember(acme, alice, "thrice", 3)
    run = f"again-{next(numbers)}"
    reply = ask(acme, run, "thrice", run, token=alice)
    assert (reply.status, reply.text) == (200, f"{run}: accepted")
    assert reply.json["usage"]["cost"] == "0.02"
    given = asked(acme, run, "all", token=alice)
    assert [entry["kind"] for entry in given] == ["approval", "payment", "approval"]
    assert all(entry["resolver"].startswith("rule:") for entry in given)
    again = ask(acme, run, "thrice", run, token=alice)
    assert (again.status, again.json["choices"]) == (200, reply.json["choices"])


def test_rules_answer_what_a_task_asks_for(acme: Organisation, alice: str) -> None:
    remember(acme, alice, "thrice", 3)
    fields = [("authorization", f"Bearer {alice}"), ("content-type", "application/json")]
    begun = request("POST", f"{acme.url}/tasks", fields, chat_body("later", "thrice")).json
    page = until(
        lambda: acme.get(f"/tasks/{begun['taskId']}", token=alice).json,
        lambda page: page["status"] in {"done", "failed"},
    )
    assert page["status"] == "done", page
    assert "later: accepted" in json.dumps(page)
    assert acme.get("/approvals", token=alice).json["approvals"] == []


def test_rules_answer_what_a_stream_asks_for_and_nothing_is_said_twice(
    acme: Organisation, alice: str
) -> None:
    remember(acme, alice, "yields", 2)
    run = f"stream-{next(numbers)}"
    assert streamed(acme, alice, run, "yields") == ("one two three", [])
    assert streamed(acme, alice, run, "yields") == ("one two three", [])


def test_a_stream_that_says_something_else_when_it_runs_on_is_unknown_until_it_is_asked_again(
    acme: Organisation, alice: str
) -> None:
    remember(acme, alice, "fickle", 1)
    run = f"fickle-{next(numbers)}"
    words, codes = streamed(acme, alice, run, "fickle")
    assert (words.startswith("time "), words.endswith(", "), codes) == (
        True,
        True,
        ["outcome_unknown"],
    )
    again, problems = streamed(acme, alice, run, "fickle")
    assert (again.endswith(", then this"), problems) == (True, [])


def test_rules_answer_no_more_than_one_turn_may_ask(acme: Organisation, alice: str) -> None:
    run = f"first-{next(numbers)}"
    ask(acme, run, "endless", token=alice)
    (question,) = asked(acme, run, token=alice)
    assert answer(acme, question["id"], token=alice, remember={}).status == 200
    other = f"endless-{next(numbers)}"
    reply = ask(acme, other, "endless", token=alice)
    assert (reply.status, reply.code) == (429, "too_many_questions")
    assert len(acme.get("/approvals?status=all&limit=200", token=alice).json["approvals"]) <= 200
    assert asked(acme, other, token=alice) == []
