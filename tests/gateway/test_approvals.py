"""What agents ask for at a real gateway, on each store: listed, answered once, and gone on with."""

import asyncio
import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from carnet.testing.wait import until
from tests.faults.stores import served_on
from tests.selection import STORES
from tests.support.http import Reply, request
from tests.support.organisation import Organisation

ASKING = '''
import asyncio
from pathlib import Path

import carnet

RAN = Path(__file__).with_name("ran.txt")


def note(word: str) -> str:
    with RAN.open("a") as ran:
        ran.write(word + "\\n")
    return word


async def echo(visit: carnet.Visit) -> str:
    """Say it again."""
    note(f"echo {visit.text}")
    return visit.text


async def shop(visit: carnet.Visit) -> str:
    """Sell something, once."""
    counted = await visit.step("count", note, f"step {visit.text}")
    answer = await visit.interrupt(payment="0.02", message="Two cents")
    return f"{counted}: {answer.outcome}"


async def asks(visit: carnet.Visit) -> str:
    """Ask for two things, one after the other."""
    first = await visit.interrupt(approval="May I?", arguments={"to": "bob"})
    size = await visit.interrupt(input="Which size?", options=["S", "M"])
    return f"{first.outcome} {first.value} {size.value}"


async def front(visit: carnet.Visit) -> str:
    """Ask two others at once; one of them asks for money."""
    said = await asyncio.gather(visit.peer("echo").ask(visit.text), visit.peer("shop").ask("x"))
    return " | ".join(said)


async def grouped(visit: carnet.Visit) -> str:
    """The same in a group of tasks."""
    async with asyncio.TaskGroup() as group:
        one = group.create_task(visit.peer("shop").ask("x"))
        two = group.create_task(visit.peer("echo").ask(visit.text))
    return f"{one.result()} | {two.result()}"


async def careless(visit: carnet.Visit) -> str:
    """Catch everything and try again, as many do."""
    for _ in range(3):
        try:
            await visit.interrupt(approval="May I?")
        except Exception:
            continue
        return "went on"
    return "gave up"


async def says(visit: carnet.Visit) -> str:
    """Ask for leave to do what was said."""
    await visit.interrupt(approval=f"May I {visit.text}?", arguments={"do": visit.text})
    return f"may {visit.text}"


async def greedy(visit: carnet.Visit) -> str:
    """Swallow what unwinds it."""
    try:
        await visit.interrupt(approval="May I?")
    except BaseException:
        pass
    return "went on without"


async def brief(visit: carnet.Visit) -> str:
    """Ask for what is soon too late."""
    return (await visit.interrupt(consent="Now?", expires=1)).outcome


async def yields(visit: carnet.Visit):
    """Speak, and ask in between."""
    yield "before "
    yield carnet.Interrupt(kind="approval", message="May I?")
    yield "after"
'''
NAMES = ("shop", "asks", "front", "grouped", "careless", "says", "greedy", "brief", "yields")
CONFIG = "".join(f'[agents.{name}]\nkind = "python"\ntarget = "agents:{name}"\n' for name in NAMES)

numbers = itertools.count()


@pytest.fixture(scope="module", params=STORES)
def acme(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Organisation]:
    with served_on(request, tmp_path_factory.mktemp("acme"), CONFIG, agents=ASKING) as gateway:
        yield gateway


@pytest.fixture
def run() -> str:
    return f"run-{next(numbers)}"


def ask(acme: Organisation, run: str, agent: str, text: str = "x", **more: Any) -> Reply:
    ids = [("x-tangle-runid", run), ("x-tangle-turnid", "t1")]
    return acme.chat(text, agent, headers=ids, **more)


def asked(
    acme: Organisation, run: str, status: str = "open", token: str | None = None
) -> list[dict[str, Any]]:
    page = acme.get(f"/approvals?status={status}", token=token).json
    return [entry for entry in page["approvals"] if entry["run"] == run]


def answer(
    acme: Organisation, name: str, outcome: str = "accepted", token: str | None = None, **more: Any
) -> Reply:
    fields = [
        ("authorization", f"Bearer {token or acme.token}"),
        ("content-type", "application/json"),
    ]
    body = msgspec.json.encode({"outcome": outcome, **more})
    return request("POST", f"{acme.url}/approvals/{name}", fields, body)


