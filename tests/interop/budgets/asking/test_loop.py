"""The named budgets of a loop whose agent asks: its turns and tools, given by who pays."""

import json
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from carnet.testing.wait import until
from tests.engine.process import EngineProcess, tool_call
from tests.interop.budgets.test_named import ENGINE, TOOLS, calls
from tests.support.http import Reply, request
from tests.support.model import Answer, Model, streamed
from tests.support.organisation import Organisation, shared_with_others

CONFIG = """
[agents.asks]
kind = "engine"
budgets = {{tool_calls = 2, turns = 2}}
on_budget = "ask"

[agents.counts]
kind = "engine"
budgets = {{tool_calls = 2}}

[models.small]
url = "{url}/v1"
retries = 0
"""


class Scene:
    """A gateway with an agent that asks, and the model behind it."""

    def __init__(self, home: Organisation, model: Model, run: str) -> None:
        self.home, self.model, self.run = home, model, run
        (home.folder / "used.txt").write_text("")

    def used(self) -> list[str]:
        return sorted((self.home.folder / "used.txt").read_text().split())

    def replies(self, *answers: Answer) -> None:
        left = list(answers)
        self.model.asked.clear()
        self.model.reply = lambda _: left.pop(0)

    def ask(self, agent: str = "asks") -> Reply:
        headers = [("x-tangle-runid", self.run), ("x-tangle-turnid", "t")]
        return self.home.chat("Hi", agent, headers=headers, token=self.home.token)

    def asked(self) -> dict[str, dict[str, object] | None]:
        found = self.home.get("/approvals").json["approvals"]
        return {one["id"]: one.get("budget") for one in found if one["run"] == self.run}

    def next(self, *before: str) -> tuple[str, dict[str, object] | None]:
        """What is asked for now, that was not before."""
        until(lambda: any(name not in before for name in self.asked()))
        ((name, budget),) = [one for one in self.asked().items() if one[0] not in before]
        return name, budget

    def answer(self, name: str, **decision: object) -> int:
        fields = [
            ("authorization", f"Bearer {self.home.token}"),
            ("content-type", "application/json"),
        ]
        body = json.dumps({"outcome": "accepted"} | decision).encode()
        return request("POST", f"{self.home.url}/approvals/{name}", fields, body).status


@pytest.fixture(scope="module", params=["inprocess", "http"])
def home(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[tuple[Organisation, Model]]:
    with Model().serving() as model, shared_with_others(), ExitStack() as until_ended:
        gateway = Organisation(tmp_path_factory.mktemp("loop"), "acme.example")
        gateway.configure(CONFIG.format(url=model.url) + ENGINE + 'ask_before = ["dawdle"]\n')
        (gateway.folder / "tools.py").write_text(TOOLS)
        if request.param == "http":
            engine = EngineProcess(gateway)
            gateway.configure(f'listen = "{engine.url}"')
            engine.start()
            until_ended.callback(engine.close)
        gateway.start()
        yield gateway, model
        assert gateway.stop() == 0


def test_tools_beyond_the_budget_are_used_when_who_pays_gives_them(
    home: tuple[Organisation, Model],
) -> None:
    scene = Scene(*home, "run-tools")
    answers = [calls("ping", "work", "ping"), streamed("Done.")]
    scene.model.asked.clear()
    scene.model.reply = lambda _: answers.pop(0)
    assert scene.ask().code == "approval_required"
    assert scene.used() == ["ping", "work"]
    ((name, budget),) = scene.asked().items()
    assert budget == {"part": "tool_calls", "observed": 3, "limit": 2, "more": 2}
    assert scene.answer(name, value=0) == 400
    assert scene.answer(name, value=1) == 200
    until(lambda: scene.ask().status == 200)
    assert scene.ask().text == "Done."
    assert scene.used() == ["ping", "ping", "work"]
    assert len(scene.model.asked) == 2


def test_a_model_is_asked_again_when_who_pays_gives_turns_and_refused_when_not(
    home: tuple[Organisation, Model],
) -> None:
    for run, outcome in (("run-turns", "accepted"), ("run-no-turns", "rejected")):
        scene = Scene(*home, run)
        answers = [tool_call("ping", '{"n":1}'), tool_call("work", '{"n":1}'), streamed("Done.")]
        scene.model.asked.clear()
        scene.model.reply = lambda _, left=answers: left.pop(0)  # type: ignore[misc]
        assert scene.ask().code == "approval_required"
        ((name, budget),) = scene.asked().items()
        assert budget is not None
        assert (budget["part"], budget["limit"]) == ("turns", 2)
        assert scene.answer(name, outcome=outcome) == 200
        expected = (200, None) if outcome == "accepted" else (402, "budget_exceeded")
        until(lambda: scene.ask().status == expected[0])  # noqa: B023  it is looked at now
        assert len(scene.model.asked) == (3 if outcome == "accepted" else 2)
        assert scene.used() == ["ping", "work"]


def test_a_call_that_was_held_up_is_used_once_however_often_more_is_given(
    home: tuple[Organisation, Model],
) -> None:
    scene = Scene(*home, "run-again")
    scene.replies(calls("ping", "work", "ping", "work"), streamed("Done."))
    assert scene.ask().code == "approval_required"
    first, budget = scene.next()
    assert budget == {"part": "tool_calls", "observed": 3, "limit": 2, "more": 2}
    assert scene.answer(first, value=1) == 200
    second, budget = scene.next(first)
    assert budget == {"part": "tool_calls", "observed": 4, "limit": 3, "more": 3}
    assert scene.used() == ["ping", "ping", "work"]
    assert scene.answer(second) == 200
    until(lambda: scene.ask().status == 200)
    assert scene.used() == ["ping", "ping", "work", "work"]
    assert len(scene.model.asked) == 2


def test_more_of_a_budget_is_no_approval_of_the_tool_that_it_is_for(
    home: tuple[Organisation, Model],
) -> None:
    scene = Scene(*home, "run-approve")
    scene.replies(calls("ping", "work", "dawdle"), streamed("Done."))
    assert scene.ask().code == "approval_required"
    more, budget = scene.next()
    assert budget is not None
    assert scene.answer(more) == 200
    approval, budget = scene.next(more)
    assert budget is None
    assert scene.used() == ["ping", "work"]
    assert scene.answer(approval) == 200
    until(lambda: scene.ask().status == 200)
    assert scene.used() == ["dawdle", "ping", "work"]
    assert len(scene.model.asked) == 2


def test_what_was_counted_before_an_approval_counts_after_it(
    home: tuple[Organisation, Model],
) -> None:
    scene = Scene(*home, "run-counts")
    scene.replies(calls("ping", "dawdle"), tool_call("work", '{"n":1}'), streamed("Done."))
    assert scene.ask("counts").code == "approval_required"
    approval, _ = scene.next()
    assert scene.answer(approval) == 200
    until(lambda: scene.ask("counts").status == 402)
    error = scene.ask("counts").json["error"]
    facts = [error[name] for name in ("budget", "part", "observed", "limit")]
    assert facts == ["agent", "tool_calls", 2, 2]
    assert scene.used() == ["dawdle", "ping"]
