"""SIGKILL at random times while tasks with callbacks are taken on and run, on either store."""

import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from http.client import HTTPException
from itertools import count
from typing import Any, Final

from carnet.runtime.tasks.worker import MOST_LOST
from carnet.testing.history import History
from carnet.testing.wait import until
from tests.crash.loops.calls import PRICE, STEPS, Received, TaskScene
from tests.crash.loops.clients import SETTLE_SECONDS, LoadClient, asking
from tests.crash.loops.figures import AGAIN, LOST, TWICE, Figures
from tests.faults.stores import number, rows

CLIENTS: Final = 4
SHORTEST_SECONDS, LONGEST_SECONDS = 0.05, 0.6  # between a start and the next kill
PAUSE_SECONDS: Final = 0.05
LOAD: Final = "loop_"
IN_RUNS = "FROM turn t JOIN run r ON r.n = t.run WHERE SUBSTR(r.id, 1, 5) = 'loop_'"
OPEN = "SELECT COUNT(*) FROM turn WHERE state NOT IN ('done', 'failed')"
UNSENT = "SELECT COUNT(*) FROM outbox WHERE state = 'pending'"


class Client(LoadClient):
    """Has one task after the other accepted, each sent until it is.

    Every second client waits for the end of one before it sends the next.
    """

    def __init__(
        self, name: str, scene: TaskScene, history: History, stop: threading.Event
    ) -> None:
        super().__init__(name, stop)
        self._scene = scene
        self._history = history

    def run(self) -> None:
        for n in count():
            if self.stop_asking.is_set():
                return
            run = f"{LOAD}{self.name}_{n:06}"
            while (task := self._scene.try_send(run, "nap")) is None:
                self._history.unknown(run)
                if self.given_up:
                    return
                time.sleep(PAUSE_SECONDS)
            self._history.ok(run, task)
            time.sleep(PAUSE_SECONDS)
            while int(self.name) % 2 and not self._has_ended(task) and not self.given_up:
                time.sleep(PAUSE_SECONDS)

    def _has_ended(self, task: str) -> bool:
        try:
            return self._scene.poll(task).json["status"] in {"done", "failed"}
        except (OSError, HTTPException):
            return False


def kill_at_random(scene: TaskScene, history: History, *, kills: int, seed: int) -> None:
    """Kill and start it again and again; each second time only once it has accepted something."""
    dice = random.Random(seed)  # noqa: S311  a time to kill is no secret
    for n in range(kills):
        if n % 2:
            before = history.count("ok")
            until(lambda: history.count("ok"), lambda ok: ok > before, seconds=SETTLE_SECONDS)  # noqa: B023
        time.sleep(dice.uniform(SHORTEST_SECONDS, LONGEST_SECONDS))
        scene.restart()


def under_load(scene: TaskScene, history: History, *, kills: int, seed: int) -> None:
    """Kill while clients ask; then let everything end that was accepted."""
    stop = threading.Event()
    with asking([Client(str(n), scene, history, stop) for n in range(CLIENTS)]):
        kill_at_random(scene, history, kills=kills, seed=seed)
    for left in (OPEN, UNSENT):
        until(lambda: number(scene.acme, left), lambda count: count == 0, seconds=SETTLE_SECONDS)  # noqa: B023


