"""How many calls of one caller may wait for an answer: the next one fails and holds nothing."""

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from http.client import HTTPException
from typing import Any

import pytest

from carnet.testing.wait import until
from tests.faults.stores import end_leases, rows, served_on
from tests.selection import STORES
from tests.support.http import Reply, chat_body, request
from tests.support.organisation import Organisation

ASKING = '''
import asyncio

import carnet


async def echo(visit: carnet.Visit) -> str:
    """Say it again."""
    return visit.text


async def shop(visit: carnet.Visit) -> str:
    """Sell something."""
    answer = await visit.interrupt(payment="0.02", message="Two cents")
    return answer.outcome


async def front(visit: carnet.Visit) -> str:
    """Ask the shop."""
    return await visit.peer("shop").ask(visit.text)


async def dear(visit: carnet.Visit):
    """Fail if it is declined."""
    yield carnet.Interrupt(kind="approval", message="May I?")
    yield "dear"


async def greedy(visit: carnet.Visit) -> str:
    """Ask the shop, and swallow that it asks."""
    try:
        await visit.peer("shop").ask(visit.text)
    except BaseException:
        pass
    return "went on without"
'''
NAMES = ("shop", "front", "greedy")
CONFIG = "[limits]\nwaiting_per_caller = 2\n" + "".join(
    f'[agents.{name}]\nkind = "python"\ntarget = "agents:{name}"\nprice = "0.01"\n'
    for name in NAMES
)
CONFIG += '[agents.dear]\nkind = "python"\ntarget = "agents:dear"\nprice = "0.03"\n'

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


def ask(
    acme: Organisation,
    token: str,
    run: str,
    agent: str = "shop",
    more_headers: Sequence[tuple[str, str]] = (),
) -> Reply:
    ids = [("x-tangle-runid", run), ("x-tangle-turnid", "t1")]
    return acme.chat("x", agent, headers=[*ids, *more_headers], token=token)


def answer(acme: Organisation, token: str, name: str, outcome: str) -> Reply:
    fields = [("authorization", f"Bearer {token}"), ("content-type", "application/json")]
    body = b'{"outcome": "%b"}' % outcome.encode()
    return request("POST", f"{acme.url}/approvals/{name}", fields, body)


def reserved(acme: Organisation, run: str) -> list[tuple[Any, ...]]:
    """What the turns of a run hold."""
    held = "SELECT t.reserve, t.holds FROM turn t JOIN run r ON r.n = t.run WHERE r.id = ?"
    return [row for row in rows(acme, held, run) if row[0] or row[1]]


@pytest.mark.parametrize("agent", ["shop", "front"])
def test_a_call_beyond_the_bound_fails_plainly_and_holds_nothing(
    acme: Organisation, alice: str, agent: str
) -> None:
    runs = [f"bound-{next(numbers)}" for _ in range(4)]
    replies = [ask(acme, alice, run, agent) for run in runs]
    assert [reply.status for reply in replies] == [402, 402, 429, 429]
    assert {reply.code for reply in replies[2:]} == {"too_many_waiting"}
    assert replies[2].headers["x-should-retry"] == "false"
    assert all(reserved(acme, run) for run in runs[:2])
    until(lambda: [reserved(acme, run) for run in runs[2:]], lambda held: held == [[], []])
    assert len(acme.get("/approvals", token=alice).json["approvals"]) == 2


def test_another_caller_waits_as_if_nobody_else_did(acme: Organisation, alice: str) -> None:
    replies = [ask(acme, alice, f"full-{next(numbers)}") for _ in range(3)]
    assert replies[-1].code == "too_many_waiting"
    bob = acme.new_token(f"bob-{next(numbers)}", "--limit", "10")
    assert ask(acme, bob, f"free-{next(numbers)}").status == 402


def test_the_end_of_a_call_that_was_answered_makes_room_for_the_same_request(
    acme: Organisation, alice: str
) -> None:
    runs = [f"room-{next(numbers)}" for _ in range(3)]
    assert [ask(acme, alice, run).status for run in runs] == [402, 402, 429]
    (_, first) = acme.get("/approvals", token=alice).json["approvals"]
    assert answer(acme, alice, first["id"], "rejected").status == 200
    until(lambda: ask(acme, alice, runs[2]).status, lambda status: status == 402)
    assert ask(acme, alice, f"room-{next(numbers)}").code == "too_many_waiting"


def test_what_an_agent_leaves_waiting_that_goes_on_without_it_is_ended(
    acme: Organisation, alice: str
) -> None:
    """Else who calls it often would have any number of turns wait."""
    run = f"left-{next(numbers)}"
    assert ask(acme, alice, run, "greedy").code == "definition_changed"
    states = "SELECT t.agent, t.state FROM turn t JOIN run r ON r.n = t.run WHERE r.id = ?"
    ended = {("greedy", "failed"), ("shop", "failed")}
    until(lambda: set(rows(acme, states, run)), lambda found: found == ended)
    assert reserved(acme, run) == []


