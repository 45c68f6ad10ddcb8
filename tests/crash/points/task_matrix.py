"""Every crash point of a task with a callback: die there, start again, and look at the task.

Each case gives the faults that it found; none is well. The tests run each once, on the store that
choice.py names; `make crash` ten times on each.
"""

import signal
from collections.abc import Iterator
from typing import Final

from carnet.testing.wait import until
from tests.crash.loops.calls import TaskScene

KILLED: Final = -9

# How many attempts the task takes. A crash before the claim is committed leaves none, one after
# its end is committed leaves the end; around the answer to its caller it may have begun or not.
PASSED: Final = {
    "recv.body": {1},
    "parse.ok": {1},
    "t1.begin": {1},
    "t1.nonce": {1},
    "t1.before_commit": {1},
    "t1.after_commit": {1},
    "task.queued": {1},
    "reply.before_write": {1, 2},
    "reply.after_write": {1, 2},
    "task.leased": {2},
    "step.begin": {2},
    "step.done": {2},
    "step.kept": {2},
    "t3.begin": {2},
    "t3.before_commit": {2},
    "t3.after_commit": {1},
    "outbox.leased": {1},
    "outbox.before_send": {1},
    "upstream.before_connect": {1},
    "upstream.request_sent": {1},
    "upstream.first_byte": {1},
    "upstream.mid_event": {1},
    "upstream.done": {1},
    "outbox.after_send": {1},
    "outbox.before_mark": {1},
    "outbox.after_mark": {1},
}
# The receiver has had the delivery when we die, and gets it again. It may have had it at the last.
SENT_TWICE: Final = {
    *("upstream.first_byte", "upstream.mid_event", "upstream.done"),
    *("outbox.after_send", "outbox.before_mark"),
}
IN_DOUBT: Final = "upstream.request_sent"
# How many starts are killed there, one after the other.
RECOVERING: Final = {"recover.begin": 1, "recover.each_turn": 2, "recover.end": 1}
STOPPING: Final = ("drain.begin", "task.released", "drain.mid")
# A second step that is killed: the first one is not taken again.
SECOND: Final = {"step.begin:2": {2}, "step.done:2": {2}, "step.kept:2": {2}}
TAKEN_TWICE: Final = {"step.done": "first", "step.done:2": "second"}
CASES: Final = (*PASSED, *SECOND, *RECOVERING, *STOPPING)


class TaskCase:
    """One kill at one point, and everything that is looked at afterwards."""

    def __init__(self, scene: TaskScene, point: str, n: int = 0, *, fails: bool = False) -> None:
        self.kills = 0
        self._scene = scene
        self._point = point
        self._fails = fails
        name = point.replace(".", "_").replace(":", "_")
        self.run = f"{'fails' if fails else 'task'}_{name}_{n:03}"

    def faults(self) -> list[str]:
        """Die at the point, and look."""
        return [f"{self._point}: {fault}" for fault in self._act()]

    def _act(self) -> Iterator[str]:
        accepted: str | None
        if self._point in RECOVERING:
            accepted = self._die("step.kept")
            yield from self._die_recovering()
        elif self._point in STOPPING:
            accepted = self._die_stopping()
        elif self._fails:
            accepted = self._die_later()
        else:
            accepted = self._die(self._point)
        yield from self._look(accepted)

    # ---------------------------------------------------------------------------------- dying

    def _die(self, point: str) -> str | None:
        """Have a task accepted by a gateway that dies; its id, if that was told."""
        self._scene.arm(point)
        task = self._scene.try_send(self.run)
        self._dead()
        return task

    def _dead(self) -> None:
        assert self._scene.died(), f"{self._point} was never passed"
        self.kills += 1

    def _die_later(self) -> str:
        """The same, once its caller was surely told."""
        self._scene.hold(self.run)
        self._scene.arm(self._point)
        task = self._scene.accepted(self.run, "fail")
        self._scene.let_go(self.run)
        self._dead()
        return task

    def _die_stopping(self) -> str:
        scene = self._scene
        scene.hold(self.run)
        scene.arm(self._point)
        task = scene.accepted(self.run)
        until(lambda: scene.is_held(self.run), bool)
        assert scene.signal(signal.SIGTERM) == KILLED, f"{self._point} was never passed"
        self.kills += 1
        scene.let_go(self.run)
        return task

    def _die_recovering(self) -> Iterator[str]:
        for _ in range(RECOVERING[self._point]):
            self.kills += 1
            self._scene.end_leases()
            try:
                self._scene.acme.start(env={"CRASH_AT": self._point})
                yield "a start did not pass it"
            except AssertionError:
                self._scene.acme.kill()

    # -------------------------------------------------------------------------------- looking

    def _look(self, accepted: str | None) -> Iterator[str]:
        """Start again; let the caller repeat itself, wait for the end, and repeat it once more."""
        scene = self._scene
        scene.restart()
        task = accepted if accepted and self._fails else scene.accepted(self.run)
        if accepted not in {None, task}:
            yield f"the caller was told {accepted} and then {task}"
        record = scene.ended(task)
        scene.until_delivered(task)
        again = TAKEN_TWICE.get(self._point, "")
        yield from scene.faults(self.run, task, again=again, fails=self._fails)
        yield from self._counted()
        if not self._fails and scene.accepted(self.run) != task:
            yield "a repeat after the end is another task"
        if scene.ended(task).body != record.body:
            yield "it had two ends"

    def _counted(self) -> Iterator[str]:
        ((_, attempts),) = self._scene.attempts(self.run)
        expected = {2} if self._point in {*RECOVERING, *STOPPING} else {**PASSED, **SECOND}
        if isinstance(expected, dict):
            expected = expected[self._point]
        if attempts not in expected:
            yield f"it took {attempts} attempts, and not {expected}"
        copies = len(self._scene.received(self.run))
        if self._point != IN_DOUBT and copies != (2 if self._point in SENT_TWICE else 1):
            yield f"the delivery arrived {copies} times"
