"""Named budgets of a loop: its turns, its tools and its time, by an agent and by a token."""

import itertools
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.engine.process import EngineProcess, tool_call
from tests.support.http import Reply, request
from tests.support.model import Answer, Model, streamed
from tests.support.organisation import Organisation, shared_with_others

TOOLS = """
import time
from pathlib import Path


def note(name):
    with Path("used.txt").open("a") as used:
        used.write(name + "\\n")
    return "noted"


def ping(n: int) -> str:
    "Pings."
    return note("ping")


def work(n: int) -> str:
    "Works."
    return note("work")


def dawdle(n: int) -> str:
    "Takes its time."
    time.sleep(4.1)
    return note("dawdle")
"""
CONFIG = """
[agents.free]
kind = "engine"

[agents.two]
kind = "engine"
budgets = {{tool_calls = 2}}

[agents.pings]
kind = "engine"
budgets = {{tool_calls_ping = 2}}

[agents.once]
kind = "engine"
budgets = {{turns = 1}}

[agents.brief]
kind = "engine"
budgets = {{wall_clock_seconds = 4}}

[models.small]
url = "{url}/v1"
retries = 0
"""
ENGINE = '[engine]\ntools = ["tools:ping", "tools:work", "tools:dawdle"]\n'
SCOPES = ("--scope", "call:*", "--scope", "pay", "--scope", "run:read", "--scope", "tool:*")
names = (f"named-{n}" for n in itertools.count())


class Scene:
    """A gateway with agents that have budgets, and the model behind them."""

    def __init__(self, home: Organisation, model: Model) -> None:
        self.home = home
        self.model = model
        self.used.write_text("")

    @property
    def used(self) -> Path:
        return self.home.folder / "used.txt"

    def replies(self, *answers: Answer) -> None:
        left = list(answers)
        self.model.asked.clear()
        self.model.reply = lambda _: left.pop(0) if len(left) > 1 else left[0]

    def ask(self, agent: str, *options: str) -> Reply:
        token = self.home.new_token(next(names), *SCOPES, *options)
        return self.home.chat("Hi", agent, token=token)


@pytest.fixture(scope="module", params=["inprocess", "http"])
def home(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[tuple[Organisation, Model]]:
    with Model().serving() as model, shared_with_others(), ExitStack() as until_ended:
        gateway = Organisation(tmp_path_factory.mktemp("named"), "acme.example")
        gateway.configure(CONFIG.format(url=model.url) + ENGINE)
        (gateway.folder / "tools.py").write_text(TOOLS)
        if request.param == "http":
            engine = EngineProcess(gateway)
            gateway.configure(f'listen = "{engine.url}"')
            engine.start()
            until_ended.callback(engine.close)
        gateway.start()
        yield gateway, model
        assert gateway.stop() == 0


@pytest.fixture
def scene(home: tuple[Organisation, Model]) -> Scene:
    return Scene(*home)


def calls(*tools: str) -> Answer:
    """One answer of a model that wants these tools used, one after the other."""
    wanted = [
        {
            "index": index,
            "id": f"c{index}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps({"n": index})},
        }
        for index, name in enumerate(tools)
    ]
    chunks = [
        {"choices": [{"index": 0, "delta": {"tool_calls": wanted}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    ]
    text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    return Answer(body=text.encode(), media_type="text/event-stream")


def refused(reply: Reply) -> tuple[object, ...]:
    error = reply.json["error"]
    facts = [error.get(name) for name in ("budget", "part", "observed", "limit")]
    return (reply.status, reply.code, *facts)


def test_of_three_calls_in_one_answer_the_two_are_made_that_a_budget_has(scene: Scene) -> None:
    scene.replies(calls("ping", "work", "ping"), streamed("Never said."))
    reply = scene.ask("two")
    assert refused(reply) == (402, "budget_exceeded", "agent", "tool_calls", 2, 2)
    assert "[agents.NAME] budgets" in reply.json["error"]["hint"]
    assert sorted(scene.used.read_text().split()) == ["ping", "work"]
    assert len(scene.model.asked) == 1


def test_a_budget_that_is_used_to_its_end_and_no_further_ends_nothing(scene: Scene) -> None:
    scene.replies(calls("ping", "work"), streamed("Done."))
    assert scene.ask("two").text == "Done."
    assert scene.ask("free").text == "Done."


def test_a_budget_of_one_tool_leaves_the_others_alone(scene: Scene) -> None:
    scene.replies(calls("ping", "work", "ping", "ping"), streamed("Never said."))
    reply = scene.ask("pings")
    assert refused(reply) == (402, "budget_exceeded", "agent", "tool_calls_ping", 2, 2)
    assert sorted(scene.used.read_text().split()) == ["ping", "ping", "work"]


def test_a_model_is_not_asked_more_often_than_its_turns(scene: Scene) -> None:
    scene.replies(tool_call("ping", '{"n":1}'), streamed("Never said."))
    assert refused(scene.ask("once")) == (402, "budget_exceeded", "agent", "turns", 1, 1)
    assert len(scene.model.asked) == 1


def test_a_model_is_not_asked_again_when_its_time_is_over(scene: Scene) -> None:
    scene.replies(tool_call("dawdle", '{"n":1}'), streamed("Never said."))
    status, code, *facts = refused(scene.ask("brief"))
    assert (status, code, facts[:2]) == (402, "budget_exceeded", ["agent", "wall_clock_seconds"])
    assert len(scene.model.asked) == 1


def test_a_token_has_budgets_of_its_own_beside_those_of_the_agent(scene: Scene) -> None:
    scene.replies(calls("ping", "work"), streamed("Done."))
    reply = scene.ask("two", "--budget", "tool_calls=1")
    assert refused(reply) == (402, "budget_exceeded", "token", "tool_calls", 1, 1)
    assert scene.used.read_text().split() == ["ping"]
    scene.replies(calls("ping", "work"), streamed("Done."))
    wide = scene.ask("two", "--budget", "tool_calls=9", "--budget", "turns=9")
    assert wide.text == "Done."


def test_who_asks_by_agents_api_is_told_that_it_was_a_budget(scene: Scene) -> None:
    scene.replies(tool_call("ping", '{"n":1}'), streamed("Never said."))
    token = scene.home.new_token(next(names), *SCOPES)
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "message/send",
        "params": {"message": {"parts": [{"type": "text", "text": "Hi"}]}},
    }
    fields = [("authorization", f"Bearer {token}"), ("content-type", "application/json")]
    url = f"{scene.home.url}/agents-api/v1/agent/once"
    data = request("POST", url, fields, json.dumps(body).encode()).json["error"]["data"]
    outcome = data["run_outcome"]
    assert (outcome["status"], outcome["completed"]) == ("budget_exceeded", False)


def test_what_is_no_budget_is_refused_with_those_that_there_are(scene: Scene) -> None:
    ended = scene.home.try_carnet("tokens", "create", next(names), "--budget", "steps=3")
    assert ended.returncode != 0
    assert "'steps' is the name of none" in ended.stderr
    assert "turns=N" in ended.stderr