def test_what_was_agreed_to_is_paid_once_after_a_kill_or_the_turn_does_not_run(
    acme: Organisation,
) -> None:
    """F47: its reservation went with its worker; whoever runs it again reserves it anew."""
    thrifty = acme.new_token(f"thrifty-{next(numbers)}", "--limit", "0.04")
    first, second = (f"killed-{next(numbers)}" for _ in range(2))
    waits = ask(acme, thrifty, first)
    state = waits.json["error"]["interrupt"]["state"]
    acme.kill()
    end_leases(acme)
    acme.start(env={"CRASH_AT": "t3.begin"})
    brought = [("carnet-resolution", f"{state};outcome=accepted")]
    with contextlib.suppress(OSError, HTTPException):
        ask(acme, thrifty, first, more_headers=brought)
    acme.kill()
    end_leases(acme)
    acme.start()
    assert ask(acme, thrifty, second, "dear").status == 403  # it holds 0.03 of the 0.04
    refused = until(lambda: ask(acme, thrifty, first), lambda reply: reply.status != 409)
    assert (refused.status, refused.code) == (402, "spending_limit_reached")
    (other,) = acme.get("/approvals", token=thrifty).json["approvals"]
    assert answer(acme, thrifty, other["id"], "rejected").status == 200
    done = until(lambda: ask(acme, thrifty, first), lambda reply: reply.status == 200)
    assert (done.text, done.json["usage"]["cost"]) == ("accepted", "0.03")
    used = "SELECT spent, reserved, unpaid FROM purse WHERE name LIKE 'token:thrifty-%'"
    until(lambda: rows(acme, used), lambda found: found == [(30_000, 0, 0)])
    assert acme.json("ledger", "verify")["ok"]


def test_the_page_of_a_run_says_what_it_waits_for_and_who_answers_how(
    acme: Organisation, alice: str
) -> None:
    run = f"shown-{next(numbers)}"
    waits = ask(acme, alice, run, "front")
    asked = waits.json["error"]["interrupt"]
    page = acme.get(f"/runs/{run}", token=alice)
    (top,) = page.json["turns"]
    (question,), (child,) = top["waits"], top["children"]
    assert (question["id"], question["kind"], question["amount"]) == (
        asked["id"],
        "payment",
        "0.02",
    )
    assert question["chain"] == "front > shop"
    assert question["answered_by"] == top["actor"]
    command = f"carnet inbox approve {asked['id']}"
    assert question["answer"] == command
    assert [each["answer"] for each in child["waits"]] == [None]
    explained = acme.carnet("explain", run).stdout
    shown = acme.carnet("run", "show", run).stdout
    for text in (shown, explained):
        assert (command in text, "Two cents" in text, top["actor"] in text) == (True, True, True)
    assert asked["state"] not in page.body.decode() + shown + explained
    answered = answer(acme, alice, asked["id"], "rejected")
    assert answered.status == 200
    until(lambda: ask(acme, alice, run, "front"), lambda reply: reply.status == 200)
    over = acme.get(f"/runs/{run}", token=alice)
    assert b'"waits"' not in over.body
    (top,) = over.json["turns"]
    (given,) = top["answers"]
    assert (given["outcome"], given["resolver"]) == ("rejected", top["actor"])
    assert f"rejected  payment  0.02 credits  Two cents  asked by {given['chain']}" in (
        acme.carnet("run", "show", run).stdout
    )


@pytest.mark.parametrize("agent", ["shop", "front"])
def test_a_run_that_is_cancelled_while_it_waits_ends_and_gives_back_what_it_held(
    acme: Organisation, alice: str, agent: str
) -> None:
    run = f"cancelled-{next(numbers)}"
    state = ask(acme, alice, run, agent).json["error"]["interrupt"]["state"]
    assert reserved(acme, run)
    (question,) = acme.get("/approvals", token=alice).json["approvals"]
    mallory = acme.new_token(f"mallory-{next(numbers)}", "--scope", "run:cancel")
    path = f"{acme.url}/runs/{run}/cancel"
    assert request("POST", path, [("authorization", f"Bearer {mallory}")]).status == 404
    cancelled = request("POST", path, [("authorization", f"Bearer {alice}")])
    assert (cancelled.status, cancelled.json["cancelled"] > 0) == (200, True)
    assert reserved(acme, run) == []
    states = "SELECT DISTINCT t.state, t.code FROM turn t JOIN run r ON r.n = t.run WHERE r.id = ?"
    assert rows(acme, states, run) == [("failed", "cancelled")]
    late = answer(acme, alice, question["id"], "accepted")
    assert (late.status, late.code) == (410, "interrupt_expired")
    brought = [("carnet-resolution", f"{state};outcome=accepted")]
    assert ask(acme, alice, run, agent, more_headers=brought).code == "policy_state_invalid"
    assert acme.get("/approvals", token=alice).json["approvals"] == []
    shown = acme.get(f"/approvals/{question['id']}", token=alice).json
    assert shown["status"] == "cancelled"


def test_the_bound_holds_for_tasks_too(acme: Organisation, alice: str) -> None:
    fields = [("authorization", f"Bearer {alice}"), ("content-type", "application/json")]
    body = chat_body("x", "shop")
    begun = [request("POST", f"{acme.url}/tasks", fields, body).json for _ in range(3)]
    names = [task["taskId"] for task in begun]

    def waiting_and_over() -> tuple[int, list[str]]:
        pages = [acme.get(f"/tasks/{name}", token=alice).json for name in names]
        over = [page["error"]["code"] for page in pages if page.get("error")]
        return len([page for page in pages if page.get("waits")]), over

    until(waiting_and_over, lambda found: found == (2, ["too_many_waiting"]))
