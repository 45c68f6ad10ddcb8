"""Tasks whose agent is elsewhere: a call out that waits, counted and paid for as any other."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from carnet.testing.wait import until
from tests.faults.stores import number, rows
from tests.interop.conftest import Databases
from tests.support.federation import organisation
from tests.support.organisation import Organisation

PRICE = 200
MOST = 2
# Some of its agents do not want to end.
SOON = {"CARNET__GATEWAY__DRAIN_SECONDS": "1"}


class Scene(NamedTuple):
    """Acme calls globex by its key, and lets each sender have few tasks waiting."""

    acme: Organisation
    globex: Organisation

    def begin(self, agent: str, text: str, token: str) -> tuple[int, dict[str, str]]:
        reply = self.acme.chat(text, f"@{agent}@globex.example", token=token, path="/tasks")
        return reply.status, reply.json

    def state(self, task: str, token: str) -> str:
        return str(self.acme.get(f"/tasks/{task}", token=token).json["status"])


@pytest.fixture(scope="module")
def scene(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("abroad")
    acme = organisation(folder / "acme", "acme.example", database())
    globex = organisation(folder / "globex", "globex.example", database())
    acme.configure(f"[limits]\ntasks_per_sender = {MOST}\n")
    acme.carnet("peers", "add", "globex.example", "--url", globex.url)
    listed = ("peers", "add", "acme.example", "--url", acme.url, "--credit", "10")
    globex.carnet(*listed)
    acme.start()
    globex.start(env=SOON)
    yield Scene(acme, globex)
    assert (acme.stop(), globex.stop()) == (0, 0)


def test_a_task_whose_agent_is_elsewhere_runs_and_gives_back_what_it_held(scene: Scene) -> None:
    """A81."""
    token = scene.acme.new_token("patient", "--limit", "5")
    status, page = scene.begin("paid", "far away", token)
    assert status == 202
    task = page["taskId"]
    until(lambda: scene.state(task, token) == "done")
    page = scene.acme.get(f"/tasks/{task}", token=token).json
    assert "far away" in str(page)
    query = "SELECT spent, reserved FROM purse WHERE name = 'token:patient'"
    assert rows(scene.acme, query) == [(PRICE, 0)]
    ours = "SELECT SUM(amount) FROM ledger WHERE credit = 'peer:globex.example'"
    theirs = "SELECT SUM(amount) FROM ledger WHERE issuer = 'acme.example'"
    assert number(scene.acme, ours) == number(scene.globex, theirs) == PRICE


def test_tasks_for_agents_elsewhere_count_whatever_they_are_called(scene: Scene) -> None:
    """A81: while two of them run for as long as they are let, a third by another name waits not."""
    token = scene.acme.new_token("eager", "--limit", "50")
    begun = [scene.begin(name, "6000", token) for name in ("slow", "stubborn", "echo")]
    assert [status for status, _ in begun] == [202, 202, 429]
    ids = [page["taskId"] for status, page in begun if status == 202]
    for task in ids:
        scene.acme.carnet("tasks", "cancel", task)
    until(lambda: {scene.state(task, token) for task in ids} == {"failed"})
    query = "SELECT reserved FROM purse WHERE name = 'token:eager'"
    assert rows(scene.acme, query) == [(0,)]
    assert scene.begin("echo", "again", token)[0] == 202
