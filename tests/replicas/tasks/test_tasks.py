"""Tasks of gateways that share a store: run once by one of them, seen and cancelled at any."""

from collections.abc import Iterator
from typing import Any

import pytest

from carnet.testing.wait import until
from tests.replicas.scene import PRICE, House, Replica, a_house, ids
from tests.stores.support import servers
from tests.support.http import Reply, chat_body, request

PANEL = """
[agents.panel]
kind = "conversation"
participants = ["echo", "stepwise"]
max_turns = 2
"""


def send(house: House, method: str, url: str, body: bytes | None = None, **run: str) -> Reply:
    fields = [("authorization", f"Bearer {house.token}"), ("content-type", "application/json")]
    if run:
        fields += ids(run["run"], run["agent"])
    return request(method, url, fields, body)


def accepted(house: House, replica: Replica, run: str, agent: str, text: str = "a b") -> str:
    reply = send(
        house, "POST", f"{replica.url}/tasks", chat_body(text, agent), run=run, agent=agent
    )
    assert reply.status == 202, reply.body
    return str(reply.json["taskId"])


def seen(house: House, replica: Replica, task: str) -> dict[str, Any]:
    page: dict[str, Any] = send(house, "GET", f"{replica.url}/tasks/{task}").json
    return page


def has_ended(house: House, replica: Replica, task: str) -> bool:
    return seen(house, replica, task)["status"] in {"done", "failed"}


def test_tasks_run_once_whichever_gateway_takes_them_and_are_polled_at_any(
    house: House, four: list[Replica]
) -> None:
    runs = [f"tasks_{n}" for n in range(12)]
    tasks = [accepted(house, four[n % 4], run, "words") for n, run in enumerate(runs)]
    again = [accepted(house, four[(n + 1) % 4], run, "words") for n, run in enumerate(runs)]
    assert again == tasks
    for n, (run, task) in enumerate(zip(runs, tasks, strict=True)):
        there = four[(n + 2) % 4]
        until(lambda there=there, task=task: has_ended(house, there, task))  # type: ignore[misc]
        page = seen(house, there, task)
        assert (page["status"], page["result"]) == ("done", {"text": "ab"})
        assert (house.ran(run), house.billed(run)) == (1, [PRICE])


def test_a_task_is_cancelled_at_any_gateway(house: House, four: list[Replica]) -> None:
    run = "tasks_cancelled"
    task = accepted(house, four[0], run, "stepwise")
    until(lambda: house.ran(run) == 1)
    for replica in four[2:]:
        assert send(house, "POST", f"{replica.url}/tasks/{task}/cancel").status == 202
    until(lambda: has_ended(house, four[1], task))
    assert seen(house, four[1], task)["code"] == "cancelled"
    until(lambda: house.ran(run, "left") == 1)


@pytest.fixture
def empty(tmp_path_factory: pytest.TempPathFactory, server: servers.Server) -> Iterator[House]:
    """A house of its own, where no gateway runs."""
    with a_house(tmp_path_factory.mktemp("tasks"), server, PANEL) as house:
        yield house


def test_the_tasks_of_a_gateway_that_died_are_run_by_another(empty: House) -> None:
    run = "tasks_lost"
    (first,) = empty.open(1)
    task = accepted(empty, first, run, "stepwise")
    until(lambda: empty.ran(run) == 1)
    (second,) = empty.open(1)
    first.kill()
    empty.end_lease(run)
    until(lambda: empty.ran(run) == 2)
    empty.allow(run, "0", "end")
    until(lambda: has_ended(empty, second, task))
    page = seen(empty, second, task)
    assert (page["status"], page["attempt"], page["result"]) == ("done", 2, {"text": "0 "})
    assert empty.billed(run) == [PRICE]
    assert empty.rows("SELECT name FROM purse WHERE reserved <> 0") == []


def test_the_conversation_of_a_gateway_that_died_is_driven_on_by_another(empty: House) -> None:
    run = "tasks_panel"
    (first,) = empty.open(1)
    task = accepted(empty, first, run, "panel")
    until(lambda: empty.ran(run) == 2)  # one has spoken, the other one speaks
    (second,) = empty.open(1)
    first.kill()
    empty.end_lease(run)
    until(lambda: empty.ran(run) == 3)
    empty.allow(run, "0", "end")
    until(lambda: has_ended(empty, second, task))
    page = seen(empty, second, task)
    assert (page["status"], page["attempt"]) == ("done", 2)
    assert page["result"] == {"text": "[echo] a b\n[stepwise] 0\n"}
    assert empty.ran(run) == 3  # who was recorded has not spoken again
    assert empty.billed(run) == [0, PRICE, 0]  # of one, of the other, and of the conversation
