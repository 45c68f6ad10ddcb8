"""Two tenants of one gateway: what belongs to one of them, and the same questions of the other.

Each question is asked about something that is the other's and about something that never was.
"""

import http.client
import itertools
import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from msgspec import Struct

from bench import a2a_peer
from bench.bodies import CHAT_PATH, chat_request, post
from bench.calls import ROOT
from bench.process import run, serving
from carnet.testing.address import Address

PATIENCE_SECONDS = 30.0
TURNS = 40
ALICES = "run-alice"
AGENTS = """
[agents.asks]
kind = "python"
target = "agents:asks"
"""
ASKS = """

async def asks(visit):
    await visit.interrupt(approval="May I?")
    yield "yes"
"""
NOBODYS = "0196b7a0-0000-7000-8000-{:012d}"  # ids that were never given, in the form of ours


class Question(Struct, frozen=True):
    """One way to ask: about what is the other tenant's, and about what is nobody's."""

    name: str
    foreign: Iterator[bytes]
    unknown: Iterator[bytes]


class Line:
    """A connection that is kept."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS)

    def ask(self, request: bytes) -> tuple[int, bytes]:
        """Send a request and read its answer."""
        self.socket.sendall(request)
        response = http.client.HTTPResponse(self.socket)
        response.begin()
        return response.status, response.read()

    def close(self) -> None:
        self.socket.close()


class House(Struct, frozen=True):
    """A gateway with two tenants."""

    port: int
    counts: Path | None  # where a counted one tells what it has called
    alice: str  # whose things are asked for
    mallory: str  # who asks


@contextmanager
def house(folder: Path, *, is_counted: bool) -> Iterator[House]:
    """A gateway in a folder; where it `is_counted`, it tells which functions it has called."""
    python = sys.executable
    known = os.environ.get("PYTHONPATH", "")  # first, where a mutant stands before the source
    env = {"PYTHONPATH": ":".join([*known.split(":"), str(ROOT), str(ROOT / "src")]).strip(":")}
    carnet = [python, "-m", "carnet.cli.main"]
    with Address() as at:
        run([*carnet, "init", str(folder), "--port", str(at.port)], folder=folder, env=env)
        with (folder / "carnet.toml").open("a") as settings:
            settings.write(AGENTS)
        with (folder / "agents.py").open("a") as agents:
            agents.write(ASKS)
        tokens = []
        for name in ("alice", "mallory"):
            words = ["tokens", "create", name, "--format", "json"]
            out = folder / f"{name}.json"
            shell = f"{python} -m carnet.cli.main {' '.join(words)} > {out}"
            run(["/bin/sh", "-c", shell], folder=folder, env=env)
            tokens.append(json.loads(out.read_text())["token"])
        counts = folder / "counts" if is_counted else None
        program = ["bench.counted", str(counts)] if is_counted else ["carnet.cli.main"]
        command = [python, "-m", *program, "serve", "--fd", str(at.fd)]
        env |= {"CARNET__LIMITS__RUN_CALLS": "1000000000"}
        with serving(command, at=at, core=None, folder=folder, env=env):
            yield House(at.port, counts, *tokens)


def questions(house: House) -> list[Question]:
    """What mallory asks, once alice has something to ask for."""
    names = made(house)

    def about(form: str, kind: str, method: str = "GET") -> tuple[Iterator[bytes], Iterator[bytes]]:
        never = (NOBODYS.format(n) for n in itertools.count())
        asked = partial(_asked, house.mallory, method)
        return itertools.repeat(asked(form.format(names[kind]))), map(
            asked, map(form.format, never)
        )

    return [
        Question("a run", *about("/runs/{}", "run")),
        Question("events of a run", *about("/runs/{}/events", "run")),
        Question("end of a run", *about("/runs/{}/cancel", "run", "POST")),
        Question("a task", *about("/tasks/{}", "task")),
        Question("end of a task", *about("/tasks/{}/cancel", "task", "POST")),
        Question("a task of A2A", *about("/a2a/tasks/{}", "a2a")),
        Question("a question", *about("/approvals/{}", "asked")),
    ]


def copies(house: House) -> Question:
    """Calls of mallory's, each under ids that alice has used, or under such that nobody has."""
    made(house)
    return Question("a turn", _calls(house, ALICES), _calls(house, "run-nobody"))


def _calls(house: House, run: str) -> Iterator[bytes]:
    for number in itertools.count(1):
        yield post(CHAT_PATH, chat_request("echo"), _fields(house.mallory, run, number))


def made(house: House) -> dict[str, str]:
    """The ids of what is alice's: a run with many turns, tasks, and a question that waits."""
    line = Line(house.port)
    for number in range(TURNS):  # whoever looks through them takes its time
        status, answer = line.ask(
            post(CHAT_PATH, chat_request("echo"), _fields(house.alice, ALICES, number))
        )
        assert status == 200, answer
    shown = {"authorization": f"Bearer {house.alice}"}
    _, accepted = line.ask(post("/tasks", chat_request("echo"), shown))
    _, sent = line.ask(next(a2a_peer.requests(**shown)))
    _, waits = line.ask(post(CHAT_PATH, chat_request("asks"), shown))
    line.close()
    return {
        "run": ALICES,
        "task": json.loads(accepted)["taskId"],
        "a2a": json.loads(sent)["result"]["task"]["id"],
        "asked": json.loads(waits)["error"]["interrupt"]["id"],
    }


def _fields(token: str, run: str, number: int) -> dict[str, str]:
    turn = f"{run}.t{number}.echo"
    return {
        "authorization": f"Bearer {token}",
        "x-tangle-runid": run,
        "x-tangle-turnid": turn,
    }


def _asked(token: str, method: str, path: str) -> bytes:
    fields = {"host": "127.0.0.1", "authorization": f"Bearer {token}", "a2a-version": "1.0"}
    if method == "POST":
        return post(path, b"", fields)
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"GET {path} HTTP/1.1\r\n{head}\r\n".encode()
