"""A value that comes with an answer is one that was asked for, whoever asks, however it comes."""

import itertools
import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from carnet.runtime.turns.execution import MOST_WAITS
from carnet.testing.wait import until
from tests.faults.stores import rows
from tests.interop.conftest import Databases
from tests.interop.interrupts.scene import resolution, same_turn, state_of
from tests.support.federation import introduce, organisation
from tests.support.http import Reply, request
from tests.support.model import Answer, Asked, Model, answered
from tests.support.organisation import Organisation
from tests.support.served import AGENTS, executions

CLERKS = """

async def clerk(visit: carnet.Visit) -> str:
    note(visit)
    shape = {"type": "string", "maxLength": 4}
    answer = await visit.interrupt(input="Which one?", options=["red", "blue"], schema=shape)
    return f"{answer.outcome} {answer.value}"


async def former(visit: carnet.Visit) -> str:
    note(visit)
    shape = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    answer = await visit.interrupt(input="How many?", schema=shape)
    return f"{answer.value['n']}"


async def above(visit: carnet.Visit) -> str:
    note(visit)
    return await visit.peer("former").ask(visit.text)


async def brief(visit: carnet.Visit) -> str:
    note(visit)
    return (await visit.interrupt(payment="0.02", expires=3600)).outcome


async def wordy(visit: carnet.Visit) -> str:
    note(visit)
    return str(len((await visit.interrupt(input="What?")).value))


async def beyond(visit: carnet.Visit) -> str:
    note(visit)
    return await visit.peer("@wordy@globex.example").ask(visit.text)


async def endless(visit: carnet.Visit) -> str:
    note(visit)
    for _ in range(1000):
        await visit.interrupt(approval="And again?")
    return "at last"
"""
NAMES = ("clerk", "former", "above", "brief", "wordy", "beyond", "endless")
CONFIG = "".join(
    f'[agents.{name}]\nkind = "python"\ntarget = "agents:{name}"\ntrust = "public"\n'
    + 'price = "0.01"\n' * (name == "brief")
    for name in NAMES
)
VENDOR = '\n[agents.vendor]\nkind = "tangle"\nurl = "{url}/v1"\nretries = 2\n'


FREE = {"prompt_tokens": 1, "completion_tokens": 1, "cost": "0", "currency": "credits"}


class Scene(NamedTuple):
    """Acme calls Globex, and a gateway of another make."""

    acme: Organisation
    globex: Organisation
    vendor: Model

    def ask(self, agent: str, text: str = "hi") -> Reply:
        return self.acme.chat(text, agent)

    def again(self, waits: Reply, agent: str, *brought: tuple[str, str], text: str = "hi") -> Reply:
        return self.acme.chat(text, agent, headers=[*same_turn(waits), *brought])


