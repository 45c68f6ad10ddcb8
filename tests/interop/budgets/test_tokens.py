"""The tokens of a run, looked at before each ask of a loop's model: here, and elsewhere."""

import itertools
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from carnet.testing.wait import until
from tests.engine.process import EngineProcess
from tests.faults.stores import rows
from tests.interop.budgets.test_named import ENGINE, TOOLS
from tests.interop.conftest import Databases
from tests.support.federation import organisation
from tests.support.http import Reply, request
from tests.support.model import Answer, Model
from tests.support.organisation import Organisation, shared_with_others

AGENTS = '''
from carnet.errors import BudgetExceeded


async def uses(visit: carnet.Visit) -> str:
    """Use tokens."""
    visit.usage(tokens_out=int(visit.text))
    return visit.text


async def gives(visit: carnet.Visit) -> str:
    """Give a loop a part of its tokens."""
    try:
        return await visit.peer("loop", budget="tokens=500").ask(visit.text)
    except BudgetExceeded as refused:
        return f"{refused.facts['part']} {refused.facts['limit']}"


async def passes(visit: carnet.Visit) -> str:
    """Have a loop answer."""
    return await visit.peer("loop").ask(visit.text)
'''
CONFIG = """
[agents.uses]
kind = "python"
target = "agents:uses"

[agents.gives]
kind = "python"
target = "agents:gives"

[agents.passes]
kind = "python"
target = "agents:passes"

[agents.loop]
kind = "engine"

[agents.willing]
kind = "engine"
on_budget = "ask"

[models.small]
url = "{url}/v1"
retries = 0
"""
EACH = 400  # tokens of one answer of the model
numbers = itertools.count()


