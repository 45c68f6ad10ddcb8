"""Every crash point between a question three hops down and its end, at each organisation.

Each case gives the faults that it found; none is well. The tests kill at each point once, at the
organisation and on the store that a hash names; `make crash` at each of the three that passes it,
on each store, the first time that it is passed, the second, and so on.
"""

import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from typing import Final, Literal, NamedTuple

from carnet.testing.wait import until
from tests.crash.loops.figures import AGAIN
from tests.crash.loops.kills import arm, disarm
from tests.crash.loops.questions import WELL, WHO, QuestionScene
from tests.faults.stores import end_leases
from tests.support.http import request
from tests.support.organisation import Organisation

When = Literal["asked", "answered", "stopped", "recovered"]

KILLED: Final = -9
PAUSE_SECONDS: Final = 0.05

_CALLED: Final = ("recv.body", "parse.ok", "t1.begin", "t1.before_commit", "t1.after_commit")
_CALLS: Final = (
    *("upstream.before_connect", "upstream.request_sent", "upstream.first_byte"),
    *("upstream.mid_event", "upstream.done"),
)
_ENDS: Final = ("t3.begin", "t3.before_commit", "t3.after_commit")
_SPENDS: Final = "budget.written"  # of one that was told what it may spend, and calls others
_REPLIES: Final = ("reply.before_write", "reply.after_write")

# While the call is made and begins to wait. What waits is told as an error is, and of those nobody
# notes that they were written; the sibling at Globex answers.
ASKED: Final = {
    "acme": (*_CALLED, *_CALLS, *_ENDS, "wait.kept", "reply.before_write"),
    "globex": (*_CALLED, "t1.nonce", _SPENDS, *_CALLS, *_ENDS, "wait.kept", *_REPLIES),
    "initech": (*_CALLED, "t1.nonce", *_ENDS, "wait.kept", "reply.before_write"),
}
# From the answer in the inbox until the call, made again, has been answered.
ANSWERED: Final = {
    "acme": (
        *("answer.begin", "answer.done", "resolve.used", "task.queued", "task.leased"),
        *(*_CALLED, *_CALLS, *_ENDS, *_REPLIES),
    ),
    "globex": (*_CALLED, "t1.nonce", "resolve.used", _SPENDS, *_CALLS, *_ENDS, *_REPLIES),
    "initech": (*_CALLED, "t1.nonce", "resolve.used", *_ENDS, *_REPLIES),
}
STOPPED: Final = ("drain.begin", "drain.mid")  # of a gateway that is told to stop while it waits
RECOVERED: Final = ("recover.begin", "recover.each_turn", "recover.end")  # after a first kill
FIRST_KILL: Final = "t3.begin"


class Place(NamedTuple):
    """Where somebody dies."""

    when: When
    who: str
    point: str

    def __str__(self) -> str:
        return f"{self.point}-{self.who}-{self.when}"


PLACES: Final = (
    *(Place("asked", who, point) for who in WHO for point in ASKED[who]),
    *(Place("answered", who, point) for who in WHO for point in ANSWERED[who]),
    *(Place("stopped", who, point) for who in WHO for point in STOPPED),
    *(Place("recovered", who, point) for who in WHO for point in RECOVERED),
)
CASES: Final = tuple(dict.fromkeys(place.point for place in PLACES))  # each point once


def chosen_place(point: str) -> Place:
    """Where the tests kill at a point."""
    found = [place for place in PLACES if place.point == point]
    return found[zlib.crc32(f"kill at {point}".encode()) % len(found)]


class QuestionCase:
    """One kill at one place, and everything that is looked at afterwards."""

    def __init__(self, scene: QuestionScene, place: Place, n: int = 0) -> None:
        """`n` is how often the point is passed before: from there on it may be that it never is."""
        self.kills = 0
        self.is_passed = False  # the point, so often
        self._scene = scene
        self._place = place
        self._plan = f"{place.point}:{n + 1}"
        self._may_miss = n > 0
        self._victim: Organisation = scene.gateway(place.who)
        self._run = f"{str(place).replace('.', '_').replace('-', '_')}_{n:03}"

    def faults(self) -> list[str]:
        """Die at the place, and look."""
        return [f"{self._place}: {fault}" for fault in self._act()]

    def _act(self) -> Iterator[str]:
        scene, when = self._scene, self._place.when
        if when == "asked":
            self.is_passed = self._die(self._plan, self._ask, self._restart)
        waits = scene.until_asked(self._run)
        name = scene.question(self._run)["id"]
        ran = scene.sibling_runs()
        if when == "answered":
            self.is_passed = self._die(self._plan, lambda: self._answer(name), self._restart)
        elif when == "recovered":
            self._die(FIRST_KILL, lambda: self._answer(name), self._die_recovering)
        elif when == "stopped":
            self._die_stopping()
        assert self.is_passed or self._may_miss, f"{self._place} was never passed"
        scene.until_answered(name)
        yield from scene.end_faults(self._run, waits, name)
        if scene.sibling_runs() != ran:
            yield f"the sibling that had answered {AGAIN}"

    # ---------------------------------------------------------------------------------- acting

    def _ask(self) -> None:
        self._scene.ask(self._run)

    def _answer(self, name: str) -> None:
        """Answer, and make the call again until it has ended or somebody has died."""
        self._scene.answer(name)
        until(
            lambda: self._scene.ask(self._run),
            lambda reply: self._is_dead() or (reply is not None and reply.status == WELL),
            pause=PAUSE_SECONDS,
        )

    # ---------------------------------------------------------------------------------- dying

    def _die(self, plan: str, act: Callable[[], None], then: Callable[[], None]) -> bool:
        """Kill one of them while something is done, and then start it; whether it has died.

        Whoever called may wait for it until then.
        """
        arm(self._victim, plan)
        with ThreadPoolExecutor(1) as pool:
            acting = pool.submit(act)
            until(lambda: self._is_dead() or acting.done())
            has_died = not self._lives()
            if has_died:
                assert self._victim.died()
                self.kills += 1
                then()
            else:
                disarm(self._victim)
            acting.result()
        return has_died

    def _is_dead(self) -> bool:
        process = self._victim.process
        return process is None or process.poll() is not None

    def _lives(self) -> bool:
        """Whether it has outlived what was done: it may die just after it has answered."""
        try:
            return (
                not self._is_dead() and request("GET", f"{self._victim.url}/healthz").status == WELL
            )
        except (OSError, HTTPException):
            return False

    def _restart(self) -> None:
        self._scene.restart(self._place.who)

    def _die_stopping(self) -> None:
        arm(self._victim, self._plan)
        self.is_passed = self._victim.stop() == KILLED
        self.kills += self.is_passed
        self._restart()

    def _die_recovering(self) -> None:
        end_leases(self._victim)
        try:
            self._victim.start(env={"CRASH_AT": self._plan})
        except AssertionError:  # it ended before it served
            self.is_passed = True
            self.kills += 1
        self._victim.kill()
        self._restart()
