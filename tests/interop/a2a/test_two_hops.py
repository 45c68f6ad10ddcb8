"""An approval that an agent two organisations away asks for, answered by a person at the first."""

from collections.abc import Iterator

import pytest
from a2a.types import CancelTaskRequest, GetTaskRequest, TaskState

from carnet.testing.stage import Organisation, Stage
from tests.interop.a2a.conftest import AGENTS, calling, sections
from tests.interop.a2a.test_sdk_client import message, task_of, text_of
from tests.support.a2a.wire import BINDINGS


def behind(name: str, other: Organisation, agent: str, token: str) -> str:
    """The configuration of an agent that is one of another organisation, over A2A."""
    (other.folder / f"{name}.token").write_text(token)
    return f"""
[agents.{name}]
kind = "a2a"
url = "http://127.0.0.1:{other.port}/agents/{agent}"
token = {{file = "{other.folder / f"{name}.token"}"}}
"""


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Organisation, Organisation]]:
    """The first of three organisations, and the last."""
    with Stage(tmp_path_factory.mktemp("hops")) as stage:
        last = stage.organisation(
            "initech.example", config=sections(("approves", "asks")), agents=AGENTS
        )
        last.start()
        token = last.new_token("globex")
        config = behind("guard", last, "approves", token) + behind("clerk", last, "asks", token)
        middle = stage.organisation("globex.example", config=config)
        middle.start()
        token = middle.new_token("acme")
        config = behind("guard", middle, "guard", token) + behind("clerk", middle, "clerk", token)
        made = stage.organisation("acme.example", config=config)
        made.start()
        yield made, last


@pytest.fixture(scope="module")
def first(chain: tuple[Organisation, Organisation]) -> Organisation:
    return chain[0]


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize(("word", "outcome"), [("approve", "granted"), ("deny", "left alone")])
async def test_an_approval_two_hops_away_is_answered_by_the_person_who_asked(
    word: str, outcome: str, binding: str, first: Organisation
) -> None:
    async with calling(first, "guard", binding) as client:
        task = await task_of(client, message("do it"))
        assert task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        assert "May I?" in task.status.message.parts[0].text
        done = await task_of(client, message(word, task_id=task.id))
        assert done.status.state == TaskState.TASK_STATE_COMPLETED
        assert text_of(done) == outcome
        assert text_of(await client.get_task(GetTaskRequest(id=task.id))) == outcome


async def test_a_value_two_hops_away_is_given_by_the_person_who_asked(first: Organisation) -> None:
    async with calling(first, "clerk", "JSONRPC") as client:
        task = await task_of(client, message("weather"))
        assert task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        done = await task_of(client, message("Bern", task_id=task.id))
        assert text_of(done) == "weather of Bern"


def test_the_person_answers_in_her_inbox_as_well(first: Organisation) -> None:
    waits = first.try_carnet("call", "guard", "please")
    assert "May I?" in waits.stdout + waits.stderr
    (entry,) = [each for each in first.json("inbox")["approvals"] if "May I?" in each["message"]][
        :1
    ]
    first.carnet("inbox", "approve", entry["id"])
    assert [each for each in first.json("inbox")["approvals"] if each["id"] == entry["id"]] == []


@pytest.mark.parametrize("binding", BINDINGS)
async def test_a_task_that_is_cancelled_at_the_first_is_cancelled_at_the_last(
    binding: str, chain: tuple[Organisation, Organisation]
) -> None:
    first, last = chain
    async with calling(first, "guard", binding) as client:
        task = await task_of(client, message("do it not"))
        run = dict(task.metadata)["urn:carnet:a2a:chain:v1"]["run"]
        (turn,) = last.json("run", "show", run)["turns"]
        assert turn["state"] == "waiting"
        ended = await client.cancel_task(CancelTaskRequest(id=task.id))
        assert ended.status.state == TaskState.TASK_STATE_CANCELED
        (turn,) = last.json("run", "show", run)["turns"]
        assert (turn["state"], turn["code"]) == ("failed", "cancelled")