@pytest.fixture(scope="module")
def scene(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    place = tmp_path_factory.mktemp("values")
    acme, globex = (
        organisation(place / name, f"{name}.example", database()) for name in ("acme", "globex")
    )
    introduce(acme, globex)
    with Model().serving() as vendor:
        acme.configure(CONFIG + VENDOR.format(url=vendor.url), agents=AGENTS + CLERKS)
        globex.configure(CONFIG, agents=AGENTS + CLERKS)
        for gateway in (acme, globex):
            gateway.start()
        yield Scene(acme, globex, vendor)
        assert (acme.stop(), globex.stop()) == (0, 0)


def with_value(waits: Reply, value: object) -> tuple[str, str]:
    return resolution(state_of(waits), value=b64encode(json.dumps(value).encode()).decode())


@pytest.mark.parametrize("agent", ["clerk", "@clerk@globex.example"])
def test_a_value_that_was_not_asked_for_is_refused_and_the_question_stays_open(
    scene: Scene, agent: str
) -> None:
    """A97: here, and where another organisation asks."""
    waits = scene.ask(agent)
    assert (waits.status, waits.code) == (403, "input_required")
    for wrong in ("green", 7, {"red": 1}, ["red"], "red "):
        refused = scene.again(waits, agent, with_value(waits, wrong))
        assert (refused.status, refused.code) == (400, "invalid_request"), wrong
    without = scene.again(waits, agent, resolution(state_of(waits)))
    assert (without.status, without.code) == (400, "invalid_request")
    assert scene.again(waits, agent).body == waits.body
    done = scene.again(waits, agent, with_value(waits, "blue"))
    assert (done.status, done.text) == (200, "accepted blue")


def test_who_declines_sends_what_it_likes_beside(scene: Scene) -> None:
    waits = scene.ask("clerk")
    value = b64encode(b'"not now"').decode()
    done = scene.again(waits, "clerk", resolution(state_of(waits), "rejected", value))
    assert (done.status, done.text) == (200, "rejected not now")


def test_a_child_is_given_what_its_parent_was_answered(scene: Scene) -> None:
    waits = scene.ask("above")
    refused = scene.again(waits, "above", with_value(waits, {"n": "many"}))
    assert (refused.status, refused.code) == (400, "invalid_request")
    done = scene.again(waits, "above", with_value(waits, {"n": 3}))
    assert (done.status, done.text) == (200, "3")


HELD = "SELECT COUNT(*) FROM purse WHERE reserved <> 0 OR (name LIKE 'waits/%' AND spent <> 0)"
OF_AGENT = "SELECT state, code FROM turn WHERE agent = 'brief' ORDER BY n"


def test_what_waits_elsewhere_ends_when_its_time_is_over(scene: Scene) -> None:
    """Whether or not anybody tells the other side: it holds nothing for longer than it said."""
    waits = scene.ask("@brief@globex.example")
    assert waits.status == 402
    assert rows(scene.globex, OF_AGENT) == [("waiting", None)]
    lasts = "SELECT (waits_until - created) / 60000000 FROM turn WHERE agent = 'brief'"
    assert rows(scene.globex, lasts)[0][0] <= 60  # minutes, as its agent said
    rows(scene.globex, "UPDATE turn SET waits_until = 1 WHERE agent = 'brief' RETURNING n")
    over = ("failed", "interrupt_expired")
    until(lambda: rows(scene.globex, OF_AGENT), lambda found: found == [over])
    assert rows(scene.globex, HELD) == [(0,)]


def test_what_waits_elsewhere_for_a_call_that_was_cancelled_ends_with_it(scene: Scene) -> None:
    """The other side is asked to cancel it, and holds nothing any more."""
    waits = scene.ask("@brief@globex.example")
    assert waits.status == 402
    run = waits.headers["x-tangle-runid"]
    by = [("authorization", f"Bearer {scene.acme.token}")]
    cancelled = request("POST", f"{scene.acme.url}/runs/{run}/cancel", by).json
    (hop,) = cancelled["hops"]
    assert (cancelled["cancelled"], hop["outcome"]) == (1, "cancelled")
    assert [(far["at"], far["outcome"]) for far in hop["below"]] == [
        ("globex.example", "cancelled")
    ]
    assert rows(scene.globex, OF_AGENT)[-1] == ("failed", "cancelled")
    assert rows(scene.globex, HELD) == [(0,)]
    of_peer = "SELECT state, code FROM turn WHERE agent = '@brief@globex.example' ORDER BY n"
    assert rows(scene.acme, of_peer)[-1] == ("failed", "cancelled")


def policy(**asked: Any) -> Answer:
    members = {"kind": "input", "message": "Which?", "id": "p1", "state": "s3cret", **asked}
    return Answer(403, json.dumps({"error": {"message": "no", "interrupt": members}}).encode())


def test_a_schema_without_end_keeps_nobody_waiting(scene: Scene) -> None:
    """A97: references that lead twice to the next would be followed 2 ** 60 times."""
    twice = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)}
    schema = {"$ref": "#/$defs/d0", "$defs": twice | {"d60": {"type": "string"}}}

    def reply(asked: Asked) -> Answer:
        brought = asked.headers.get("carnet-resolution")
        return answered(f"got {brought}") if brought else policy(schema=schema)

    scene.vendor.reply = reply
    waits = scene.ask("vendor", "bomb")
    done = scene.again(waits, "vendor", with_value(waits, "x"), text="bomb")
    assert done.text == "got s3cret;outcome=accepted;value=:Ingi:"
    waits = scene.ask("vendor", "bomb by a person")
    (question,) = [
        each
        for each in scene.acme.get("/approvals").json["approvals"]
        if each["run"] == waits.headers["x-tangle-runid"]
    ]
    assert question["schema"] == schema
    assert decide(scene.acme, question["id"], scene.acme.token, value="x").status == 200
    until(
        lambda: scene.again(waits, "vendor", text="bomb by a person"),
        lambda reply: reply.status == 200,
    )
    assert scene.acme.held() == []


def test_options_that_nobody_could_read_or_write_are_not_offered(scene: Scene) -> None:
    odd = ["red", "\x1b[2Jred", "b\u202eeul", "two\nlines", "x" * 1001, "\x00", 7]
    scene.vendor.reply = lambda _: policy(options=odd, url="javascript:alert(1)")
    waits = scene.ask("vendor", "options")
    asked = waits.json["error"]["interrupt"]
    assert (asked["options"], "url" in asked) == (["red"], False)


