"""The operator's policy before each tool of a loop in a process of its own; it may only deny."""

import json
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.engine.process import EngineProcess, asking, events_of, tool_call, with_usage
from tests.security.contexts.conftest import CONFIG_HERE, served
from tests.security.contexts.requests import chain
from tests.security.contexts.test_policy import LOOP, POLICY, asked
from tests.support.http import request
from tests.support.model import Model
from tests.support.organisation import Organisation, shared_with_others
from tests.support.served import executions

JSON = ("content-type", "application/json")
TOOLS = 'tools = ["agents:peek", "agents:wipe"]\n'


class Apart:
    """A gateway, its loop, and the model that the loop asks."""

    def __init__(self, gateway: Organisation, engine: EngineProcess, model: Model) -> None:
        self.gateway, self.engine, self.model = gateway, engine, model
        self.token = gateway.new_token("tools", "--scope", "call:*", "--scope", "tool:*")

    def wants(self, tool: str) -> None:
        """Have the model want a tool, and then end."""
        answers = iter([tool_call(tool, '{"what":"it"}'), with_usage("So.")])
        self.model.reply = lambda _: next(answers)

    def questions(self, before: int) -> list[str]:
        return asked(self.gateway)[before:]


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apart]:
    folder = tmp_path_factory.mktemp("apart")
    with Model().serving() as model, shared_with_others(), ExitStack() as until_ended:
        config = CONFIG_HERE + POLICY.format("judge") + LOOP.format(model.url) + TOOLS
        engines: list[EngineProcess] = []

        def begin(gateway: Organisation) -> None:
            engines.append(EngineProcess(gateway))
            gateway.configure(f'listen = "{engines[0].url}"')
            engines[0].start()
            until_ended.callback(engines[0].close)

        with served(folder, config, before=begin) as gateway:
            yield Apart(gateway, engines[0], model)


def test_it_is_asked_before_each_tool_with_all_that_the_gateway_knows(apart: Apart) -> None:
    gateway = apart.gateway
    context = "source@https://source.example (claimed)"
    for tool, ran in (("peek", ["it"]), ("wipe", [])):
        apart.wants(tool)
        before = len(asked(gateway))
        reply = gateway.chat("do it", "loop", token=apart.token, headers=chain())
        assert reply.text == "So."
        assert apart.questions(before) == [
            f"call loop - {context} service",
            f"tool loop {tool} {context} service",
        ]
        assert executions(gateway.folder, tool) == ran
    assert "denies this tool" in json.dumps(apart.model.asked[-1].body)


def test_it_is_asked_for_who_asks_the_loop_directly(apart: Apart) -> None:
    before = len(executions(apart.gateway.folder, "peek"))
    for tool, more in (("peek", 1), ("wipe", 0)):
        apart.wants(tool)
        questions = len(asked(apart.gateway))
        events_of(apart.engine.post(asking()))
        (question,) = apart.questions(questions)
        assert question == f"tool echo {tool} self (claimed) service"
        assert len(executions(apart.gateway.folder, tool)) == (before + more if more else 0)


def test_who_has_no_turn_learns_nothing_of_it(apart: Apart) -> None:
    before = len(asked(apart.gateway))
    for credential in (apart.token, "a.b.c", apart.gateway.token):
        fields = [("authorization", f"Bearer {credential}"), JSON]
        body = b'{"tool": "peek"}'
        reply = request("POST", f"{apart.gateway.url}/turn/policy", fields, body)
        assert (reply.status, reply.code) == (401, "token_invalid")
    assert len(asked(apart.gateway)) == before