def ended(acme: Organisation, run: str, agent: str, text: str = "x") -> Reply:
    """The answer of a turn, once it waits no more."""
    return until(lambda: ask(acme, run, agent, text), lambda reply: reply.status == 200)


def ran(acme: Organisation, word: str) -> int:
    return (acme.folder / "ran.txt").read_text().splitlines().count(word)


def test_a_call_that_asks_for_money_goes_on_when_it_is_agreed_to(
    acme: Organisation, run: str
) -> None:
    first = ask(acme, run, "shop", run)
    assert (first.status, first.code) == (402, "payment_required")
    (question,) = asked(acme, run)
    assert (question["kind"], question["amount"], question["currency"]) == (
        "payment",
        "0.02",
        "credits",
    )
    assert question["asked_by"] == "@shop@acme.example"
    assert "state" not in question
    reply = answer(acme, question["id"])
    assert (reply.status, reply.json["status"], reply.json["outcome"]) == (
        200,
        "resolved",
        "accepted",
    )
    done = ended(acme, run, "shop", run)
    assert done.text == f"step {run}: accepted"
    assert done.json["usage"]["cost"] == "0.02"
    assert ran(acme, f"step {run}") == 1
    assert asked(acme, run) == []


def test_what_is_declined_costs_nothing_and_is_told_to_the_agent(
    acme: Organisation, run: str
) -> None:
    ask(acme, run, "shop", run)
    (question,) = asked(acme, run)
    more = answer(acme, question["id"], value="with thanks")
    assert (more.status, more.code) == (400, "invalid_request")
    assert answer(acme, question["id"], "rejected").status == 200
    done = ended(acme, run, "shop", run)
    assert (done.text, done.json["usage"]["cost"]) == (f"step {run}: rejected", "0")


def test_the_same_answer_again_changes_nothing_and_another_is_refused(
    acme: Organisation, run: str
) -> None:
    ask(acme, run, "shop", run)
    (question,) = asked(acme, run)
    first = answer(acme, question["id"])
    again = answer(acme, question["id"])
    assert (again.status, again.json) == (200, first.json)
    other = answer(acme, question["id"], "rejected")
    assert (other.status, other.code) == (409, "answered_otherwise")
    assert ended(acme, run, "shop", run).text.endswith("accepted")
    assert ran(acme, f"step {run}") == 1


def test_two_who_answer_at_once_do_not_both_prevail(acme: Organisation, run: str) -> None:
    ask(acme, run, "shop", run)
    (question,) = asked(acme, run)

    async def race() -> list[Reply]:
        outcomes = ("accepted", "rejected") * 4
        tries = [asyncio.to_thread(answer, acme, question["id"], word) for word in outcomes]
        return await asyncio.gather(*tries)

    replies = asyncio.run(race())
    assert sorted(reply.status for reply in replies) == [200] * 4 + [409] * 4
    assert ended(acme, run, "shop", run).status == 200


def test_one_question_after_another_is_answered_with_its_value(
    acme: Organisation, run: str
) -> None:
    assert ask(acme, run, "asks").status == 403
    (first,) = asked(acme, run)
    assert (first["kind"], first["arguments"]) == ("approval", {"to": "bob"})
    for value in ("eve", ["eve"], 7):
        refused = answer(acme, first["id"], value=value)
        assert (refused.status, refused.code) == (400, "invalid_request"), value
    assert answer(acme, first["id"], value={"to": "eve"}).status == 200
    (second,) = until(lambda: asked(acme, run), bool)
    assert second["options"] == ["S", "M"]
    wrong = answer(acme, second["id"], value="XL")
    assert (wrong.status, wrong.code) == (400, "invalid_request")
    assert answer(acme, second["id"], value="M").status == 200
    assert ended(acme, run, "asks").text == "accepted {'to': 'eve'} M"


