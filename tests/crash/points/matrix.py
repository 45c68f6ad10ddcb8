"""Every crash point of a gateway: die there, start again, and compare what is there with the spec.

Each case gives the faults that it found; none is well. The tests run each once, on the store that
choice.py names; `make crash` ten times on each.
"""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPException
from itertools import count
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from carnet.stores.open import database_path, is_postgres
from carnet.testing.history import History
from tests.crash.loops.figures import AGAIN, LOST, execution_faults, money_faults, ran
from tests.faults.scene import Pair
from tests.faults.stores import end_leases, number, rows, store_of
from tests.stores.support import servers
from tests.support.http import Reply
from tests.support.organisation import Organisation

KILLED: Final = -9
SETTLE_SECONDS: Final = 30.0
OLD_US: Final = 2 * 24 * 3600 * 1_000_000

# What A has recorded when it has been asked again: how many attempts its one turn took. A crash
# before the claim is committed leaves no attempt, one after the end is committed leaves the answer.
WHOLE: Final = {
    "recv.body": 1,
    "parse.ok": 1,
    "t1.begin": 1,
    "t1.before_commit": 1,
    "t1.after_commit": 2,
    "upstream.before_connect": 2,
    "upstream.request_sent": 2,
    "upstream.first_byte": 2,
    "upstream.done": 2,
    "t3.begin": 2,
    "t3.before_commit": 2,
    "t3.after_commit": 1,
    "reply.before_write": 1,
    "reply.after_write": 1,
}
STREAMED: Final = {
    "upstream.mid_event": 2,
    "event.before_t2": 2,
    "event.after_t2": 2,
    "event.after_socket_write": 2,
    "reply.half_written": 2,
}
# How many starts are killed there, one after the other.
RECOVERING: Final = {"recover.begin": 2, "recover.each_turn": 5, "recover.end": 2}
DRAINING: Final = ("drain.begin", "drain.mid")
UPKEEP: Final = ("migrate.mid", "purge.mid")  # by commands
# How many keys there are when a command that replaces the key has died there.
ROTATING: Final = {"rotate.before_switch": 1, "rotate.after_switch": 2}
# Which store there is when a command that restores a backup has died there.
RESTORING: Final = {"restore.checked": "old", "restore.mid": "old", "restore.done": "new"}
CASES: Final = (*WHOLE, *STREAMED, *RECOVERING, *DRAINING, *UPKEEP, *ROTATING, *RESTORING)
# B may have been running the turn when A died, and have been cut off with it.
CUT_OFF: Final = {"upstream.request_sent", *STREAMED}


def ask(gateway: Organisation, run: str, *, stream: bool) -> Reply | None:
    """Send the turn; None if no whole answer came."""
    ids = [("x-tangle-runid", run), ("x-tangle-turnid", f"{run}.t0.spoken")]
    options: dict[str, Any] = {"stream": stream}
    if stream:
        options["stream_options"] = {"include_usage": True}
    try:
        reply = gateway.chat("one two three", "@spoken@b.example", headers=ids, **options)
    except (OSError, HTTPException):
        return None
    whole = reply.body.endswith(b"data: [DONE]\n\n") if stream else reply.status == 200
    return reply if whole else None


