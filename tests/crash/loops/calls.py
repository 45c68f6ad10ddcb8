"""A gateway that takes on tasks, a caller that signs them, and a receiver of their callbacks.

What is looked at after a kill: the task has one end, told by one delivery; the steps of its handler
were taken once; it is billed once. A test of kills gives the faults that it found.
"""

import json
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from carnet.testing.wait import until
from tests.crash.loops.kills import TRIGGER, arm, points_of
from tests.faults.stores import end_leases, move_to, number, rows
from tests.support.http import Reply, request
from tests.support.organisation import Organisation
from tests.support.signing.signed import Line, Sender, message
from tests.support.webhooks.receivers import Receivers, receiving

T = TypeVar("T")

DOMAIN: Final = "acme.example"
TARGET: Final = "/agents/job/agent/task"
ACCEPTED: Final = 202
LATER: Final = {429, 503}
PRICE: Final = 200  # micro-units
PATIENCE_SECONDS: Final = 60.0  # for what takes a moment; never a measure of speed
PAUSE_SECONDS: Final = 0.015
STEPS: Final = ("first", "second")
LEASE_US: Final = 61_000_000  # more than a delivery is leased for
AGENTS: Final = (Path(__file__).parents[1] / "agents_module.py").read_text() + TRIGGER
CONFIG: Final = """
[agents.job]
kind = "python"
target = "agents:job"
price = "0.0002"

[outbox]
schedule = [0, 0.2, 0.4, 0.6, 0.8]

[egress]
allow = ["127.0.0.1:{port}"]

[limits]
sender_calls_per_minute = 1000000
"""


class Received(NamedTuple):
    """One copy of a delivery, as it arrived."""

    id: str
    body: str
    task: str


class Taken(NamedTuple):
    """A step as it was taken."""

    name: str
    key: str
    pid: str


