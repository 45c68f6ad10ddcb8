"""Runs by their names, and the names that are not in the index yet.

Who calls chooses the name of a run, or the key that it is made of, and so it falls anywhere in the
index: each new run would write a page of 8 KiB for its few bytes. Here such names wait until many
are there, and go into the index in its order, so that one page takes several.

It is not where a name is kept: that is the row of the run, written with its first call.

Law 1. What waits here is what stands in the table with `named = 0`, and nothing else: it is read
       from there at the start, and follows each transaction to its commit or its end.
Law 2. A name that waits is found by the process that writes turns here, and by all others in the
       view `run_by_name`, which reads through those few rows.
Law 3. A row that was pruned meanwhile is no run any more, whatever waits here.
Law 4. What goes into the index goes with transactions that are made anyway, and holds up none of
       them for long; one that could not be committed goes without when it comes again.
Law 5. A name that the index cannot take, since it stands there already, waits on and is logged.
"""

import logging
import time
from collections.abc import Iterable
from typing import Final

from carnet.stores.database import Row
from carnet.stores.turn.claim_rules import Run
from carnet.stores.turn.row import Lookup, SqlConnection

_log = logging.getLogger(__name__)

MOST_WAITING: Final = 4096
MOST_AT_A_TIME: Final = 512  # that go into the index with one transaction
STEP: Final = 64  # after so many it looks at the time
MOST_SECONDS: Final = 0.01  # then no more go with this one

INSERT_RUN: Final = (
    "INSERT INTO run (n, id, issuer, account, calls, started, named) VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_WAITING: Final = "SELECT id, issuer, account, n FROM run WHERE named = 0 ORDER BY n"
_INDEX: Final = "UPDATE OR IGNORE run SET named = 1 WHERE n = ?"
_LEFT: Final = "SELECT 1 FROM run WHERE n = ? AND named = 0"
_NAMED: Final = Lookup(
    "WITH w (id, issuer, account) AS (VALUES {keys})"
    " SELECT r.id, r.issuer, r.account, r.n, r.calls FROM w CROSS JOIN run r"
    " ON r.id = w.id AND r.issuer = w.issuer AND r.account = w.account AND r.named = 1",
    width=3,
)
_NUMBERED: Final = Lookup(
    "WITH w (n) AS (VALUES {keys})"
    " SELECT r.id, r.issuer, r.account, r.n, r.calls FROM w CROSS JOIN run r ON r.n = w.n",
    width=1,
)


class RunNames:
    """Names that wait, and those that go into the index."""

    __slots__ = (
        *("_added", "_going", "_leaving", "_marked", "_most", "_refused", "_waiting"),
        *("are_many", "have_changed"),
    )

    def __init__(self, connection: SqlConnection | None) -> None:
        """None, where another process writes turns: then it has them."""
        waiting = [] if connection is None else connection.execute(_WAITING).fetchall()
        self._waiting: dict[Row, int] = {row[:3]: row[3] for row in waiting}
        self._added: list[Row] = []  # by the transaction under way
        self._marked = 0  # so many of them before its savepoint
        self._leaving: list[tuple[Row, int]] = []  # the last ones go first
        self._going: list[tuple[Row, int]] = []  # with the transaction under way
        self._refused: set[int] = set()  # that the index could not take
        self._most = MOST_WAITING  # beside those
        self.are_many = len(waiting) >= MOST_WAITING  # so that some are to go
        self.have_changed = False  # in the transaction under way

    def read(self, connection: SqlConnection, names: Iterable[Row]) -> list[Row]:
        """Of each run that there is: its name, issuer and account, its number, and its calls."""
        named: list[str] = []
        numbered: list[int] = []
        for name in names:
            if name in self._waiting:
                numbered += (self._waiting[name],)
            else:
                named += name
        found: list[Row] = _NAMED(connection, named)
        return found + _NUMBERED(connection, numbered) if numbered else found

    def add(self, runs: Iterable[Run]) -> None:
        """Take in those that were inserted with `named = 0`."""
        self.have_changed = True
        for run in runs:
            if run.calls and not run.was and not run.is_ours:
                self._waiting[run.key] = run.n
                self._added += (run.key,)

    def begin(self, connection: SqlConnection) -> None:
        """Take some into the index with the transaction that has begun."""
        self.have_changed = True
        if not self._leaving:
            waiting = [one for one in self._waiting.items() if one[1] not in self._refused]
            self._leaving = sorted(waiting, reverse=True)
        until = time.monotonic() + MOST_SECONDS
        end = len(self._leaving)
        first = max(0, end - MOST_AT_A_TIME)
        while end > first:
            begun, end = end, max(first, end - STEP)
            some = self._leaving[end:begun]
            taken = connection.executemany(_INDEX, [(n,) for _, n in some]).rowcount
            if taken < len(some):
                self._note_refused(connection, some)
            if time.monotonic() > until:
                break
        self._going = self._leaving[end:]

    def _note_refused(self, connection: SqlConnection, some: list[tuple[Row, int]]) -> None:
        """Find those that are still there; the others were pruned."""
        for name, n in some:
            if connection.execute(_LEFT, (n,)).fetchone() is not None:
                self._refused.add(n)
                self._most = MOST_WAITING + len(self._refused)
                _log.error("the name of a run stands twice", extra={"run": name[0]})

    def keep(self) -> None:
        """The transaction is committed."""
        if self._going:
            for name, n in self._going:
                # Else it waits on, or its row was pruned and there is a new one.
                if n not in self._refused and self._waiting.get(name) == n:
                    del self._waiting[name]
            del self._leaving[-len(self._going) :]
            self._going = []
        self._added = []
        self.have_changed = False
        self.are_many = bool(self._leaving) or len(self._waiting) >= self._most

    def back(self) -> None:
        """It was rolled back."""
        self._going = []
        self._marked = 0
        self.undo()
        self.are_many = False  # the next one goes without
        self.have_changed = True  # and when it is committed, this is looked at again

    def mark(self) -> None:
        """Remember this place, for a savepoint."""
        self._marked = len(self._added)

    def undo(self) -> None:
        """Go back to the place that was marked."""
        for name in self._added[self._marked :]:
            self._waiting.pop(name, None)
        del self._added[self._marked :]
