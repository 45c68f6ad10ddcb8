"""One module reads the time and draws random numbers, and the inner rooms do no I/O.

The import contracts say the second already; this is the net below them, and it also sees calls.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.tree import PACKAGE, imports, name_of, package_modules, parsed

# The Clock and the Ids of a running gateway. Everything else is handed what it needs.
DOOR = PACKAGE / "runtime" / "system.py"

CLOCKS = {
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "datetime.datetime.today",
    "datetime.date.today",
    "time.time",
    "time.time_ns",
    "time.localtime",
    "time.gmtime",
}
DICE = {"uuid.uuid1", "uuid.uuid4", "os.urandom", "os.getrandom", "random", "secrets"}

PURE_ROOMS = ("core", "wire", "errors")
IMPURE = {
    *("asyncio", "anyio", "concurrent", "multiprocessing", "selectors", "threading"),
    *("socket", "ssl", "http.client", "urllib.request", "httptools", "uvicorn", "uvloop"),
    *("os", "pathlib", "shutil", "subprocess", "tempfile", "sqlite3", "asyncpg"),
    *("time", "random", "secrets", "logging", "prometheus_client"),
}


def covers(banned: set[str], dotted: str) -> bool:
    """Is the name, or a package it is in, banned?"""
    parts = dotted.split(".")
    return any(".".join(parts[:n]) in banned for n in range(1, len(parts) + 1))


def dotted_uses(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield (line, origin) of every imported name and of every attribute read through one."""
    origins: dict[str, str] = {}
    for line, bound, origin in imports(tree):
        origins[bound] = origin
        yield line, origin
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            dotted = ast.unparse(node)
            head, _, rest = dotted.partition(".")
            if head in origins:
                yield node.lineno, f"{origins[head]}.{rest}"


def offences(path: Path, banned: set[str]) -> set[str]:
    return {
        f"{name_of(path)}:{line} {dotted}"
        for line, dotted in dotted_uses(parsed(path))
        if covers(banned, dotted)
    }


def test_the_net_sees_a_clock_however_it_is_imported() -> None:
    scene = """
import datetime as dt, time, os
from datetime import datetime
from time import time as now
def f():
    dt.datetime.now()
    datetime.now()
    now()
    time.time()
    os.urandom(8)
    datetime.fromisoformat("2026-01-01")
    time.monotonic()
"""
    seen = [dotted for _, dotted in dotted_uses(ast.parse(scene)) if covers(CLOCKS | DICE, dotted)]
    assert sorted(seen) == [
        "datetime.datetime.now",
        "datetime.datetime.now",
        "os.urandom",
        "time.time",
        "time.time",
    ]


def test_only_one_module_reads_the_clock_or_draws_randomness() -> None:
    others = (path for path in package_modules() if path != DOOR)
    assert sorted(set().union(*(offences(path, CLOCKS | DICE) for path in others))) == []


def test_core_wire_and_errors_import_nothing_that_does_io() -> None:
    pure = (p for p in package_modules() if p.relative_to(PACKAGE).parts[0] in PURE_ROOMS)
    found = {
        f"{name_of(path)}:{line} {origin}"
        for path in pure
        for line, _, origin in imports(parsed(path))
        if covers(IMPURE, origin)
    }
    assert sorted(found) == []