@pytest.mark.parametrize("agent", ["front", "grouped"])
def test_what_a_callee_asks_for_reaches_the_origin_while_its_sibling_has_ended(
    acme: Organisation, run: str, agent: str
) -> None:
    first = ask(acme, run, agent, run)
    assert (first.status, first.code) == (402, "payment_required")
    (question,) = asked(acme, run)
    assert (question["agent"], question["asked_by"]) == (agent, "@shop@acme.example")
    if agent == "front":
        assert ran(acme, f"echo {run}") == 1
    assert answer(acme, question["id"]).status == 200
    done = ended(acme, run, agent, run)
    assert sorted(done.text.split(" | ")) == [run, "step x: accepted"]
    assert done.json["usage"]["cost"] == "0.02"


def test_nobody_takes_a_question_for_a_failure(acme: Organisation, run: str) -> None:
    assert ask(acme, run, "careless").status == 403
    (question,) = asked(acme, run)
    answer(acme, question["id"])
    assert ended(acme, run, "careless").text == "went on"


def test_an_agent_that_goes_on_after_it_asked_fails(acme: Organisation, run: str) -> None:
    reply = ask(acme, run, "greedy")
    assert (reply.status, reply.code) == (409, "definition_changed")
    assert asked(acme, run) == []


def test_a_question_that_is_too_late_ends_its_turn(acme: Organisation, run: str) -> None:
    ask(acme, run, "brief")
    (question,) = asked(acme, run)
    late = until(lambda: ask(acme, run, "brief"), lambda reply: reply.status == 410)
    assert late.code == "interrupt_expired"
    reply = answer(acme, question["id"])
    assert (reply.status, reply.code) == (410, "interrupt_expired")


def test_a_stream_that_asks_is_told_again_from_its_beginning(acme: Organisation, run: str) -> None:
    ask(acme, run, "yields")
    (question,) = asked(acme, run)
    answer(acme, question["id"])
    assert ended(acme, run, "yields").text == "before after"


def test_a_stream_that_asks_and_is_declined_fails(acme: Organisation, run: str) -> None:
    ask(acme, run, "yields")
    (question,) = asked(acme, run)
    answer(acme, question["id"], "rejected")
    reply = until(lambda: ask(acme, run, "yields"), lambda reply: reply.code == "declined")
    assert reply.status == 403


def test_what_somebody_else_is_asked_is_not_there(acme: Organisation, run: str) -> None:
    mallory = acme.new_token(f"mallory-{run}")
    ask(acme, run, "shop", run)
    (question,) = asked(acme, run)
    assert asked(acme, run, token=mallory) == []
    unknown = acme.get("/approvals/int_nobody", token=mallory)
    theirs = acme.get(f"/approvals/{question['id']}", token=mallory)
    assert (theirs.status, theirs.body) == (unknown.status, unknown.body) == (404, unknown.body)
    assert answer(acme, question["id"], token=mallory).code == "interrupt_not_found"
    assert len(asked(acme, run)) == 1


def test_somebody_who_may_approve_answers_for_another_but_does_not_spend_for_them(
    acme: Organisation, run: str
) -> None:
    scopes = ("--scope", "approve", "--scope", "run:read")
    clerk = acme.new_token(f"clerk-{run}", *scopes)
    ask(acme, run, "shop", run)
    (money,) = asked(acme, run, token=clerk)
    refused = answer(acme, money["id"], token=clerk)
    assert (refused.status, refused.code) == (403, "answer_forbidden")
    ask(acme, f"{run}b", "careless")
    (leave,) = asked(acme, f"{run}b", token=clerk)
    given = answer(acme, leave["id"], token=clerk)
    assert (given.status, given.json["resolver"]) == (200, f"token:clerk-{run}")


@pytest.mark.parametrize("agent", ["shop", "front"])
def test_who_has_less_left_than_is_asked_for_cannot_agree(
    acme: Organisation, run: str, agent: str
) -> None:
    """Whichever turn would pay it: the one that is answered, or one below it."""
    poor = acme.new_token(f"poor-{run}", "--limit", "0.01")
    ask(acme, run, agent, run, token=poor)
    (question,) = asked(acme, run, token=poor)
    reply = answer(acme, question["id"], token=poor)
    assert (reply.status, reply.code) == (402, "spending_limit_reached")
    assert (reply.json["error"]["needed"], reply.json["error"]["left"]) == ("0.02", "0.01")
    assert len(asked(acme, run, token=poor)) == 1
    assert answer(acme, question["id"], "rejected", token=poor).status == 200


