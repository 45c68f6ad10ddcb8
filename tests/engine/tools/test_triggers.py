"""The tools by which a model makes schedules and hooks, at a real gateway with a model.

In the process of the gateway, and in one of its own: at an address, and at the file of a socket.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from carnet.testing.wait import until
from tests.engine.process import EngineProcess, UnixEngineProcess, tool_call, with_usage
from tests.gateway.triggers.scene import Owner
from tests.support.model import Answer, Model
from tests.support.organisation import Organisation

CONFIG = """
[agents.assistant]
kind = "engine"

[models.small]
url = "{url}/v1"
retries = 0

[engine]
tools = ["schedules", "hooks"]
"""
AGENTS = '''
async def echo(visit):
    """Say it again."""
    return visit.text
'''
_left: list[Answer] = []  # what the model has still to say
SCHEDULE = {"name": "digest", "agent": "echo", "cron": "@daily", "message": "Write it."}


@pytest.fixture(scope="module", params=["inprocess", "http", "unix"])
def house(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[tuple[Organisation, Model]]:
    _left.clear()
    gateway = Organisation(tmp_path_factory.mktemp("house"), "acme.example")
    with Model().serving() as model, ExitStack() as until_ended:
        gateway.configure(CONFIG.replace("{url}", model.url), agents=AGENTS)
        if request.param != "inprocess":
            made = EngineProcess if request.param == "http" else UnixEngineProcess
            engine = made(gateway)
            gateway.configure(f'listen = "{engine.url}"')
            engine.start()
            until_ended.callback(engine.close)
        gateway.start()
        yield gateway, model
        assert gateway.stop() == 0


def ask(house: tuple[Organisation, Model], owner: Owner, *calls: tuple[str, Any]) -> Any:
    """Have the model make calls one after the other; what it was told when it was asked last."""
    _, model = house
    until(lambda: not _left)  # an answer that was approved goes on by itself
    _left[:] = [tool_call(name, json.dumps(given)) for name, given in calls]
    _left.append(with_usage("Done."))
    model.asked.clear()
    model.reply = lambda _: _left.pop(0)
    return owner.post("/message", {"content": "Please.", "agent": "assistant"})


def outputs(model: Model) -> list[str]:
    messages = model.asked[-1].body["messages"]
    return [str(each["content"]) for each in messages if each["role"] == "tool"]


def approve(owner: Owner) -> None:
    (question,) = until(lambda: owner.get("/approvals").json["approvals"])
    assert owner.post(f"/approvals/{question['id']}", {"outcome": "accepted"}).status == 200


def test_a_model_makes_a_schedule_when_its_owner_agrees_and_no_sooner(
    house: tuple[Organisation, Model],
) -> None:
    owner = Owner(house[0], "call:*", "triggers", "run:read")
    ask(house, owner, ("add_schedule", SCHEDULE))
    assert owner.get("/schedules").json == {"schedules": []}
    approve(owner)
    (made,) = until(lambda: owner.get("/schedules").json["schedules"])
    assert (made["name"], made["agent"], made["cron"]) == ("digest", "echo", "@daily")
    ask(house, owner, ("list_schedules", {}))
    assert "@daily" in outputs(house[1])[-1]
    ask(house, owner, ("delete_schedule", {"name": "digest"}))
    approve(owner)
    until(lambda: owner.get("/schedules").json == {"schedules": []})


def test_a_model_is_shown_no_secret(house: tuple[Organisation, Model]) -> None:
    owner = Owner(house[0], "call:*", "triggers", "run:read")
    ask(house, owner, ("add_hook", {"name": "shop", "agent": "echo", "scheme": "url"}))
    approve(owner)
    until(lambda: owner.get("/hooks").json["hooks"])
    (output,) = until(lambda: outputs(house[1]))
    assert "/SECRET" in output
    assert "carnet hooks rotate shop" in output


def test_what_is_wrong_is_told_to_the_model(house: tuple[Organisation, Model]) -> None:
    owner = Owner(house[0], "call:*", "triggers", "run:read")
    ask(house, owner, ("add_schedule", {**SCHEDULE, "cron": "0 0 30 2 *"}))
    approve(owner)
    until(lambda: outputs(house[1]) and "a date that never comes" in outputs(house[1])[-1])
    assert owner.get("/schedules").json == {"schedules": []}


def test_who_may_not_have_any_has_no_such_tools(house: tuple[Organisation, Model]) -> None:
    ask(house, Owner(house[0], "call:*"))
    assert "tools" not in house[1].asked[-1].body
    machine = house[0].new_token("machine", "--scope", "triggers", "--scope", "call:*")
    owner = Owner(house[0])
    owner.token = machine
    ask(house, owner)
    assert "tools" not in house[1].asked[-1].body
