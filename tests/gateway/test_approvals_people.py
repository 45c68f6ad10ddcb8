"""Whose a question is: a person's, whichever token she shows; of money whose who pays it."""

import itertools
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from carnet.testing.wait import until
from tests.faults.stores import served_on
from tests.gateway.test_approvals import ASKING, CONFIG, answer, ask, asked
from tests.selection import STORES
from tests.support.http import Reply, request
from tests.support.organisation import Organisation

FORWARDED = "x-tangle-forwarded-authorization"

numbers = itertools.count()


@pytest.fixture(scope="module", params=STORES)
def acme(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Organisation]:
    with served_on(request, tmp_path_factory.mktemp("acme"), CONFIG, agents=ASKING) as gateway:
        yield gateway


class Person:
    """Somebody with two tokens."""

    def __init__(self, acme: Organisation, *scopes: str) -> None:
        self.acme, self.name = acme, f"person-{next(numbers)}"
        granted = [word for scope in scopes for word in ("--permission", scope)]
        acme.carnet("people", "add", self.name, *granted)
        tokens = ("laptop", "phone")
        named = [f"{self.name}-{what}" for what in tokens]
        chosen = [word for scope in scopes for word in ("--scope", scope)]
        chosen += ["--scope", "run:read"] if scopes else []
        made = [acme.new_token(name, "--person", self.name, *chosen) for name in named]
        self.laptop, self.phone = made
        until(lambda: {acme.get("/runs", token=token).status for token in made} == {200})

    def questions(self, run: str, status: str = "open") -> list[dict[str, Any]]:
        return asked(self.acme, run, status, token=self.phone)

    def rules(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.acme.get("/rules", token=self.phone).json["rules"]
        return found

    def name_approver(self, person: str, ceiling: str) -> Reply:
        fields = [("authorization", f"Bearer {self.phone}"), ("content-type", "application/json")]
        body = msgspec.json.encode({"person": person, "ceiling": ceiling})
        return request("POST", f"{self.acme.url}/rules", fields, body)


@pytest.fixture
def run() -> str:
    return f"run-{next(numbers)}"


@pytest.fixture
def alice(acme: Organisation) -> Person:
    return Person(acme)


@pytest.fixture
def bob(acme: Organisation) -> Person:
    return Person(acme, "approve")


def test_a_question_is_a_persons_whichever_token_of_hers_she_shows(
    acme: Organisation, alice: Person, run: str
) -> None:
    ask(acme, run, "shop", run, token=alice.laptop)
    (question,) = alice.questions(run)
    assert (question["owner"], question["kind"]) == (alice.name, "payment")
    other = Person(acme)
    assert other.questions(run) == []
    assert answer(acme, question["id"], token=other.phone).code == "interrupt_not_found"
    given = answer(acme, question["id"], token=alice.phone)
    assert (given.status, given.json["resolver"]) == (200, alice.name)
    done = until(
        lambda: ask(acme, run, "shop", run, token=alice.laptop), lambda reply: reply.status == 200
    )
    assert done.text == f"step {run}: accepted"


def test_what_a_person_remembers_holds_for_all_her_tokens_and_ends_with_her(
    acme: Organisation, alice: Person, run: str
) -> None:
    ask(acme, run, "careless", token=alice.laptop)
    (question,) = alice.questions(run)
    assert answer(acme, question["id"], token=alice.phone, remember={}).status == 200
    assert ask(acme, f"{run}-again", "careless", token=alice.laptop).text == "went on"
    ended = acme.json("people", "end", alice.name)
    assert "rule" in {thing["kind"] for thing in ended["things"]}


def test_a_token_that_becomes_hers_brings_what_it_was_asked_and_remembers(
    acme: Organisation, alice: Person, run: str
) -> None:
    name = f"service-{run}"
    service = acme.new_token(name)
    ask(acme, run, "careless", token=service)
    (question,) = asked(acme, run, token=service)
    assert answer(acme, question["id"], token=service, remember={}).status == 200
    ask(acme, f"{run}-shop", "shop", run, token=service)
    assert (alice.questions(f"{run}-shop"), alice.rules()) == ([], [])
    acme.carnet("people", "link", alice.name, "--token", name)
    (money,) = alice.questions(f"{run}-shop")
    assert (money["owner"], len(alice.rules())) == (alice.name, 1)
    until(lambda: ask(acme, f"again-{next(numbers)}", "careless", token=service).status == 200)
    assert answer(acme, money["id"], token=alice.phone).status == 200


def test_a_payment_is_in_the_inbox_of_who_pays_and_not_of_who_forwards(
    acme: Organisation, alice: Person, run: str
) -> None:
    front = acme.new_token(f"front-{run}", "--may-forward-authorization")
    ids = [("x-tangle-runid", run), ("x-tangle-turnid", "t1")]
    fields = [*ids, (FORWARDED, f"Bearer {alice.laptop}")]
    waits = acme.chat(run, "shop", token=front, headers=fields)
    assert (waits.status, waits.code) == (402, "payment_required")
    assert asked(acme, run, token=front) == []
    (question,) = alice.questions(run)
    assert question["owner"] == alice.name
    assert answer(acme, question["id"], token=front).status == 404
    assert answer(acme, question["id"], token=alice.phone).status == 200
    done = until(
        lambda: acme.chat(run, "shop", token=front, headers=fields),
        lambda reply: reply.status == 200,
    )
    assert done.text == f"step {run}: accepted"
    paid = acme.get(f"/ledger?run={run}", token=alice.phone).json["entries"]
    assert [entry["amount"] for entry in paid] == ["0.02"]


def test_what_is_no_payment_stays_with_who_called(
    acme: Organisation, alice: Person, run: str
) -> None:
    front = acme.new_token(f"front-{run}", "--may-forward-authorization")
    ids = [("x-tangle-runid", run), ("x-tangle-turnid", "t1")]
    acme.chat("x", "careless", token=front, headers=[*ids, (FORWARDED, f"Bearer {alice.laptop}")])
    assert alice.questions(run) == []
    (question,) = asked(acme, run, token=front)
    assert question["owner"] == f"token:front-{run}"


def test_whom_a_payer_named_agrees_as_far_as_the_ceiling_goes(
    acme: Organisation, alice: Person, bob: Person, run: str
) -> None:
    ask(acme, run, "shop", run, token=alice.laptop)
    (first,) = bob.questions(run)
    refused = answer(acme, first["id"], token=bob.phone)
    assert (refused.status, refused.code) == (403, "answer_forbidden")
    words = ("--up-to", "0.03", "--as", alice.phone)
    assert acme.json("inbox", "allow", bob.name, *words)["rules"][0]["kind"] == "approver"
    future = answer(acme, first["id"], token=bob.phone, remember={"ceiling": "1"})
    assert (future.status, future.code) == (403, "answer_forbidden")
    given = answer(acme, first["id"], token=bob.phone)
    assert (given.status, given.json["resolver"]) == (200, bob.name)
    again = answer(acme, first["id"], token=bob.phone)
    assert (again.status, again.json) == (200, given.json)
    assert answer(acme, first["id"], "rejected", token=bob.phone).status == 409
    (rule,) = alice.rules()
    assert (rule["chain"], rule["ceiling"], rule["used"]) == (
        f"@{bob.name}@acme.example",
        "0.03",
        "0.02",
    )
    ask(acme, f"{run}-more", "shop", run, token=alice.laptop)
    (second,) = bob.questions(f"{run}-more")
    beyond = answer(acme, second["id"], token=bob.phone)
    assert (beyond.status, beyond.code) == (403, "answer_forbidden")
    assert answer(acme, second["id"], token=alice.phone).status == 200


def test_whom_a_payer_named_agrees_to_nobody_elses_payments(
    acme: Organisation, alice: Person, bob: Person, run: str
) -> None:
    assert alice.name_approver(bob.name, "5").status == 200
    other = Person(acme)
    ask(acme, run, "shop", run, token=other.laptop)
    (question,) = bob.questions(run)
    assert answer(acme, question["id"], token=bob.phone).code == "answer_forbidden"


def test_who_names_somebody_that_may_not_approve_is_told_and_nobody_names_herself(
    acme: Organisation, alice: Person, bob: Person
) -> None:
    other = Person(acme)
    warned = alice.name_approver(other.name, "5")
    assert warned.status == 200
    assert "'approve'" in warned.json["note"]
    assert "note" not in alice.name_approver(bob.name, "5").json
    herself = alice.name_approver(alice.name, "5")
    assert (herself.status, herself.code) == (400, "invalid_request")
    assert len(alice.rules()) == 2


def test_who_answers_by_the_call_itself_is_told_as_the_person_she_is(
    acme: Organisation, alice: Person, run: str
) -> None:
    waits = ask(acme, run, "shop", run, token=alice.laptop)
    state = waits.json["error"]["interrupt"]["state"]
    ids = [("x-tangle-runid", run), ("x-tangle-turnid", "t1")]
    fields = [*ids, ("carnet-resolution", f"{state};outcome=accepted")]
    done = acme.chat(run, "shop", token=alice.laptop, headers=fields)
    assert done.text == f"step {run}: accepted"
    (question,) = alice.questions(run, "all")
    assert question["resolver"] == alice.name
    (turn,) = acme.get(f"/runs/{run}", token=alice.laptop).json["turns"]
    (agreed,) = turn["answers"]
    assert (agreed["resolver"], agreed["outcome"], agreed["amount"]) == (
        alice.name,
        "accepted",
        "0.02",
    )
    assert state not in acme.get(f"/runs/{run}", token=alice.laptop).body.decode()
    for words in (("run", "show", run), ("explain", run)):
        assert f"by {alice.name} at " in acme.carnet(*words).stdout


def test_a_run_that_waits_names_the_person_who_answers(
    acme: Organisation, alice: Person, run: str
) -> None:
    ask(acme, run, "shop", run, token=alice.laptop)
    (turn,) = acme.get(f"/runs/{run}", token=alice.laptop).json["turns"]
    assert [each["answered_by"] for each in turn["waits"]] == [alice.name]


def test_people_name_people_who_are_known_and_machines_nobody(
    acme: Organisation, alice: Person, bob: Person
) -> None:
    unknown = alice.name_approver("nobody-of-that-name", "5")
    assert (unknown.status, unknown.code) == (404, "person_not_found")
    assert alice.name_approver(bob.name, "-5").status == 400
    service = acme.new_token(f"machine-{next(numbers)}")
    fields = [("authorization", f"Bearer {service}"), ("content-type", "application/json")]
    for name in (bob.name, "nobody-of-that-name"):
        body = msgspec.json.encode({"person": name, "ceiling": "5"})
        reply = request("POST", f"{acme.url}/rules", fields, body)
        assert (reply.status, reply.code) == (403, "answer_forbidden")


def test_who_forwards_does_not_agree_in_the_place_of_who_pays(
    acme: Organisation, alice: Person, run: str
) -> None:
    front = acme.new_token(f"front-{run}", "--may-forward-authorization")
    ids = [("x-tangle-runid", run), ("x-tangle-turnid", "t1")]
    fields = [*ids, (FORWARDED, f"Bearer {alice.laptop}")]
    state = acme.chat(run, "shop", token=front, headers=fields).json["error"]["interrupt"]["state"]
    agrees = [*fields, ("carnet-resolution", f"{state};outcome=accepted")]
    refused = acme.chat(run, "shop", token=front, headers=agrees)
    assert (refused.status, refused.code) == (403, "answer_forbidden")
    assert len(alice.questions(run)) == 1
    assert acme.get(f"/ledger?run={run}", token=alice.phone).json["entries"] == []


def test_a_token_that_may_not_pay_agrees_to_no_payment(acme: Organisation, run: str) -> None:
    poor = acme.new_token(f"poor-{run}", "--scope", "call:shop", "--scope", "run:read")
    waits = ask(acme, run, "shop", run, token=poor)
    assert waits.status == 402
    (question,) = asked(acme, run, token=poor)
    refused = answer(acme, question["id"], token=poor)
    assert (refused.status, refused.json["error"]["permission"]) == (403, "pay")
    state = waits.json["error"]["interrupt"]["state"]
    fields = [("x-tangle-runid", run), ("x-tangle-turnid", "t1")]
    fields += [("carnet-resolution", f"{state};outcome=accepted")]
    wired = acme.chat(run, "shop", token=poor, headers=fields)
    assert (wired.status, wired.json["error"]["permission"]) == (403, "pay")
    assert answer(acme, question["id"], "rejected", token=poor).status == 200


def test_a_token_that_only_reads_answers_nothing(
    acme: Organisation, alice: Person, run: str
) -> None:
    reads = acme.new_token(f"reads-{run}", "--person", alice.name, "--scope", "run:read")
    for agent in ("shop", "careless"):
        ask(acme, f"{run}-{agent}", agent, run, token=alice.laptop)
        (question,) = asked(acme, f"{run}-{agent}", token=reads)
        refused = answer(acme, question["id"], token=reads)
        assert (refused.status, refused.json["error"]["permission"]) == (403, f"call:{agent}")


def test_what_is_remembered_is_that_question_and_once(
    acme: Organisation, alice: Person, run: str
) -> None:
    ask(acme, run, "shop", run, token=alice.laptop)
    (question,) = alice.questions(run)
    for _ in range(3):
        reply = answer(acme, question["id"], token=alice.phone, remember={"ceiling": "1"})
        assert reply.status == 200
    assert [(rule["kind"], rule["ceiling"]) for rule in alice.rules()] == [("payment", "1")]
    ask(acme, f"{run}-says", "says", "read", token=alice.laptop)
    (leave,) = alice.questions(f"{run}-says")
    assert answer(acme, leave["id"], token=alice.phone, remember={}).status == 200
    assert ask(acme, f"{run}-same", "says", "read", token=alice.laptop).text == "may read"
    assert ask(acme, f"{run}-other", "says", "delete", token=alice.laptop).status == 403
