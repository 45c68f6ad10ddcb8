"""Cores and the time spent on them; the memory and files of a process.

Law 1. A process counts with its whole tree, and with its children that have already ended.
Law 2. Where there are not two cores, nothing is pinned and the report says so.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")
# Fields of /proc/PID/stat behind the command name, counted from zero.
_PARENT = 1
_TIMES = slice(11, 15)  # utime, stime, and both of the children waited for
# Columns of a cpu line of /proc/stat that are idle time: idle and iowait.
_IDLE = slice(3, 5)
_COUNTED = 8  # user to steal; guest time is inside user time already


@dataclass(frozen=True, slots=True, kw_only=True)
class Cores:
    """Where the process under test runs, and where all others run; None is unpinned."""

    subject: int | None
    load: int | None
    usable: int  # how many there are

    @classmethod
    def choose(cls) -> "Cores":
        """The first two cores this process may use."""
        allowed = sorted(os.sched_getaffinity(0))
        if len(allowed) == 1:
            return cls(subject=None, load=None, usable=1)
        return cls(subject=allowed[0], load=allowed[1], usable=len(allowed))

    def __str__(self) -> str:
        if self.subject is None:
            return "one core only: nothing is pinned, load and subject share it"
        return f"subject on CPU {self.subject}, load and upstream on CPU {self.load}"


@contextmanager
def running_on(core: int | None) -> Iterator[None]:
    """Pin this thread, and whatever is started meanwhile, to one core."""
    before = os.sched_getaffinity(0)
    if core is not None:
        os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def tree_seconds(root: int) -> float:
    """User and system time of a process and all its descendants so far."""
    stats = _stats()
    wanted = {root}
    grown = True
    while grown:
        children = {pid for pid, fields in stats.items() if int(fields[_PARENT]) in wanted}
        grown = not children <= wanted
        wanted |= children
    ticks = sum(int(time) for pid in wanted & stats.keys() for time in stats[pid][_TIMES])
    return ticks / TICKS


def _stats() -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdecimal():
            try:
                line = (entry / "stat").read_text()
            except OSError:  # it ended while we looked
                continue
            # The command name may hold spaces and brackets; it ends at the last one.
            found[int(entry.name)] = line.rpartition(")")[2].split()
    return found


def resident_bytes(pid: int) -> int:
    """The memory of a process that is in RAM now (VmRSS)."""
    for line in (_PROC / str(pid) / "status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "VmRSS":
            return int(value.split()[0]) * 1024
    return 0


def open_files(pid: int) -> int:
    """How many files and sockets a process has open."""
    return len(list((_PROC / str(pid) / "fd").iterdir()))


def busy_seconds(core: int | None) -> float:
    """Time a core (unpinned: all of them together) has spent on anything, or had stolen."""
    name = "cpu" if core is None else f"cpu{core}"
    for line in (_PROC / "stat").read_text().splitlines():
        label, *columns = line.split()
        if label == name:
            ticks = [int(column) for column in columns[:_COUNTED]]
            return (sum(ticks) - sum(ticks[_IDLE])) / TICKS
    return 0.0