def answered(chunks: list[dict[str, Any]], reason: str, tokens: int) -> Answer:
    """A stream of the model, which says how many tokens it took."""
    ended = {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    usage = {"choices": [], "usage": {"prompt_tokens": tokens, "completion_tokens": 0}}
    frames = [*[{"choices": [{"index": 0, "delta": each}]} for each in chunks], ended, usage]
    body = "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames) + "data: [DONE]\n\n"
    return Answer(body=body.encode(), media_type="text/event-stream")


def finished(text: str, tokens: int = EACH) -> Answer:
    return answered([{"content": text}], "stop", tokens)


def wants(tool: str, n: int, **arguments: str) -> Answer:
    function = {"name": tool, "arguments": json.dumps(arguments or {"n": n})}
    call = {"index": 0, "id": f"c{n}", "type": "function", "function": function}
    return answered([{"tool_calls": [call]}], "tool_calls", EACH)


class Scene:
    """A gateway with loops, and their model: it wants `turns` times a tool before it has said."""

    def __init__(self, home: Organisation, model: Model) -> None:
        self.home = home
        self.model = model
        self.run = self.seen = ""

    def begin(self, turns: int) -> None:
        self.run = f"run-tokens-{next(numbers)}"
        (self.home.folder / "used.txt").write_text("")
        left = [*[wants("ping", n) for n in range(turns)], finished("Done.")]
        self.model.asked.clear()
        self.model.reply = lambda _: left.pop(0)

    def used(self) -> int:
        return len((self.home.folder / "used.txt").read_text().split())

    def ask(self, agent: str, budget: str, token: str = "") -> Reply:
        headers = [("x-tangle-runid", self.run), ("x-tangle-turnid", "t")]
        if budget:
            headers.append(("carnet-budget", budget))
        return self.home.chat("Hi", agent, headers=headers, token=token or self.home.token)

    def bounds(self) -> list[Any]:
        """What the model was told to say no more than, each time."""
        return [asked.body.get("max_tokens") for asked in self.model.asked]

    def asked(self) -> tuple[str, dict[str, Any]]:
        """The question of the run, when it is asked, and what it says of the budget."""
        found: list[dict[str, Any]] = []

        def look() -> bool:
            page = self.home.get("/approvals").json["approvals"]
            found[:] = [one for one in page if one["run"] == self.run and one["id"] != self.seen]
            return bool(found)

        until(look)
        self.seen = str(found[0]["id"])
        return self.seen, found[0]["budget"]

    def answer(self, name: str, **decision: Any) -> int:  # noqa: ANN401, RUF100
        fields = [
            ("authorization", f"Bearer {self.home.token}"),
            ("content-type", "application/json"),
        ]
        body = json.dumps({"outcome": "accepted"} | decision).encode()
        return request("POST", f"{self.home.url}/approvals/{name}", fields, body).status


@pytest.fixture(scope="module", params=["inprocess", "http"])
def home(
    database: Databases, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[tuple[Organisation, Model]]:
    with Model().serving() as model, shared_with_others(), ExitStack() as until_ended:
        gateway = organisation(tmp_path_factory.mktemp("tokens"), "acme.example", database())
        code = (gateway.folder / "agents.py").read_text() + AGENTS
        loop = ENGINE.replace('"tools:ping"', '"tools:ping", "@uses@acme.example"')
        gateway.configure(CONFIG.format(url=model.url) + loop, agents=code)
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


def refused(reply: Reply) -> tuple[object, ...]:
    error = reply.json["error"]
    facts = [error.get(name) for name in ("budget", "part", "observed", "limit")]
    return (reply.status, reply.code, *facts)


def test_a_model_is_not_asked_again_when_the_tokens_of_its_call_are_used_up(scene: Scene) -> None:
    scene.begin(9)
    reply = scene.ask("loop", "tokens=1000")
    assert refused(reply) == (402, "budget_exceeded", "call", "tokens", 1201, 1000)
    assert scene.bounds() == [1000, 600, 200]
    assert scene.used() == 3


def test_a_loop_with_tokens_to_spare_is_told_what_is_left_and_ends_as_it_would(
    scene: Scene,
) -> None:
    scene.begin(2)
    assert scene.ask("loop", "tokens=5000").text == "Done."
    assert scene.bounds() == [5000, 4600, 4200]
    scene.begin(2)
    assert scene.ask("loop", "calls=50").text == "Done."
    assert scene.bounds() == [None, None, None]


def test_who_pays_is_asked_for_more_tokens_and_the_loop_goes_on_where_it_stopped(
    scene: Scene,
) -> None:
    scene.begin(4)
    assert scene.ask("loop", "tokens=1000,on=ask").code == "approval_required"
    name, budget = scene.asked()
    assert budget == {"part": "tokens", "observed": 1201, "limit": 1000, "more": 1000}
    assert scene.answer(name, value=201) == 200
    again, budget = scene.asked()
    assert budget == {"part": "tokens", "observed": 1601, "limit": 1201, "more": 1201}
    assert scene.answer(again) == 200
    until(lambda: scene.ask("loop", "tokens=1000,on=ask").status == 200)
    assert scene.ask("loop", "tokens=1000,on=ask").text == "Done."
    assert scene.bounds() == [1000, 600, 200, 1, 802]
    assert scene.used() == 4


def test_an_agent_can_be_configured_to_ask_for_tokens_and_a_no_refuses(scene: Scene) -> None:
    scene.begin(9)
    assert scene.ask("willing", "tokens=500").code == "approval_required"
    name, _ = scene.asked()
    assert scene.answer(name, outcome="rejected") == 200
    until(lambda: scene.ask("willing", "tokens=500").status == 402)
    reply = scene.ask("willing", "tokens=500")
    assert refused(reply) == (402, "budget_exceeded", "call", "tokens", 801, 500)
    assert len(scene.model.asked) == 2


def test_the_tokens_that_an_operator_has_set_for_a_token_bound_a_loop(scene: Scene) -> None:
    name = f"spender-{next(numbers)}"
    token = scene.home.new_token(name, "--scope", "call:*", "--scope", "pay", "--scope", "tool:*")
    scene.home.carnet("budget", "set", f"token:{name}", "--tokens", "1000")
    sql = "SELECT spent_calls FROM budget WHERE tokens = 1000 AND spent_calls > 0 AND name LIKE ?"
    spent = "SELECT spent_tokens FROM budget WHERE name = ?"
    (named,) = [
        key
        for (key,) in rows(scene.home, "SELECT name FROM budget WHERE name LIKE 'token:%'")
        if not rows(scene.home, sql, key)
    ]

    def is_known() -> bool:
        """Whether the gateway knows of it: it looks once a second."""
        scene.begin(0)
        scene.model.reply = lambda _: finished("Hi.", 0)
        scene.ask("loop", "", token)
        return bool(rows(scene.home, sql, named))

    until(is_known)
    ((before,),) = rows(scene.home, spent, named)
    scene.begin(9)
    reply = scene.ask("loop", "", token)
    asked = -(-(1000 - before) // EACH)
    code = (reply.status, reply.code, *refused(reply)[2:4])
    assert code == (402, "budget_exceeded", "token", "tokens")
    assert len(scene.model.asked) == asked
    scene.begin(0)
    assert scene.ask("loop", "", token).status == 402  # before anything is asked
    assert scene.model.asked == []


def test_loops_at_once_stop_within_one_answer_each_of_what_an_operator_has_set(
    scene: Scene,
) -> None:
    name = f"spender-{next(numbers)}"
    token = scene.home.new_token(name, "--scope", "call:*", "--scope", "pay", "--scope", "tool:*")
    scene.home.carnet("budget", "set", f"token:{name}", "--tokens", "1000")
    counted = "SELECT name FROM budget WHERE tokens = 1000 AND spent_calls > 0"
    before = rows(scene.home, counted)

    def is_known() -> bool:
        scene.begin(0)
        scene.model.reply = lambda _: finished("Hi.", 0)
        scene.ask("loop", "", token)
        return rows(scene.home, counted) != before

    until(is_known)
    scene.begin(0)
    asked = itertools.count()
    scene.model.reply = lambda _: wants("ping", next(asked))
    together = 6

    def call(number: int) -> Reply:
        named = [("x-tangle-runid", f"{scene.run}-{number}"), ("x-tangle-turnid", "t")]
        return scene.home.chat("Hi", "loop", headers=named, token=token)

    with ThreadPoolExecutor(together) as pool:
        replies = list(pool.map(call, range(together)))
    assert {(reply.status, reply.code) for reply in replies} == {(402, "budget_exceeded")}
    assert len(scene.model.asked) <= 1000 // EACH + together


def test_what_agents_have_used_that_a_loop_has_called_is_used(scene: Scene) -> None:
    scene.begin(0)
    left = [wants("uses", 0, message="500"), *[wants("ping", n) for n in range(1, 9)]]
    scene.model.reply = lambda _: left.pop(0)
    reply = scene.ask("loop", "tokens=1000")
    assert refused(reply) == (402, "budget_exceeded", "call", "tokens", 1301, 1000)
    assert scene.bounds() == [1000, 100]
    assert scene.used() == 1


def test_a_loop_takes_no_more_tokens_than_the_part_that_an_agent_gave_it(scene: Scene) -> None:
    scene.begin(9)
    reply = scene.ask("gives", "tokens=9000,on=ask")
    assert reply.text == "tokens 500"
    assert scene.bounds() == [500, 100]
    assert scene.used() == 2


def test_a_loop_below_asks_who_began_the_run(scene: Scene) -> None:
    scene.begin(3)
    assert scene.ask("passes", "tokens=1000,on=ask").code == "approval_required"
    name, budget = scene.asked()
    assert budget == {"part": "tokens", "observed": 1201, "limit": 1000, "more": 1000}
    assert scene.answer(name) == 200
    until(lambda: scene.ask("passes", "tokens=1000,on=ask").status == 200)
    assert scene.ask("passes", "tokens=1000,on=ask").text == "Done."
    assert scene.bounds() == [1000, 600, 200, 800]
    assert scene.used() == 3
    assert rows(scene.home, "SELECT name FROM budget WHERE held_tokens <> 0") == []
