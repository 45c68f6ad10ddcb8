"""What a person's conversations take to look at, whether she has a thousand or ten thousand.

Law 1. The gateway is asked over HTTP with her token, one request at a time; the figure is its CPU
       time for each.
Law 2. What was said is in the database before it starts: fifty messages a conversation, with the
       words by which they are found. One word is in all of them, one in each hundredth.
"""

import http.client
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench.cpu import tree_seconds
from bench.load import Wrong
from bench.machine import facts
from bench.subjects import Gateway, Site, gateway
from carnet.core.messages.events import Text, write_events
from carnet.core.people.identity import PERSON

NUMBERS: Final = (1_000, 10_000)
MESSAGES: Final = 50
ASKED: Final = 300  # times
MOST_SECONDS: Final = 0.050
TWICE: Final = 2.0  # times the figure of a thousand, at the most
OPENED: Final = "cnv_bench_500"
LOOKS: Final = {
    "list": "/conversations",
    "search, a word of all": "/conversations?search=tea",
    "search, two words": "/conversations?search=tea+budget",
    "open": f"/conversations/{OPENED}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one look takes."""

    name: str
    conversations: int
    cpu_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """One run."""

    facts: dict[str, str]
    rows: list[Look]

    def failures(self) -> Iterator[str]:
        """What is not as promised."""
        few = {
            each.name: each.cpu_seconds for each in self.rows if each.conversations == NUMBERS[0]
        }
        for each in self.rows:
            if each.cpu_seconds > MOST_SECONDS:
                yield f"{each.name} of {each.conversations}: over {MOST_SECONDS * 1000:g} ms"
            if each.cpu_seconds > TWICE * few[each.name]:
                yield f"{each.name} grows with the number of conversations"


def owner(site: Site) -> Looks:
    """All of them, one after the other."""
    rows: list[Look] = []
    for number in NUMBERS:
        print(f"writing {number:,} conversations of {MESSAGES} ...", file=sys.stderr, flush=True)
        with gateway(site, prepare=partial(_fill, number)) as running:
            for name, path in LOOKS.items():
                seconds = _asked(running, path)
                rows.append(Look(name=name, conversations=number, cpu_seconds=seconds))
    return Looks(facts=facts(site.folder, site.cores), rows=rows)


def _asked(running: Gateway, path: str) -> float:
    """The CPU time of one request, by many."""
    headers = {"authorization": f"Bearer {running.token}"}
    line = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
    with closing(line):
        for _ in range(ASKED // 10):
            _ask(line, path, headers)
        before = tree_seconds(running.pid)
        for _ in range(ASKED):
            _ask(line, path, headers)
        return (tree_seconds(running.pid) - before) / ASKED


def _ask(line: http.client.HTTPConnection, path: str, headers: dict[str, str]) -> None:
    line.request("GET", path, headers=headers)
    answer = line.getresponse()
    body = answer.read()
    if answer.status != http.client.OK or b'"cnv_bench_' not in body:
        raise Wrong(f"{path} is {answer.status}: {body[:200]!r}")


def _fill(number: int, folder: Path) -> None:
    """Write what was said, as a gateway would have."""
    parts = write_events([Text("tea and a budget, " * 10)])
    with closing(sqlite3.connect(folder / "var" / "carnet.db")) as database, database:
        (person,) = database.execute("SELECT n FROM person WHERE name = 'owner'").fetchone()
        whose = f"{PERSON}{person}"
        database.executemany(
            "INSERT INTO conversation (n, id, owner, agent, title, cause, created, updated, head,"
            " size) VALUES (?, ?, ?, 'echo', ?, 'message', ?, ?, ?, ?)",
            (
                (n, f"cnv_bench_{n}", whose, f"tea {n}", n, n, n * MESSAGES, MESSAGES)
                for n in range(1, number + 1)
            ),
        )
        database.executemany(
            "INSERT INTO message (n, id, conversation, owner, parent, role, author, parts, state,"
            " created, ended) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'whole', ?, ?)",
            _messages(number, whose, parts),
        )
        database.executemany(
            "INSERT INTO message_word (owner, word, conversation, source) VALUES (?, ?, ?, 0)",
            (
                (whose, word, n)
                for n in range(1, number + 1)
                for word in ("tea", *(("budget",) if n % 100 == 0 else ()))
            ),
        )


def _messages(number: int, whose: str, parts: bytes) -> Iterator[tuple[Any, ...]]:
    for n in range(1, number * MESSAGES + 1):
        conversation, place = divmod(n - 1, MESSAGES)
        role, author = ("assistant", "echo") if place % 2 else ("user", None)
        parent = n - 1 if place else None
        yield n, f"msg_bench_{n}", conversation + 1, whose, parent, role, author, parts, n, n


def show_looks(found: Looks) -> None:
    """Print the rows and what was promised of them."""
    for name, fact in found.facts.items():
        print(f"{name:<9} {fact}")
    print(f"{'method':<9} {ASKED} requests each, one at a time, on SQLite; CPU of the gateway\n")
    print(f"{'':<24} {'conversations':>13} {'CPU each':>10}")
    for each in found.rows:
        print(f"{each.name:<24} {each.conversations:>13,} {each.cpu_seconds * 1000:>7.2f} ms")
    print()
    wrong = list(found.failures())
    print("\n".join(wrong) if wrong else f"under {MOST_SECONDS * 1000:g} ms each, and flat: held")


def looks_json(found: Looks) -> dict[str, Any]:
    """The same for machines."""
    rows = [
        {
            "name": each.name,
            "conversations": each.conversations,
            "cpu_seconds": each.cpu_seconds,
        }
        for each in found.rows
    ]
    return {"machine": found.facts, "looks": rows}