class TaskScene:
    """The gateway and those around it."""

    def __init__(self, acme: Organisation, receivers: Receivers) -> None:
        self.acme = acme
        self.port = acme.port  # of the gateway that is asked
        self.receivers = receivers
        self.sender = Sender("agent://client-jobs")
        self.held = acme.folder / "held"
        self.held.mkdir()
        self._is_armed = False
        acme.carnet("peers", "add", self.sender.identity, "--key", self.sender.public)

    # ------------------------------------------------------------------ asking

    def send(self, run: str, text: str = "go") -> Reply:
        """Ask for a task, or ask again: the same trace and span under a new nonce."""
        sent = message(
            self.sender,
            f"agent://job.{DOMAIN}",
            target=TARGET,
            mode="async",
            payload={"text": text},
            auth={"scheme": "bearer", "token": self.acme.token},
            traceId=run,
            spanId=f"span-of-{run}",
            callbackUrl=self.receivers.url("well", f"/{run}"),
        )
        with Line(self.port) as line:
            return line.send(sent)

    def try_send(self, run: str, text: str = "go") -> str | None:
        """The id of the task; None if the gateway died before it was told.

        A caller who is told to send it again later does that.
        """
        try:
            reply = until(lambda: self.send(run, text), lambda reply: reply.status not in LATER)
        except (OSError, HTTPException):
            return None
        assert reply.status == ACCEPTED, reply.body
        return str(reply.json["taskId"])

    def accepted(self, run: str, text: str = "go") -> str:
        """The id of the task, by a gateway that lives."""
        task = self.try_send(run, text)
        assert task is not None
        return task

    def poll(self, task: str) -> Reply:
        return request("GET", f"http://127.0.0.1:{self.port}{TARGET}/{task}")

    def ended(self, task: str) -> Reply:
        """The record of a task when it has ended."""
        return until(
            lambda: self.poll(task), lambda reply: reply.json["status"] in {"done", "failed"}
        )

    def hold(self, run: str) -> None:
        """Let its handler wait between its two steps."""
        (self.held / run).touch()

    def let_go(self, run: str) -> None:
        (self.held / run).unlink()

    def is_held(self, run: str) -> bool:
        """Whether its handler waits: the first step is kept."""
        sql = "SELECT COUNT(*) FROM step s JOIN turn t ON t.n = s.turn JOIN run r ON r.n = t.run"
        return number(self.acme, f"{sql} WHERE r.id = ?", run) == 1

    # ------------------------------------------------------------------- dying

    def restart(self, env: dict[str, str] | None = None) -> None:
        """Kill it and start it again, after what a killed process held has run out."""
        self.acme.kill()
        self.end_leases()
        self.acme.start(env=env)
        self._is_armed = False

    def arm(self, point: str) -> None:
        """Let the gateway that is running die at a point, as if it had been started so."""
        if self.acme.process is None or self._is_armed:
            self.restart()
        self._is_armed = True
        arm(self.acme, point)

    def end_leases(self) -> None:
        """As if a minute had gone by since a crash: nobody holds its turns, nor its deliveries."""
        end_leases(self.acme)
        sql = "UPDATE outbox SET due = due - ?, leased_until = leased_until - ?"
        rows(self.acme, f"{sql} WHERE leased_until IS NOT NULL", LEASE_US, LEASE_US)

    def died(self) -> bool:
        """Wait for it to be killed at a crash point."""
        return self.acme.died()

    def signal(self, kind: signal.Signals) -> int:
        """Tell it to stop; how it ended."""
        self.acme.signal(kind)
        return self.acme.ended()

    def points(self) -> set[str]:
        """The crash points that gateways have passed which noted them and have stopped."""
        return points_of(self.acme)

    # ----------------------------------------------------------------- looking

    def received(self, run: str) -> list[Received]:
        """The copies of its delivery that have arrived."""
        return self.all_received().get(run, [])

    def all_received(self) -> dict[str, list[Received]]:
        """The copies of all deliveries, by run."""
        found: dict[str, list[Received]] = {}
        for one in self.receivers.received("well"):
            fields = one["headers"]
            copy = Received(fields["webhook-id"], one["body"], fields["carnet-task"])
            found.setdefault(one["path"].removeprefix("/"), []).append(copy)
        return found

    def steps(self) -> dict[str, list[Taken]]:
        """The steps that were taken, by run."""
        trace = self.acme.folder / "steps.txt"
        taken: dict[str, list[Taken]] = {}
        for line in trace.read_text().splitlines() if trace.exists() else ():
            run, *step = line.split()
            taken.setdefault(run, []).append(Taken(*step))
        return taken

    def attempts(self, run: str) -> list[tuple[str, int]]:
        """State and attempt of every turn of a run."""
        sql = "SELECT t.state, t.attempt FROM turn t JOIN run r ON r.n = t.run WHERE r.id = ?"
        return rows(self.acme, sql, run)

    def is_running(self, run: str) -> bool:
        return [state for state, _ in self.attempts(run)] == ["running"]

    def deliveries(self, task: str) -> list[tuple[str, str]]:
        """Id and state of every delivery about a task."""
        return rows(self.acme, "SELECT id, state FROM outbox WHERE task = ?", task)

    def until_delivered(self, task: str) -> None:
        """Wait until nothing more is to be sent about a task."""
        until(
            lambda: self.deliveries(task),
            lambda found: found and "pending" not in dict(found).values(),
        )

    # ------------------------------------------------------------------ faults

    def faults(self, run: str, task: str, *, again: str = "", fails: bool = False) -> Iterator[str]:
        """What is wrong with a task that has ended and been told; `again` may be taken twice."""
        record = self.ended(task).json
        state = "failed" if fails else "done"
        if record["status"] != state:
            yield f"the task ended as {record}"
        copies = self.received(run)
        yield from self._delivery_faults(task, copies)
        for body in {copy.body for copy in copies}:
            yield from _body_faults(json.loads(body), record, run)
        yield from step_faults(self.steps().get(run, []), again)
        yield from self._record_faults(run, task, state)

    def _delivery_faults(self, task: str, copies: list[Received]) -> Iterator[str]:
        kept = self.deliveries(task)
        if [state for _, state in kept] != ["delivered"]:
            yield f"the deliveries are {kept}"
        if not copies:
            yield "the callback never arrived"
        if len(set(copies)) > 1:
            yield f"the copies of the delivery differ: {set(copies)}"
        if {copy.id for copy in copies} != {delivery for delivery, _ in kept}:
            yield f"what arrived is not the delivery: {copies}"

    def _record_faults(self, run: str, task: str, state: str) -> Iterator[str]:
        turns = [state for state, _ in self.attempts(run)]
        if turns != [state]:
            yield f"the turns of its run are {turns}"
        tasks = "SELECT k.id FROM task k JOIN turn t ON t.n = k.turn JOIN run r ON r.n = t.run"
        found = rows(self.acme, f"{tasks} WHERE r.id = ?", run)
        if found != [(task,)]:
            yield f"the tasks of its run are {found}"
        billed = rows(self.acme, "SELECT amount FROM ledger WHERE run = ?", run)
        if billed != ([(PRICE,)] if state == "done" else []):
            yield f"it was billed {billed}"

    def left_over(self) -> Iterator[str]:
        """What is wrong when every task has ended: something is held, or unfinished."""
        for what, sql in (
            ("reserved", "SELECT COALESCE(SUM(reserved), 0) FROM purse"),
            ("counted", "SELECT COALESCE(SUM(spent), 0) FROM purse WHERE name LIKE 'tasks/%'"),
            ("unfinished", "SELECT COUNT(*) FROM turn WHERE state NOT IN ('done', 'failed')"),
            ("sealed", "SELECT COUNT(*) FROM kept_call"),
            ("pending", "SELECT COUNT(*) FROM outbox WHERE state = 'pending'"),
        ):
            if left := number(self.acme, sql):
                yield f"{left} stay {what}"
        verified = self.acme.try_carnet("ledger", "verify")
        if verified.returncode:
            yield f"the ledger is damaged: {verified.stdout}{verified.stderr}"


def _body_faults(body: dict[str, Any], record: dict[str, Any], run: str) -> Iterator[str]:
    """The delivery tells the same end as the record."""
    if body["traceId"] != run:
        yield f"the delivery is about {body['traceId']}"
    outcome = body.get("result"), body.get("error")
    if outcome != (record.get("result"), record.get("error")):
        yield f"the delivery tells {outcome}, and the task is {record}"


def step_faults(taken: list[Taken], again: str = "") -> Iterator[str]:
    """Each step was taken once, and `again` twice, under one key."""
    times = Counter(step.name for step in taken)
    for name in STEPS:
        expected = 2 if name == again else 1
        if times[name] != expected:
            yield f"step {name} ran {times[name]} times, and not {expected}"
    if len({(step.name, step.key) for step in taken}) != len(times):
        yield f"one step had several keys: {taken}"


@contextmanager
def task_scene(folder: Path, database: str = "") -> Iterator[TaskScene]:
    """The gateway, not started, on SQLite if no database is given."""
    acme = Organisation(folder / "acme", DOMAIN)
    if database:
        move_to(acme, database)
    with receiving(folder, "well") as receivers:
        acme.configure(CONFIG.format(port=receivers.ports["well"]), agents=AGENTS)
        config = acme.folder / "carnet.toml"
        config.write_text(
            config.read_text().replace("[gateway]\n", "[gateway]\ndrain_seconds = 0.3\n", 1)
        )
        try:
            yield TaskScene(acme, receivers)
        finally:
            acme.kill()
