"""The named budgets of a loop whose agent asks: its turns and tools, given by who pays."""

import json
from collections.abc import Iterator

import pytest

from carnet.testing.wait import until
from tests.engine.process import tool_call
from tests.interop.budgets.test_named import ENGINE, TOOLS, calls
from tests.support.http import Reply, request
from tests.support.model import Model, streamed
from tests.support.organisation import Organisation, shared_with_others

CONFIG = """
[agents.asks]
kind = "engine"
budgets = {{tool_calls = 2, turns = 2}}
on_budget = "ask"

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

    def ask(self, token: str = "") -> Reply:
        headers = [("x-tangle-runid", self.run), ("x-tangle-turnid", "t")]
        return self.home.chat("Hi", "asks", headers=headers, token=token or self.home.token)

    def asked(self) -> dict[str, dict[str, object]]:
        found = self.home.get("/approvals").json["approvals"]
        return {one["id"]: one["budget"] for one in found if one["run"] == self.run}

    def answer(self, name: str, **decision: object) -> int:
        fields = [
            ("authorization", f"Bearer {self.home.token}"),
            ("content-type", "application/json"),
        ]
        body = json.dumps({"outcome": "accepted"} | decision).encode()
        return request("POST", f"{self.home.url}/approvals/{name}", fields, body).status


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Organisation, Model]]:
    with Model().serving() as model, shared_with_others():
        gateway = Organisation(tmp_path_factory.mktemp("loop"), "acme.example")
        gateway.configure(CONFIG.format(url=model.url) + ENGINE)
        (gateway.folder / "tools.py").write_text(TOOLS)
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
        assert (budget["part"], budget["limit"]) == ("turns", 2)
        assert scene.answer(name, outcome=outcome) == 200
        expected = (200, None) if outcome == "accepted" else (402, "budget_exceeded")
        until(lambda: scene.ask().status == expected[0])  # noqa: B023  it is looked at now
        assert len(scene.model.asked) == (3 if outcome == "accepted" else 2)
        assert scene.used() == ["ping", "work"]
