"""SIGKILL at random times under load, on either store."""

import random
import threading
import time
from http.client import HTTPException
from itertools import count

from carnet.testing.history import History
from carnet.testing.wait import until
from tests.crash.loops.clients import SETTLE_SECONDS, LoadClient, asking
from tests.crash.loops.figures import (
    Figures,
    cut_off,
    execution_faults,
    left_over,
    money_faults,
    ran,
    runs_of,
)
from tests.faults.scene import Pair, frames, ids, streamed_text
from tests.faults.stores import end_leases
from tests.support.http import Reply

CLIENTS = 16
SHORTEST_SECONDS, LONGEST_SECONDS = 0.05, 0.6  # between a start and the next kill
REFUSED = {400, 401, 402, 403, 404, 422}  # what no retry changes
LOAD = "kill_"


class Client(LoadClient):
    """Sends one turn after the other, each until it is answered."""

    def __init__(self, name: str, pair: Pair, history: History, stop: threading.Event) -> None:
        super().__init__(name, stop)
        self._pair = pair
        self._history = history
        self._streams = int(name) % 2 == 1

    def run(self) -> None:
        for n in count():
            if self.stop_asking.is_set():
                return
            run = f"{LOAD}{self.name}_{n:06}"
            while not self._settled(run) and not self.given_up:
                time.sleep(0.02)

    def _settled(self, run: str) -> bool:
        try:
            reply = ask(self._pair, run, stream=self._streams)
        except (OSError, HTTPException):
            self._history.unknown(run)
            return False
        return self._note(run, reply)

    def _note(self, run: str, reply: Reply) -> bool:
        if reply.status in REFUSED:
            self._history.refused(run)
        elif (answer := answer_of(reply, stream=self._streams)) is not None:
            self._history.ok(run, answer)
        else:  # 409, 429, 5xx, a stream that ended in an error: it may have run
            self._history.unknown(run)
            return False
        return True


def ask(pair: Pair, run: str, *, stream: bool) -> Reply:
    text = f"one two three {run}"
    return pair.a.chat(text, "@spoken@b.example", headers=ids(run), stream=stream)


def answer_of(reply: Reply, *, stream: bool) -> str | None:
    """The text of an answer that is whole."""
    if reply.status != 200:
        return None
    if not stream:
        return reply.text
    lines = reply.body.splitlines()
    failed = any(frame.get("error") for frame in frames(lines))
    whole = len(lines) > 1 and lines[-2] == b"data: [DONE]"
    return streamed_text(lines) if whole and not failed else None


def kill_at_random(pair: Pair, history: History, *, kills: int, seed: int) -> None:
    """Kill and start A again and again; each second time only once it has answered somebody."""
    dice = random.Random(seed)  # noqa: S311  a time to kill is no secret
    for n in range(kills):
        if n % 2:
            before = history.count("ok")
            until(lambda: history.count("ok") > before, seconds=SETTLE_SECONDS)  # noqa: B023
        time.sleep(dice.uniform(SHORTEST_SECONDS, LONGEST_SECONDS))
        pair.a.kill()
        end_leases(pair.a)
        pair.a.start()


def under_load(pair: Pair, history: History, *, kills: int, seed: int) -> None:
    """Kill while many clients ask; when they have all been answered, it is over."""
    stop = threading.Event()
    with asking([Client(str(n), pair, history, stop) for n in range(CLIENTS)]):
        kill_at_random(pair, history, kills=kills, seed=seed)


def kill_loop(pair: Pair, name: str, *, kills: int, seed: int) -> Figures:
    """The whole of it: the load, the kills, and what is found afterwards."""
    began = time.monotonic()
    history = History()
    under_load(pair, history, kills=kills, seed=seed)
    figures = Figures(name, kills=kills)
    figures.note(history)
    figures.cut_off = cut_off(pair.a)
    before = ran(pair, LOAD)
    done = runs_of(pair.a, LOAD)
    present: dict[str, list[str]] = {}
    for run in done:  # asking again finds what is recorded
        present.setdefault(run, []).append(ask(pair, run, stream=False).text)
    figures.faults += [f"{run}: was never settled" for run in history.unsettled()]
    figures.faults += history.faults(present)
    figures.faults += money_faults(pair, done, LOAD)
    figures.faults += execution_faults(pair, LOAD, before)
    figures.faults += left_over(pair)
    figures.seconds = time.monotonic() - began
    return figures
