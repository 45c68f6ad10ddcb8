"""Tasks over restarts of a real gateway, on each store: killed, drained, and run to one end."""

from collections.abc import Iterator
from http.client import HTTPException
from typing import Any

import pytest

from carnet.testing.wait import until
from tests.faults.stores import end_leases, move_to, rows
from tests.selection import STORES
from tests.stores.support import servers
from tests.support.http import Reply, request
from tests.support.organisation import Organisation
from tests.support.signing.signed import Line, Sender, message

DOMAIN = "acme.example"
TASK = "/agent/task"
PATIENCE_SECONDS = 60.0

AGENTS = '''
import asyncio
from pathlib import Path

import carnet

HERE = Path(__file__).parent


def note(line: str) -> str:
    with (HERE / "done.txt").open("a") as done:
        done.write(line + "\\n")
    return line


async def echo(visit: carnet.Visit) -> str:
    return visit.text


async def job(visit: carnet.Visit) -> str:
    """Do two things, each once, and wait between them while there is a file that says so."""
    first = await visit.step("first", note, f"first {visit.idempotency_key('first')}")
    visit.progress(0.5, "half way")
    while (HERE / "hold").exists():
        await asyncio.sleep(0.02)
    name = (HERE / "name").read_text() if (HERE / "name").exists() else "second"
    await visit.step(name, note, f"{name} {visit.idempotency_key(name)}")
    visit.usage(tokens_in=3, tokens_out=4)
    return f"{first.split()[0]} and {name}"
'''
CONFIG = """
[agents.job]
kind = "python"
target = "agents:job"
"""


class TaskScene:
    """A gateway whose one agent does two things, and a sender that is known there."""

    def __init__(self, gateway: Organisation) -> None:
        self.gateway = gateway
        self.hold = gateway.folder / "hold"
        self.sender = Sender("agent://client-restarts")
        gateway.carnet("peers", "add", self.sender.identity, "--key", self.sender.public)

    def accepted(self) -> str:
        auth = {"scheme": "bearer", "token": self.gateway.token}
        sent = message(
            self.sender,
            f"agent://job.{DOMAIN}",
            target=f"/agents/job{TASK}",
            mode="async",
            auth=auth,
        )
        with Line(self.gateway.port) as line:
            reply = line.send(sent)
        assert reply.status == 202, reply.body
        return str(reply.json["taskId"])

    def poll(self, task: str) -> Reply:
        return request("GET", f"{self.gateway.url}/agents/job{TASK}/{task}")

    def half_way(self, task: str) -> None:
        """Wait until the first step is kept and told."""
        seen = until(lambda: self.poll(task).json, lambda record: record.get("progress") == 0.5)
        assert seen["status"] == "running"

    def ended(self, task: str) -> dict[str, Any]:
        record: dict[str, Any] = until(
            lambda: self.poll(task).json, lambda record: record["status"] in {"done", "failed"}
        )
        return record

    def done(self) -> list[str]:
        """What was done in the world, in order."""
        trace = self.gateway.folder / "done.txt"
        return trace.read_text().splitlines() if trace.exists() else []

    def forget(self) -> None:
        for name in ("done.txt", "hold", "name"):
            (self.gateway.folder / name).unlink(missing_ok=True)


@pytest.fixture(scope="module", params=STORES)
def settled(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[TaskScene]:
    gateway = Organisation(tmp_path_factory.mktemp("restarts"), DOMAIN)
    if request.param == "postgres":
        server: servers.Server = request.getfixturevalue("server")
        move_to(gateway, server.create())
    gateway.configure(CONFIG, agents=AGENTS)
    config = gateway.folder / "carnet.toml"
    config.write_text(
        config.read_text().replace("[gateway]\n", "[gateway]\ndrain_seconds = 0.2\n", 1)
    )
    yield TaskScene(gateway)
    gateway.stop()


@pytest.fixture
def scene(settled: TaskScene) -> Iterator[TaskScene]:
    settled.forget()
    settled.gateway.start()
    yield settled
    settled.forget()
    assert settled.gateway.stop() == 0


def test_a_task_outlives_kill_9_and_its_steps_are_done_once(scene: TaskScene) -> None:
    scene.hold.touch()
    task = scene.accepted()
    scene.half_way(task)
    scene.gateway.kill()
    end_leases(scene.gateway)
    scene.hold.unlink()
    scene.gateway.start()
    assert scene.ended(task)["result"] == {"text": "first and second"}
    assert [line.split()[0] for line in scene.done()] == ["first", "second"]
    page = rows(scene.gateway, "SELECT attempt, state, tokens_out FROM turn ORDER BY n DESC")[0]
    assert page == (2, "done", 4)


def test_a_gateway_that_stops_lets_its_tasks_go_and_the_next_one_runs_them(
    scene: TaskScene,
) -> None:
    scene.hold.touch()
    task = scene.accepted()
    scene.half_way(task)
    assert scene.gateway.stop() == 0
    [(state, attempt)] = rows(
        scene.gateway, "SELECT state, attempt FROM turn ORDER BY n DESC LIMIT 1"
    )
    assert (state, attempt) == ("queued", 2)
    scene.hold.unlink()
    scene.gateway.start()
    assert scene.ended(task)["status"] == "done"
    assert [line.split()[0] for line in scene.done()] == ["first", "second"]


@pytest.mark.parametrize("settled", ["sqlite"], indirect=True)
def test_a_crash_between_the_effect_and_its_record_does_it_again_under_the_same_key(
    scene: TaskScene,
) -> None:
    scene.gateway.stop()
    scene.gateway.start(env={"CRASH_AT": "step.done"})
    task = scene.accepted()
    assert scene.gateway.died()
    end_leases(scene.gateway)
    scene.gateway.start()
    assert scene.ended(task)["status"] == "done"
    first, again, second = scene.done()
    assert first == again  # the same key: whoever was told twice can know
    assert second.startswith("second ")


@pytest.mark.parametrize("settled", ["sqlite"], indirect=True)
def test_an_agent_that_changed_between_two_attempts_ends_the_task(scene: TaskScene) -> None:
    scene.gateway.stop()
    scene.gateway.start(env={"CRASH_AT": "step.kept:2"})
    task = scene.accepted()
    assert scene.gateway.died()
    end_leases(scene.gateway)
    (scene.gateway.folder / "name").write_text("third")
    scene.gateway.start()
    assert scene.ended(task)["status"] == "failed"
    assert scene.poll(task).headers["carnet-code"] == "definition_changed"
    assert [line.split()[0] for line in scene.done()] == ["first", "second"]


@pytest.mark.parametrize("settled", ["sqlite"], indirect=True)
def test_a_task_that_was_accepted_and_never_answered_is_run_all_the_same(
    scene: TaskScene,
) -> None:
    scene.gateway.stop()
    scene.gateway.start(env={"CRASH_AT": "task.queued"})
    with pytest.raises((OSError, HTTPException)):
        scene.accepted()
    assert scene.gateway.died()
    end_leases(scene.gateway)
    scene.gateway.start()
    until(scene.done, lambda lines: len(lines) == 2)


@pytest.mark.parametrize("settled", ["sqlite"], indirect=True)
def test_a_task_is_forgotten_when_its_time_has_passed(scene: TaskScene) -> None:
    task = scene.accepted()
    assert scene.ended(task)["status"] == "done"
    rows(scene.gateway, "UPDATE task SET ended = ended - 86401000000")  # a day and a second
    gone = scene.poll(task)
    unknown = scene.poll("3fa85f64-5717-4562-b3fc-2c963f66afa6")
    assert (gone.status, gone.body) == (404, unknown.body)
