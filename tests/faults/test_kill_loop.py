"""SIGKILL at random times under load: nothing acknowledged is lost, changed, or paid twice.

`FAULT_KILLS=300 pytest tests/faults/test_kill_loop.py` kills more often (`FAULT_SEED` elsewhere).
"""

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.client import HTTPException
from itertools import count

import pytest

from carnet.testing.history import History
from tests.faults.scene import PRICE, Pair, frames, ids, rows, said, two_gateways
from tests.support.http import Reply
from tests.support.served import executions

KILLS = int(os.environ.get("FAULT_KILLS", "8"))
SEED = int(os.environ.get("FAULT_SEED", "1"))
CLIENTS = 16
SHORTEST_SECONDS, LONGEST_SECONDS = 0.05, 0.6  # between a start and the next kill
REFUSED = {400, 401, 402, 403, 404, 422}  # what no retry changes


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with two_gateways(tmp_path_factory.mktemp("kills")) as pair:
        yield pair


class Client(threading.Thread):
    """Sends one turn after the other, each until it is answered."""

    def __init__(self, name: str, pair: Pair, history: History, stop: threading.Event) -> None:
        super().__init__(name=name, daemon=True)
        self._pair = pair
        self._history = history
        self._stop_asking = stop
        self._streams = int(name) % 2 == 1

    def run(self) -> None:
        for number in count():
            if self._stop_asking.is_set():
                return
            run = f"kill_{self.name}_{number}"
            while not self._settled(run):
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
    return said(lines) if lines and lines[-2] == b"data: [DONE]" and not failed else None


def kill_at_random(pair: Pair) -> None:
    dice = random.Random(SEED)  # noqa: S311  a time to kill is no secret
    for _ in range(KILLS):
        time.sleep(dice.uniform(SHORTEST_SECONDS, LONGEST_SECONDS))
        pair.a.kill()
        pair.a.start()


def present(pair: Pair) -> dict[str, list[str]]:
    """Every done turn of the load at A, by its run, as A answers it now."""
    done = rows(
        pair.a,
        "SELECT r.id FROM turn t JOIN run r ON r.n = t.run"
        " WHERE t.state = 'done' AND r.id LIKE 'kill\\_%' ESCAPE '\\'",
    )
    found: dict[str, list[str]] = {}
    for (run,) in done:
        reply = ask(pair, run, stream=False)
        found.setdefault(run, []).append(reply.text)
    return found


def entries(pair: Pair, side: str) -> dict[str, list[int]]:
    """What was billed for each run of the load."""
    gateway = pair.a if side == "a" else pair.b
    sums: dict[str, list[int]] = {}
    for run, amount in rows(
        gateway, "SELECT run, amount FROM ledger WHERE run LIKE 'kill\\_%' ESCAPE '\\'"
    ):
        sums.setdefault(run, []).append(amount)
    return sums


@pytest.mark.timeout(60 + 5 * KILLS)
def test_f10_kills_under_load_lose_change_and_bill_nothing_twice(pair: Pair) -> None:
    history, stop = History(), threading.Event()
    clients = [Client(str(n), pair, history, stop) for n in range(CLIENTS)]
    for client in clients:
        client.start()
    try:
        kill_at_random(pair)
    finally:
        stop.set()
        for client in clients:
            client.join(30)
    assert not any(client.is_alive() for client in clients)
    assert history.unsettled() == []
    assert history.count("refused") == 0
    assert history.count("ok") > KILLS
    cut_off = rows(pair.a, "SELECT COUNT(*) FROM turn WHERE attempt > 1")[0][0]
    assert cut_off > 0  # the kills did hit calls
    print(f"{history.count('ok')} ok, {cut_off} cut off")  # noqa: T201  with -s
    found = present(pair)
    assert history.faults(found) == []
    ours, theirs = entries(pair, "a"), entries(pair, "b")
    assert ours == theirs == {run: [PRICE] for run in found}
    check_executions(pair)
    for gateway in (pair.a, pair.b):
        assert rows(gateway, "PRAGMA integrity_check") == [("ok",)]
        assert rows(gateway, "SELECT COUNT(*) FROM turn WHERE state = 'running'") == [(0,)]
        assert rows(gateway, "SELECT COALESCE(SUM(reserved), 0) FROM purse") == [(0,)]


def check_executions(pair: Pair) -> None:
    """F04: B ran a turn again only where its own record says that an attempt was cut off."""
    ran = Counter(turn for turn in executions(pair.b.folder, "spoken") if "kill_" in turn)
    attempts = dict(rows(pair.b, "SELECT turn, MAX(attempt) FROM turn GROUP BY turn"))
    assert ran.keys() == {turn for turn in attempts if "kill_" in turn}
    assert {turn: n for turn, n in ran.items() if n > attempts[turn]} == {}
    done = "SELECT turn, COUNT(*) FROM turn WHERE state = 'done' GROUP BY turn HAVING COUNT(*) > 1"
    assert rows(pair.b, done) == []
