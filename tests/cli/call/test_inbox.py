"""`carnet inbox` as people type it: what it shows them, and what it says when they are wrong."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.support.organisation import Organisation

ASKING = '''
import carnet


async def echo(visit: carnet.Visit) -> str:
    """Say it again."""
    return visit.text


async def clerk(visit: carnet.Visit) -> str:
    """Ask for one of two."""
    answer = await visit.interrupt(input="Which colour?", options=["red", "light blue"])
    return str(answer.value)


async def counter(visit: carnet.Visit) -> str:
    """Ask for a number."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    answer = await visit.interrupt(input="How many?", schema=schema)
    return str(answer.value)


async def shop(visit: carnet.Visit) -> str:
    """Sell something."""
    return (await visit.interrupt(payment="0.02", message="Two cents")).outcome


async def guard(visit: carnet.Visit) -> str:
    """Ask for leave."""
    return (await visit.interrupt(approval=f"May I {visit.text}?")).outcome
'''
NAMES = ("clerk", "counter", "shop", "guard")
CONFIG = "".join(f'[agents.{name}]\nkind = "python"\ntarget = "agents:{name}"\n' for name in NAMES)

numbers = itertools.count()


class Alice:
    """Somebody with a token in a file."""

    def __init__(self, acme: Organisation, name: str) -> None:
        self.acme, self.name = acme, name
        acme.carnet("people", "add", name)
        self.token = acme.new_token(f"{name}s", "--person", name, "--limit", "10")
        self.file = f"@{name}.token"
        Path(acme.folder / f"{name}.token").write_text(self.token)

    def types(self, *words: str) -> CompletedProcess[str]:
        return self.acme.try_carnet(*words, "--as", self.file)

    def is_asked(self, agent: str, text: str = "x") -> dict[str, Any]:
        """What an agent asks her."""
        run = f"run-{next(numbers)}"
        self.acme.chat(text, agent, token=self.token, headers=[("x-tangle-runid", run)])
        page = self.acme.get("/approvals", token=self.token).json
        return next(entry for entry in page["approvals"] if entry["run"] == run)


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    gateway = Organisation(tmp_path_factory.mktemp("acme"), "acme.example")
    gateway.configure(CONFIG, agents=ASKING)
    gateway.start()
    yield gateway
    gateway.stop()


@pytest.fixture(scope="module")
def alice(acme: Organisation) -> Alice:
    return Alice(acme, "alice")


def test_a_question_is_shown_with_the_commands_that_answer_it(alice: Alice) -> None:
    asked = alice.is_asked("clerk")
    shown = alice.types("inbox", "show", asked["id"]).stdout
    for option in ("red", "'light blue'"):
        assert f"inbox approve {asked['id']} --value {option} --as {alice.file}" in shown
    assert f"inbox deny {asked['id']} --as {alice.file}" in shown
    run = alice.acme.carnet("run", "show", asked["run"]).stdout
    assert f"inbox show {asked['id']}" in run
    number = alice.is_asked("counter")
    assert """--json '{"n":1}'""" in alice.types("inbox", "show", number["id"]).stdout


def test_a_wrong_answer_is_told_with_the_options_and_the_question_stays(alice: Alice) -> None:
    asked = alice.is_asked("clerk")
    for words in ((), ("--value", "green")):
        wrong = alice.types("inbox", "approve", asked["id"], *words)
        assert wrong.returncode == 2
        assert "one of: red, light blue" in wrong.stderr
        assert "--value red" in wrong.stderr
    right = alice.types("inbox", "approve", asked["id"], "--value", "light blue")
    assert (right.returncode, right.stdout.startswith("Approved.")) == (0, True)


def test_the_beginning_of_an_id_is_enough_where_it_is_one(alice: Alice) -> None:
    asked = alice.is_asked("guard", "enter")
    begun = asked["id"][:-3]
    assert "May I enter?" in alice.types("inbox", "show", begun).stdout
    assert "May I enter?" in alice.types("inbox", "show", begun.removeprefix("int_")).stdout
    alice.is_asked("guard", "leave")
    several = alice.types("inbox", "show", "int_")
    assert (several.returncode, "begin with 'int_'" in several.stderr) == (2, True)
    unknown = alice.types("inbox", "show", "int_zzz")
    assert (unknown.returncode, "There is no such question." in unknown.stderr) == (1, True)
    assert alice.types("inbox", "deny", begun).stdout.startswith("Denied.")


def test_a_rule_names_its_question_its_ceiling_and_itself(acme: Organisation) -> None:
    rita = Alice(acme, "rita")
    leave, money = rita.is_asked("guard", "sing"), rita.is_asked("shop")
    assert rita.types("inbox", "approve", leave["id"], "--remember").returncode == 0
    without = rita.types("inbox", "approve", money["id"], "--remember")
    assert (without.returncode, "--up-to AMOUNT" in without.stderr) == (2, True)
    words = ("--remember", "--up-to", "1")
    assert rita.types("inbox", "approve", money["id"], *words).returncode == 0
    payment, approval = rita.types("inbox", "rules").stdout.splitlines()[1:]
    assert approval.endswith("May I sing?")
    assert payment.split()[1:3] == ["payment", "1"]
    assert payment.endswith("any payment")
    unknown = rita.types("inbox", "forget", "99")
    assert (unknown.returncode, "There is no such rule." in unknown.stderr) == (1, True)
    assert rita.types("inbox", "forget", payment.split()[0]).returncode == 0


def test_an_operator_is_told_whose_each_question_is(acme: Organisation, alice: Alice) -> None:
    asked = alice.is_asked("guard", "pass")
    title, *rows = acme.carnet("inbox", "list", "--all").stdout.splitlines()
    assert title.split()[:2] == ["ID", "WHOSE"]
    assert [alice.name] == [row.split()[1] for row in rows if row.startswith(asked["id"])]
    assert "WHOSE" not in alice.types("inbox").stdout


def test_a_question_whose_call_was_cancelled_is_told_as_that(
    acme: Organisation, alice: Alice
) -> None:
    asked = alice.is_asked("guard", "wait")
    acme.carnet("run", "cancel", asked["run"])
    assert "status: cancelled" in alice.types("inbox", "show", asked["id"]).stdout


def test_who_lets_somebody_agree_that_may_not_approve_is_told(
    acme: Organisation, alice: Alice
) -> None:
    acme.carnet("people", "add", "bert")
    allowed = alice.types("inbox", "allow", "bert", "--up-to", "5")
    assert allowed.returncode == 0
    assert "bert may not approve yet" in allowed.stdout
    assert "people roles bert ROLE --permission approve" in allowed.stdout
    herself = alice.types("inbox", "allow", alice.name, "--up-to", "5")
    assert (herself.returncode, "is you" in herself.stderr) == (2, True)


def test_a_call_that_waits_says_how_its_caller_answers(alice: Alice) -> None:
    waits = alice.types("call", "clerk", "hello")
    assert waits.returncode == 1
    assert f"--value red --as {alice.file}" in waits.stderr
    assert "or another of: light blue" in waits.stderr
    secret = alice.acme.try_carnet("call", "guard", "hello", "--as", alice.token)
    assert "--as TOKEN" in secret.stderr
    assert alice.token not in secret.stderr
