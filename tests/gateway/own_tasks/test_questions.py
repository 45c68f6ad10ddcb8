"""What is asked about tasks costs nobody else, and touches no other task."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.gateway.own_tasks.conftest import Caller
from tests.support.organisation import Organisation

LATER = {"returnImmediately": True}
LARGE = [{"data": [{"a": 1}] * 45_000}]  # as many members as a body may have, or nearly
MANY = 30
PAGE_BYTES = 3 * 1024 * 1024


def test_cancelling_a_task_leaves_one_of_the_same_names_alone(gateway: Organisation) -> None:
    """R6: another agent, or another payer, may have been asked under the same run and turn."""
    caller = Caller(gateway, "namesakes")
    fields = {"x-tangle-runid": "run_same", "x-tangle-turnid": "run_same.t0.x"}
    one = caller.send("slow2", "one", wishes=LATER, fields=fields)
    other = caller.send("asks", "one", wishes=LATER, fields=fields)
    assert one["id"] != other["id"]
    ended = caller.ask("slow2", "CancelTask", {"id": one["id"]})
    assert ended["result"]["status"]["state"] == "TASK_STATE_CANCELED"
    left = caller.ask("asks", "GetTask", {"id": other["id"]})["result"]
    assert left["status"]["state"] != "TASK_STATE_CANCELED"


@contextmanager
def asked_meanwhile(gateway: Organisation) -> Iterator[list[int]]:
    """How somebody else is answered meanwhile, one time after the other."""
    answers: list[int] = []
    over = threading.Event()

    def ask() -> None:
        with httpx.Client(base_url=gateway.url, timeout=60) as client:
            while not answers or not over.wait(0.005):
                answers.append(client.get("/healthz").status_code)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield answers
    finally:
        over.set()
        asking.join()


@pytest.fixture(scope="module")
def lister(gateway: Organisation) -> Caller:
    """Who has asked much."""
    caller = Caller(gateway, "lister")
    for number in range(MANY):
        caller.send("parts", f"m{number}", parts=LARGE)
    return caller


@pytest.mark.parametrize("wishes", [{}, {"historyLength": 0}, {"includeArtifacts": True}])
def test_a_list_of_long_tasks_is_bounded_and_keeps_nobody_waiting(
    gateway: Organisation, lister: Caller, wishes: dict[str, Any]
) -> None:
    """A99, A74: what was asked is read as far as it fits, and written beside the loop."""
    with asked_meanwhile(gateway) as answers:
        answer = httpx.post(**lister.request("parts", "ListTasks", wishes))
    page = answer.json()["result"]
    assert len(page["tasks"]) == MANY
    assert len(answer.content) < PAGE_BYTES
    shown = [task for task in page["tasks"] if "history" in task]
    assert bool(shown) == (wishes.get("historyLength") != 0)
    assert set(answers) == {200}
    assert gateway.held() == []
    whole = lister.ask("parts", "GetTask", {"id": page["tasks"][-1]["id"]})["result"]
    assert whole["history"][0]["parts"] == LARGE


def test_an_answer_in_words_is_as_long_as_a_persons_may_be(gateway: Organisation) -> None:
    """Every answer of a task is kept, and read whenever it is shown."""
    caller = Caller(gateway, "talker")
    task = caller.send("asks", "begin")
    message: dict[str, Any] = {"messageId": "long", "role": "ROLE_USER", "taskId": task["id"]}
    for part in ({"text": "x" * 70_000}, {"data": ["x"] * 20_000}):
        refused = caller.ask("asks", "SendMessage", {"message": message | {"parts": [part]}})
        assert "at most 65536 bytes" in refused["error"]["message"]
    assert caller.send("asks", "Bern", taskId=task["id"])["artifacts"]