class Found:
    """Everything that is there afterwards, by run."""

    def __init__(self, scene: TaskScene) -> None:
        acme = scene.acme
        self.turns = _by_first(rows(acme, f"SELECT r.id, t.state, t.attempt {IN_RUNS}"))
        tasks = (
            "SELECT r.id, k.id FROM task k JOIN turn t ON t.n = k.turn JOIN run r ON r.n = t.run"
        )
        self.tasks = _by_first(rows(acme, tasks))
        self.deliveries = _by_first(rows(acme, "SELECT task, id, state FROM outbox"))
        self.billed = _by_first(rows(acme, "SELECT run, amount FROM ledger"))
        self.received = scene.all_received()
        self.steps = scene.steps()

    @property
    def ids(self) -> dict[str, list[str]]:
        """The ids of its tasks, for the history to judge."""
        return {run: [task for (task,) in found] for run, found in self.tasks.items()}

    def faults(self, run: str) -> Iterator[str]:
        """What is wrong with one task."""
        turns = self.turns.get(run, [])
        if len(turns) != 1:
            yield f"{run}: {LOST if not turns else f'has {len(turns)} turns'}"
            return
        ((state, attempts),) = turns
        if state == "failed" and attempts <= MOST_LOST:
            yield f"{run}: failed in attempt {attempts}"
        yield from self._money_faults(run, state)
        yield from self._delivery_faults(run)
        yield from self._step_faults(run, state, attempts)

    def _money_faults(self, run: str, state: str) -> Iterator[str]:
        billed = [int(amount) for (amount,) in self.billed.get(run, [])]
        if len(billed) > 1:
            yield f"{run}: {TWICE} {len(billed)} times"
        elif billed != ([PRICE] if state == "done" else []):
            yield f"{run}: is {state} and has the ledger entries {billed}"

    def _delivery_faults(self, run: str) -> Iterator[str]:
        kept = [
            delivery for (task,) in self.tasks[run] for delivery in self.deliveries.get(task, [])
        ]
        copies = set(self.received.get(run, []))
        if [state for _, state in kept] != ["delivered"] or len(copies) != 1:
            yield f"{run}: its deliveries are {kept}, and {copies} arrived"
        elif {copy.id for copy in copies} != {delivery for delivery, _ in kept}:
            yield f"{run}: what arrived is not its delivery"

    def _step_faults(self, run: str, state: str, attempts: int) -> Iterator[str]:
        """A step may be taken again only by another process: what was done was not kept yet."""
        taken = self.steps.get(run, [])
        times = Counter(step.name for step in taken)
        if state == "done" and set(times) != set(STEPS):
            yield f"{run}: is done, and took the steps {sorted(times)}"
        if any(times[step] > attempts for step in times):
            yield f"{run}: a step {AGAIN}: {dict(times)} in {attempts} attempts"
        if len({(step.name, step.pid) for step in taken}) != len(taken):
            yield f"{run}: a step {AGAIN} in one process"
        if len({(step.name, step.key) for step in taken}) != len(times):
            yield f"{run}: a step had several keys"

    def taken_again(self) -> int:
        """How many steps a kill met between what they did and the record of it."""
        runs = [steps for run, steps in self.steps.items() if run.startswith(LOAD)]
        return sum(len(steps) - len({step.name for step in steps}) for steps in runs)

    def doubled(self) -> int:
        """How many copies of deliveries arrived beyond the first."""
        runs: list[list[Received]] = [c for run, c in self.received.items() if run.startswith(LOAD)]
        return sum(len(copies) - 1 for copies in runs)


def _by_first(found: list[tuple[Any, ...]]) -> dict[str, list[tuple[Any, ...]]]:
    by_first: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for first, *rest in found:
        by_first[first].append(tuple(rest))
    return dict(by_first)


def task_loop(scene: TaskScene, name: str, *, kills: int, seed: int) -> Figures:
    """The whole of it: the load, the kills, and what is found afterwards."""
    began = time.monotonic()
    history = History()
    scene.restart()
    under_load(scene, history, kills=kills, seed=seed)
    figures = Figures(name, kills=kills)
    figures.note(history)
    found = Found(scene)
    figures.cut_off = sum(attempts > 1 for ((_, attempts),) in found.turns.values())
    figures.faults += [f"{run}: was never settled" for run in history.unsettled()]
    figures.faults += history.faults(found.ids)
    figures.faults += [fault for run in found.turns for fault in found.faults(run)]
    figures.faults += scene.left_over()
    figures.more = {
        "given up": sum(state == "failed" for ((state, _),) in found.turns.values()),
        "deliveries": len(found.received),
        "deliveries again": found.doubled(),
        "steps again": found.taken_again(),
    }
    figures.seconds = time.monotonic() - began
    return figures