@pytest.mark.parametrize(
    "point", ["answer.begin", "t1.before_commit", "resolve.used", "answer.done", "task.leased"]
)
def test_an_answer_survives_a_kill_and_is_gone_on_with(
    acme: Organisation, run: str, point: str
) -> None:
    ask(acme, run, "front", run)
    (question,) = asked(acme, run)
    acme.kill()
    acme.start(env={"CRASH_AT": point})
    with contextlib.suppress(OSError):  # it may be told before the end
        answer(acme, question["id"])
    until(lambda: acme.process is not None and acme.process.poll() is not None)
    acme.ended()
    acme.start()
    again = until(lambda: answer(acme, question["id"]), lambda reply: reply.status == 200)
    assert again.json["outcome"] == "accepted"
    done = ended(acme, run, "front", run)
    assert (done.text, done.json["usage"]["cost"]) == (f"{run} | step x: accepted", "0.02")


def test_the_command_line_lists_shows_and_answers(acme: Organisation) -> None:
    waits = acme.try_carnet("call", "asks", "hello", env={"CARNET_TOKEN": acme.token})
    assert waits.returncode == 1
    listed = acme.json("inbox", "list")["approvals"]
    name = listed[0]["id"]
    assert acme.json("inbox", "show", name)["status"] == "open"
    approved = acme.json("inbox", "approve", name, "--json", '{"to": "eve"}')
    assert (approved["status"], approved["value"]) == ("resolved", {"to": "eve"})
    refused = acme.try_carnet("inbox", "deny", name)
    assert (refused.returncode, "answered before" in refused.stderr) == (1, True)


def test_what_is_remembered_is_not_asked_again_until_it_is_taken_back(
    acme: Organisation, run: str
) -> None:
    alice = acme.new_token(f"alice-{run}")
    ask(acme, run, "careless", token=alice)
    (question,) = asked(acme, run, token=alice)
    assert answer(acme, question["id"], token=alice, remember={}).status == 200
    again = ask(acme, f"{run}-again", "careless", token=alice)
    assert (again.status, again.text) == (200, "went on")
    (entry,) = asked(acme, f"{run}-again", "all", token=alice)
    (rule,) = acme.get("/rules", token=alice).json["rules"]
    assert (entry["resolver"], rule["chain"]) == (f"rule:{rule['rule']}", "careless")
    other = acme.new_token(f"other-{run}")
    assert ask(acme, f"{run}-other", "careless", token=other).status == 403
    assert rule["message"] == "May I?"
    unknown = end_rule(acme, rule["rule"], other)
    assert (unknown.status, unknown.code) == (404, "rule_not_found")
    assert end_rule(acme, rule["rule"], alice).status == 200
    assert ask(acme, f"{run}-once-more", "careless", token=alice).status == 403


def test_a_rule_pays_as_far_as_its_ceiling_goes(acme: Organisation, run: str) -> None:
    alice = acme.new_token(f"alice-{run}")
    ask(acme, run, "front", run, token=alice)
    (question,) = asked(acme, run, token=alice)
    without = answer(acme, question["id"], token=alice, remember={})
    assert (without.status, without.code) == (400, "invalid_request")
    assert answer(acme, question["id"], token=alice, remember={"ceiling": "0.03"}).status == 200
    paid = ask(acme, f"{run}-2", "front", run, token=alice)
    assert (paid.status, paid.json["usage"]["cost"]) == (200, "0.02")
    assert ask(acme, f"{run}-3", "front", run, token=alice).status == 402
    assert ask(acme, f"{run}-4", "shop", run, token=alice).status == 402  # on another way
    (rule,) = acme.get("/rules", token=alice).json["rules"]
    assert (rule["used"], rule["ceiling"], rule["chain"]) == ("0.02", "0.03", "front > shop")


def end_rule(acme: Organisation, number: int, token: str) -> Reply:
    return request("POST", f"{acme.url}/rules/{number}/end", [("authorization", f"Bearer {token}")])
