"""What an agent has forked outlives a gateway, and keeps nothing of it: no port, no lock (F39)."""

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from carnet.testing import stage
from carnet.testing.wait import until
from tests.support.federation import organisation
from tests.support.http import chat_body, request
from tests.support.organisation import Organisation
from tests.support.served import AGENTS

LATE_SECONDS = 40
FORKING = '''
import multiprocessing
import os
import signal
import subprocess
import sys
import time


def noted(pid: int) -> str:
    with RAN.with_name("orphans.txt").open("a") as file:
        file.write(f"{pid}\\n")
    return f"forked {pid}"


def lingers() -> None:
    """Be there, and say so: whoever forks waits for it."""
    Path("there").touch()
    time.sleep(3600)


async def is_there() -> None:
    while not Path("there").exists():
        await asyncio.sleep(0.01)


async def forks(visit: carnet.Visit) -> str:
    """Fork, as a program of old does."""
    pid = os.fork()
    if pid == 0:
        lingers()
    await is_there()
    return noted(pid)


async def forks_by_library(visit: carnet.Visit) -> str:
    """The same by a library, in a thread."""
    child = multiprocessing.get_context("fork").Process(target=lingers)
    await asyncio.to_thread(child.start)
    await is_there()
    return noted(child.pid)


async def shells(visit: carnet.Visit) -> str:
    """Leave a shell behind; descriptors that may be inherited are."""
    os.system("sleep 3600 & echo $! > shell.pid")
    while not Path("shell.pid").read_text():
        await asyncio.sleep(0.01)
    return noted(int(Path("shell.pid").read_text()))


async def comes_back(visit: carnet.Visit) -> str:
    """Fork, and let the child come back to where the gateway's loop is."""
    pid = os.fork()
    if pid == 0 and visit.text == "exit":
        sys.exit(7)
    if pid == 0 and visit.text == "await":
        await asyncio.sleep(0)
    if pid == 0:
        return "from the child"
    _, status = await asyncio.to_thread(os.waitpid, pid, 0)
    return f"ended {os.waitstatus_to_exitcode(status)}"


async def signals(visit: carnet.Visit) -> str:
    """Fork, and tell the child to end."""
    pid = os.fork()
    if pid == 0:
        time.sleep(3600)
    os.kill(pid, signal.SIGTERM)
    _, status = await asyncio.to_thread(os.waitpid, pid, 0)
    return f"ended {os.waitstatus_to_exitcode(status)}"
'''
NAMES = ("forks", "forks_by_library", "shells", "comes_back", "signals")
CONFIG = "".join(f'[agents.{n}]\nkind = "python"\ntarget = "agents:{n}"\n' for n in NAMES)


class Alone:
    """A gateway that has bound its own port, so that nobody but it and its children listen there.

    The port is kept from others: whoever allows reuse may listen there, while nobody else does.
    """

    def __init__(self, acme: Organisation) -> None:
        self._kept = socket.socket()
        self._kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._kept.bind(("127.0.0.1", 0))
        self.port = self._kept.getsockname()[1]
        self._acme = acme
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        folder = self._acme.folder
        with (folder / "alone.log").open("ab") as log:
            self.process = process = subprocess.Popen(  # noqa: S603  our own command
                [*stage.carnet_command(), "serve", "--port", str(self.port)],
                cwd=folder,
                env=stage.environment(None),
                stdout=log,
                stderr=log,
            )

        def answers() -> bool:
            assert process.poll() is None, (folder / "alone.log").read_text()
            with contextlib.suppress(OSError):
                return request("GET", self.url + "/healthz", ()).status == 200
            return False

        until(answers)

    def ask(self, agent: str, text: str = "x") -> str:
        fields = [("authorization", f"Bearer {self._acme.token}")]
        fields.append(("content-type", "application/json"))
        reply = request("POST", f"{self.url}/v1/chat/completions", fields, chat_body(text, agent))
        assert reply.status == 200, reply.body
        return str(reply.json["choices"][0]["message"]["content"])

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def close(self) -> None:
        self.kill()
        self._kept.close()

    def orphans(self) -> list[int]:
        noted = self._acme.folder / "orphans.txt"
        return [int(line) for line in noted.read_text().split()] if noted.exists() else []


@pytest.fixture
def acme(tmp_path: Path) -> Iterator[Organisation]:
    gateway = organisation(tmp_path / "acme", "acme.example")
    gateway.configure(CONFIG, agents=AGENTS + FORKING)
    yield gateway
    gateway.kill()


@pytest.fixture
def alone(acme: Organisation) -> Iterator[Alone]:
    gateway = Alone(acme)
    gateway.start()
    yield gateway
    gateway.close()
    for pid in gateway.orphans():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("agent", ["forks", "forks_by_library", "shells"])
def test_f39_a_restart_after_a_kill_works_though_an_orphan_lives(alone: Alone, agent: str) -> None:
    with socket.create_connection(("127.0.0.1", alone.port)) as caller:
        caller.sendall(b"GET /healthz HTTP/1.1\r\nhost: acme\r\n\r\n")
        assert caller.recv(65_536)
        alone.ask(agent)
        (orphan,) = alone.orphans()
        alone.kill()
        caller.settimeout(LATE_SECONDS)
        with contextlib.suppress(ConnectionResetError):
            assert caller.recv(65_536) == b""  # not held by the orphan either
    assert lives(orphan)
    alone.start()
    assert alone.ask("echo", "again") == "again"
    assert lives(orphan)


@pytest.mark.parametrize("agent", ["forks", "shells"])
def test_f39_a_socket_that_was_handed_down_is_not_handed_on(acme: Organisation, agent: str) -> None:
    acme.start()
    acme.chat("x", agent)
    orphan = int((acme.folder / "orphans.txt").read_text())
    try:
        held = [str(entry.readlink()) for entry in Path(f"/proc/{orphan}/fd").iterdir()]
        assert f"socket:[{os.fstat(acme.address.fd).st_ino}]" not in held
    finally:
        os.kill(orphan, signal.SIGKILL)


@pytest.mark.parametrize(("how", "code"), [("exit", 7), ("return", 0), ("await", 1)])
def test_f39_a_child_that_comes_back_to_the_loop_ends_there(
    alone: Alone, how: str, code: int
) -> None:
    assert alone.ask("comes_back", how) == f"ended {code}"
    assert alone.ask("echo", "still here") == "still here"


def test_f39_a_child_ends_by_a_signal_and_the_gateway_does_not(alone: Alone) -> None:
    assert alone.ask("signals") == f"ended {-signal.SIGTERM}"
    assert alone.ask("echo", "still here") == "still here"
    assert request("GET", alone.url + "/readyz", ()).status == 200