class Case:
    """One kill at one point, and everything that is looked at afterwards."""

    def __init__(self, pair: Pair, point: str, n: int = 0) -> None:
        self.history = History()
        self.kills = 0
        self.cut_off = 0
        self._pair = pair
        self._a = pair.a
        self._point = point
        self._run = f"at_{point.replace('.', '_')}_{n:03}"
        self._streams = point in STREAMED

    def faults(self) -> list[str]:
        """Die at the point, and look."""
        return [f"{self._point}: {fault}" for fault in self._act()]

    def _act(self) -> Iterator[str]:
        if self._point == "migrate.mid":
            yield from self._die_migrating()
            return
        if self._point in ROTATING:
            yield from self._die_rotating()
            return
        if self._point in RESTORING:
            yield from self._die_restoring()
            return
        if self._point in DRAINING:
            reply = self._answered({"CRASH_AT": self._point})
            yield from self._die_draining()
        elif self._point in RECOVERING:
            reply = self._cut_off("upstream.done")
            yield from self._die_recovering()
        elif self._point == "purge.mid":
            reply = self._answered({})
            yield from self._die_pruning()
        else:
            reply = self._cut_off(self._point)
        yield from self._look(reply)

    # ---------------------------------------------------------------------------------- dying

    def _restart(self, env: dict[str, str]) -> None:
        self._a.kill()
        end_leases(self._a)
        self._a.start(env=env)

    def _ask(self) -> Reply | None:
        reply = ask(self._a, self._run, stream=self._streams)
        if reply is None:
            self.history.unknown(self._run)
        else:
            self.history.ok(self._run, reply.body.decode())
        return reply

    def _settled(self) -> Reply | None:
        """Ask until it is answered: B may still be busy with what was cut off."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while (reply := self._ask()) is None and time.monotonic() < deadline:
            time.sleep(0.05)
        return reply

    def _answered(self, env: dict[str, str]) -> Reply | None:
        """Have the turn answered by a gateway that will die later."""
        self._restart(env)
        assert self._a.chat("something older", "paid").status == 200
        return self._ask()

    def _cut_off(self, point: str) -> Reply | None:
        """Ask a gateway that dies at the point; the answer, if it was out already."""
        self._restart({"CRASH_AT": point})
        answer = self._ask()
        assert self._a.died(), f"{point} was never passed"
        self.kills += 1
        return answer

    def _die_draining(self) -> Iterator[str]:
        self.kills += 1
        code = self._a.stop()
        if code != KILLED:
            yield f"the gateway ended with {code} instead of dying"

    def _die_recovering(self) -> Iterator[str]:
        for _ in range(RECOVERING[self._point]):
            self.kills += 1
            end_leases(self._a)
            try:
                self._a.start(env={"CRASH_AT": self._point})
                yield "a start did not pass it"
            except AssertionError:
                self._a.kill()

    def _die_pruning(self) -> Iterator[str]:
        """All other turns are old: they go, in the next try, and their ledger entries stay."""
        age = "UPDATE turn SET ended = ended - ? WHERE run <> (SELECT n FROM run WHERE id = ?)"
        rows(self._a, age, OLD_US, self._run)
        ledger = rows(self._a, "SELECT COUNT(*), SUM(amount) FROM ledger")
        days = {"CARNET__RETENTION__TURNS": "1", "CARNET__RETENTION__EVENTS": "1"}
        self.kills += 1
        died = self._a.try_carnet("prune", env={**days, "CRASH_AT": self._point})
        if died.returncode != KILLED:
            yield f"prune ended with {died.returncode} instead of dying"
        self._a.carnet("prune", env=days)
        if number(self._a, "SELECT COUNT(*) FROM turn") != 1:
            yield "prune did not finish what was begun"
        if rows(self._a, "SELECT COUNT(*), SUM(amount) FROM ledger") != ledger:
            yield "prune has changed the ledger"

    def _die_rotating(self) -> Iterator[str]:
        """Beside a gateway: one key signs before and after, and the old one is honoured."""
        self._restart({})
        states = ["next", "active"][-ROTATING[self._point] :]
        before = self._keys()
        self.kills += 1
        died = self._a.try_carnet("keys", "rotate", env={"CRASH_AT": self._point})
        if died.returncode != KILLED:
            yield f"rotate ended with {died.returncode} instead of dying"
        after = self._keys()
        new = after[: len(after) - len(before)]
        if [state for _, state in after][: len(states)] != states or len(new) != len(states) - 1:
            yield f"the keys were {before} and are {after}"
        self._restart({})
        self._a.carnet("keys", "rotate", "--at-once")
        now = [state for _, state in self._keys()]
        if now[0] != "active" or {"next", "active"} & set(now[1:]):
            yield f"after another rotation the keys are {self._keys()}"

    def _keys(self) -> list[tuple[str, str]]:
        found = self._a.json("keys", "list", "--all")["keys"]
        return [(key["kid"], key["state"]) for key in found]

    def _die_restoring(self) -> Iterator[str]:
        """The store is what it was, or what was kept, with every row of it; then it is restored."""
        self._answered({})
        file = f"{self._run}.db"
        kept = self._turns()
        self._a.carnet("backup", file)
        assert self._a.chat("after the backup", "paid").status == 200
        self._a.stop()
        old = self._turns()
        self.kills += 1
        died = self._a.try_carnet("restore", file, "--force", env={"CRASH_AT": self._point})
        if died.returncode != KILLED:
            yield f"restore ended with {died.returncode} instead of dying: {died.stderr}"
        if self._turns() != {"old": old, "new": kept}[RESTORING[self._point]]:
            yield f"the turns were {old}, {kept} in the backup, and are {self._turns()}"
        if not self._a.json("ledger", "verify")["ok"]:
            yield "the ledger does not verify"
        self._a.carnet("restore", file, "--force")
        if self._turns() != kept:
            yield f"the turns of the backup were {kept} and are {self._turns()}"
        yield from self._look(self._ask_restarted())

    def _turns(self) -> list[tuple[Any, ...]]:
        return rows(self._a, "SELECT n, state FROM turn ORDER BY n")

    def _ask_restarted(self) -> Reply | None:
        self._restart({})
        return self._ask()

    def _die_migrating(self) -> Iterator[str]:
        """A new database, killed in the midst of each migration, is empty or has them all."""
        url = new_database(self._a, self._run)
        name_it = {"CARNET__STORE__URL": url}
        for n in count(1):
            done = self._a.try_carnet("migrate", env={**name_it, "CRASH_AT": f"{self._point}:{n}"})
            if done.returncode == 0 and n > 1:
                break
            self.kills += 1
            if done.returncode != KILLED:
                yield f"migrate ended with {done.returncode} instead of dying: {done.stderr}"
                break
            if tables(self._a, url):
                yield f"a half of the layout was left: {tables(self._a, url)}"
        self._a.kill()
        self._a.start(env=name_it)  # the next migrate has finished it: it serves
        self._a.kill()
        forget_database(self._a, url)

    # -------------------------------------------------------------------------------- looking

    def _look(self, reply: Reply | None) -> Iterator[str]:
        """Start again, repeat the turn twice, and look at both sides."""
        before = ran(self._pair, self._run)
        self._restart({})
        again = self._ask() if reply else self._settled()
        repeated = self._ask()
        if again is None or repeated is None:
            yield f"{self._run} {LOST if reply else 'cannot be had'}"
            return
        if again.body != repeated.body:
            yield "two repeats differ"
        yield from self.history.faults({self._run: [again.body.decode()]})
        yield from self._recorded()
        now = ran(self._pair, self._run)
        yield from money_faults(self._pair, [self._run], self._run)
        yield from execution_faults(self._pair, self._run, before if reply else now)
        if self._point not in CUT_OFF and now.total() != 1:
            yield f"{self._run} {AGAIN}: {now.total()} times"

    def _recorded(self) -> Iterator[str]:
        """One done turn, with as many attempts as the point implies."""
        turn = "SELECT t.state, t.attempt FROM turn t JOIN run r ON r.n = t.run WHERE r.id = ?"
        found = rows(self._a, turn, self._run)
        attempts = {**WHOLE, **STREAMED, **dict.fromkeys(RECOVERING, 2)}.get(self._point, 1)
        self.cut_off = attempts - 1
        if found != [("done", attempts)]:
            yield f"the turn is recorded as {found}, and not as done in attempt {attempts}"


def new_database(gateway: Organisation, name: str) -> str:
    """The URL of an empty database beside the gateway's own."""
    url = store_of(gateway)
    if not is_postgres(url):
        return f"sqlite:var/{name}.db"
    own = urlsplit(url)
    path = f"{own.path}_{name}"
    rows(gateway, f"CREATE DATABASE {path[1:]}")
    return urlunsplit(own._replace(path=path))


def forget_database(gateway: Organisation, url: str) -> None:
    if is_postgres(url):
        rows(gateway, f"DROP DATABASE {urlsplit(url).path[1:]} WITH (FORCE)")


def tables(gateway: Organisation, url: str) -> list[str]:
    """What a database holds."""
    if is_postgres(url):
        sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        return [name for (name,) in servers.rows(url, sql)]
    with closing(sqlite3.connect(database_path(url, gateway.folder))) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM sqlite_schema")]