@pytest.mark.parametrize("members", [{"amount": "5", "currency": "EUR"}, {}])
def test_an_amount_in_another_currency_is_shown_and_not_paid_here(
    scene: Scene, members: dict[str, str]
) -> None:
    has_paid = False

    def reply(_: Asked) -> Answer:
        asks = policy(kind="payment", state="", **members)
        return answered("well", **FREE) if has_paid else asks

    scene.vendor.reply = reply
    name = f"payer-{len(members)}"
    payer = scene.acme.new_token(name, "--limit", "1")
    waits = scene.acme.chat(name, "vendor", token=payer)
    assert waits.status == 402
    (question,) = scene.acme.get("/approvals", token=payer).json["approvals"]
    assert (question["amount"], question["currency"]) == (None, None)
    assert question["other_amount"] == (members or None)
    assert ("note" in question) is bool(members)
    rule = decide(scene.acme, question["id"], payer, remember={"ceiling": "1"})
    assert (rule.status, rule.code) == (400, "invalid_request")
    shown = scene.acme.carnet("inbox", "show", question["id"], "--as", payer).stdout
    assert ("5 EUR (not here)" in shown) is bool(members)
    has_paid = True
    shown = scene.acme.carnet("inbox", "approve", question["id"], "--as", payer).stdout
    assert ("nothing was paid here" in shown) is bool(members)
    done = until(
        lambda: scene.acme.chat(name, "vendor", token=payer, headers=same_turn(waits)),
        lambda reply: reply.status == 200,
    )
    assert (done.text, done.json["usage"]["cost"]) == ("well", "0")
    spent = "SELECT COALESCE(SUM(spent + reserved + unpaid), 0) FROM purse WHERE name = ?"
    assert rows(scene.acme, spent, f"token:{name}") == [(0,)]


def decide(acme: Organisation, name: str, token: str, **more: Any) -> Reply:
    fields = [("authorization", f"Bearer {token}"), ("content-type", "application/json")]
    body = json.dumps({"outcome": "accepted", **more}).encode()
    return request("POST", f"{acme.url}/approvals/{name}", fields, body)


@pytest.mark.parametrize("agent", ["vendor", "@wordy@globex.example", "beyond", "wordy"])
def test_a_value_that_no_header_can_carry_is_refused_when_it_is_given(
    scene: Scene, agent: str
) -> None:
    """The agent here takes it; to one elsewhere it cannot be brought, and the question stays."""
    scene.vendor.reply = lambda asked: (
        answered("got it") if "carnet-resolution" in asked.headers else policy()
    )
    text = f"long for {agent}"
    waits = scene.ask(agent, text)
    (question,) = [
        each
        for each in scene.acme.get("/approvals").json["approvals"]
        if each["run"] == waits.headers["x-tangle-runid"]
    ]
    reply = decide(scene.acme, question["id"], scene.acme.token, value="x" * 15_000)
    if agent != "wordy":
        assert (reply.status, reply.code) == (400, "invalid_request")
        assert scene.again(waits, agent, text=text).body == waits.body
        reply = decide(scene.acme, question["id"], scene.acme.token, value="x" * 8_000)
    assert reply.status == 200
    done = until(lambda: scene.again(waits, agent, text=text), lambda got: got.status == 200)
    assert done.text == (
        "got it" if agent == "vendor" else f"{15_000 if agent == 'wordy' else 8_000}"
    )


def test_an_agent_that_never_stops_asking_is_ended(scene: Scene) -> None:
    """A98: each answer lets it ask for the next thing."""
    first = waits = scene.ask("endless")
    count = 0
    while waits.status == 403:
        count += 1
        waits = scene.again(first, "endless", resolution(state_of(waits)))
    assert (waits.status, waits.code) == (429, "too_many_questions")
    assert count == MOST_WAITS
    assert len(executions(scene.acme.folder, "endless")) == MOST_WAITS + 1
    assert rows(scene.acme, "SELECT holds FROM turn WHERE agent = 'endless'") == [(None,)]


def test_a_gateway_elsewhere_that_asks_the_same_again_and_again_is_not_asked_for_ever(
    scene: Scene,
) -> None:
    """A98: under one name, which is one question, or under a new name each time."""
    names = itertools.count()
    scene.vendor.reply = lambda _: policy(id=f"p{next(names) % 3}", state=f"s{next(names)}")
    first = waits = scene.ask("vendor", "nag")
    count = 0
    while waits.status == 403:
        count += 1
        waits = scene.again(first, "vendor", resolution(state_of(waits)), text="nag")
    assert (waits.code, count) == ("too_many_questions", MOST_WAITS)
