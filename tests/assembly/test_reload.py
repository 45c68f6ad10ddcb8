"""A configuration that is read again while its gateway serves."""

import json
import os
import pty
import signal
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import IO

import pytest

from carnet.testing import stage
from carnet.testing.wait import until
from tests.support.commands import CARNET, commands
from tests.support.organisation import Organisation

AGENTS = """
import asyncio
from pathlib import Path

import carnet
import parts

HERE = Path(__file__).parent


async def version(visit: carnet.Visit) -> str:
    return f"agents @ parts {parts.NUMBER}"


async def held(visit: carnet.Visit) -> str:
    '''Wait until the test lets it go, then ask a neighbour.'''
    (HERE / "held").touch()
    while not (HERE / "go").exists():
        await asyncio.sleep(0.02)
    return await visit.peer("version").ask("hi")
"""
READ = "the configuration was read again"
REFUSED = "the configuration is refused, and the former stays in force"
CONFIG = """
[agents.version]
target = "agents:version"
[agents.held]
target = "agents:held"
"""


class Reloadable(Organisation):
    """An organisation whose agents and limits tell their version."""

    options: tuple[str, ...] = ()
    terminal: int | None = None  # where it reads from

    def begin(self, out: IO[bytes], err: IO[bytes], env: dict[str, str]) -> stage.ChildProcess:
        with Path(os.devnull).open("rb") as nothing:
            read = nothing.fileno() if self.terminal is None else self.terminal
            words = ("serve", *self.options, "--fd")
            fds = (read, out.fileno(), err.fileno(), self.address.fd)
            return commands().start(CARNET, words, at=self.folder, env=env, fds=fds)

    def write(self, number: int, more: str = "") -> None:
        """Write version `number` of all files."""
        config = self.folder / "carnet.toml"
        head = config.read_text().partition("[agents")[0]
        config.write_text(head + CONFIG + more)
        (self.folder / "parts.py").write_text(f"NUMBER = {number}\n")
        (self.folder / "agents.py").write_text(AGENTS.replace("@", str(number)))

    def version(self) -> str:
        return self.ask("version", "hi")

    def logged(self, message: str) -> list[str]:
        lines = [json.loads(line) for line in self.log_lines()]
        return [line.get("detail", "") for line in lines if line["message"] == message]


@pytest.fixture
def acme(tmp_path: Path) -> Iterator[Reloadable]:
    gateway = Reloadable(tmp_path / "acme", "acme.example")
    gateway.write(1)
    yield gateway
    if gateway.terminal is not None:
        os.close(gateway.terminal)


def test_the_command_tells_what_the_gateway_has_taken_over(acme: Reloadable) -> None:
    acme.start()
    assert acme.version() == "agents 1 parts 1"
    acme.write(2, "[agents.more]\ntarget = 'agents:version'\n[limits]\ncalls = 99\n")
    page = acme.json("reload")
    assert (page["applied"], page["needs_restart"]) == (True, [])
    assert page["changed"] == ["limits.calls", "agents.more (new)"]
    assert page["files"] == ["agents.py", "parts.py"]
    assert page["agents"] == ["version", "held", "more"]
    assert acme.version() == acme.ask("more", "hi") == "agents 2 parts 2"
    again = acme.carnet("reload").stdout
    assert "nothing has changed in its files" in again
    assert acme.stop() == 0


def test_what_is_bound_to_the_process_is_told_and_the_rest_is_taken_over(acme: Reloadable) -> None:
    acme.start()
    acme.write(2, "[limits]\nstore_queue = 77\n[egress]\nallow = ['10.0.0.0/8']\n")
    done = acme.try_carnet("reload")
    assert done.returncode == 0
    assert "restart is needed for egress.allow, limits.store_queue" in done.stderr
    assert acme.version() == "agents 2 parts 2"
    needed = until(lambda: acme.logged("a restart is needed"))
    assert needed == ["egress.allow, limits.store_queue"]
    acme.write(3)
    assert acme.json("reload")["needs_restart"] == []
    assert acme.stop() == 0


def test_a_changed_store_port_or_domain_is_said_to_need_a_restart(acme: Reloadable) -> None:
    acme.start()
    config = acme.folder / "carnet.toml"
    head = config.read_text()
    config.write_text(head.replace("[gateway]", "[gateway]\ngrace_seconds = 9", 1))
    assert acme.json("reload")["needs_restart"] == ["gateway.grace_seconds"]
    config.write_text(head.replace("acme.example", "other.example"))
    assert acme.json("reload")["needs_restart"] == ["gateway.domain"]
    doctor = acme.try_carnet("doctor").stdout
    assert "It needs a restart for gateway.domain." in doctor
    config.write_text(head.replace("var/carnet.db", "var/other.db"))
    done = acme.try_carnet("reload")
    assert (done.returncode, "a changed store needs a restart" in done.stderr) == (2, True)
    acme.signal(signal.SIGHUP)
    until(lambda: "store.url" in acme.logged("a restart is needed"))
    config.write_text(head)
    assert acme.json("reload")["needs_restart"] == []
    assert acme.stop() == 0


def test_modules_of_former_reloads_are_freed(acme: Reloadable) -> None:
    acme.start()
    ending = "weakref.finalize(version, (HERE / 'freed @').touch)\n"
    collecting = "async def collect(visit: carnet.Visit) -> str:\n    return str(gc.collect())\n"
    more = "[agents.collect]\ntarget = 'agents:collect'\n"
    for number in (2, 3, 4):
        acme.write(number, more)
        with (acme.folder / "agents.py").open("a") as module:
            ended = ending.replace("@", str(number))
            module.write(f"\nimport gc\nimport weakref\n{ended}\n\n{collecting}")
        acme.carnet("reload")
        assert acme.version() == f"agents {number} parts {number}"
    freed = [acme.folder / "freed 2", acme.folder / "freed 3"]
    until(lambda: acme.ask("collect", "hi") and all(path.exists() for path in freed))
    assert not (acme.folder / "freed 4").exists()
    acme.kill()


BAD = {
    "agents.py": ("agents.py", "async def version(visit:\n"),
    "parts.py": ("parts.py", "raise RuntimeError('not yet')\n"),
    "an agent without a function": ("agents.py", "version = 3\n"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_module_that_cannot_be_used_changes_nothing_and_is_told(
    acme: Reloadable, what: str
) -> None:
    acme.start()
    acme.write(2, "[limits]\ncalls = 1\n")
    name, text = BAD[what]
    (acme.folder / name).write_text(text)
    done = acme.try_carnet("reload")
    assert done.returncode == 2
    assert "agents.version.target" in done.stderr
    assert "agents.held.target" in done.stderr  # all that is wrong, at once
    assert "Nothing was changed" in done.stderr
    assert acme.version() == "agents 1 parts 1"
    (refused,) = until(lambda: acme.logged(REFUSED))
    assert "agents.version.target" in refused
    operator = acme.new_token("watcher", "--scope", "metrics")
    ready = acme.get("/readyz", token=operator).json
    assert (ready["status"], ready["reload"]["applied"]) == ("ready", False)
    acme.write(3)
    assert acme.json("reload")["applied"]
    assert acme.version() == "agents 3 parts 3"
    assert acme.stop() == 0


def test_a_file_with_several_faults_is_told_them_all_by_the_gateway_too(acme: Reloadable) -> None:
    acme.start()
    acme.write(2, "[limits]\ncalls = 0\nno_such = 1\n[log]\nlevel = 'loud'\n")
    done = acme.try_carnet("reload")  # the command reads the file as well, and sees it first
    assert done.returncode == 2
    acme.signal(signal.SIGHUP)
    (refused,) = until(lambda: acme.logged(REFUSED))
    for key in ("limits.calls", "limits.no_such", "log.level"):
        assert key in refused
        assert key in done.stderr
    assert acme.version() == "agents 1 parts 1"
    assert acme.stop() == 0


def test_sighup_reloads_and_what_was_admitted_runs_on_with_the_former_agents(
    acme: Reloadable,
) -> None:
    acme.start()
    answers: list[str] = []
    waiting = Thread(target=lambda: answers.append(acme.ask("held", "hi")))
    waiting.start()
    until((acme.folder / "held").exists)
    acme.write(2)
    acme.signal(signal.SIGHUP)
    until(lambda: acme.version() == "agents 2 parts 2")
    (acme.folder / "go").touch()
    waiting.join()
    assert answers == ["agents 1 parts 1"]  # its neighbour too
    assert acme.stop() == 0


def test_callers_are_answered_while_a_module_is_imported(acme: Reloadable) -> None:
    acme.start()
    acme.write(2)
    slow = "import time\nwhile not (HERE / 'done').exists():\n    time.sleep(0.01)\n"
    with (acme.folder / "agents.py").open("a") as module:
        module.write(f"(HERE / 'importing').touch()\n{slow}")
    asking = Thread(target=lambda: acme.carnet("reload"))
    asking.start()
    until((acme.folder / "importing").exists)
    assert acme.version() == "agents 1 parts 1"
    (acme.folder / "done").touch()
    asking.join()
    assert acme.version() == "agents 2 parts 2"
    assert acme.stop() == 0


def test_a_flood_of_signals_reads_once_more_after_the_one_that_is_read(acme: Reloadable) -> None:
    acme.start()
    slow = "import time\nwhile not (HERE / 'done').exists():\n    time.sleep(0.01)\n"
    with (acme.folder / "agents.py").open("a") as module:
        module.write(f"(HERE / 'importing').touch()\n{slow}")
    acme.signal(signal.SIGHUP)
    until((acme.folder / "importing").exists)
    acme.write(2)
    for _ in range(50):
        acme.signal(signal.SIGHUP)
        assert acme.version() == "agents 1 parts 1"
    (acme.folder / "done").touch()
    until(lambda: acme.version() == "agents 2 parts 2")
    assert len(until(lambda: acme.logged(READ), lambda lines: lines[1:])) == 2
    assert acme.stop() == 0


def test_peers_of_the_file_come_and_go(acme: Reloadable) -> None:
    acme.start()
    other = "@x@globex.example"
    assert acme.chat("hi", other).json["error"]["code"] == "peer_unknown"
    acme.write(1, '[peers."globex.example"]\nurl = "http://127.0.0.1:9"\n')
    assert acme.json("reload")["changed"] == ['peers."globex.example" (new)']
    assert acme.chat("hi", other).json["error"]["code"] != "peer_unknown"
    acme.write(1)
    acme.carnet("reload")
    assert acme.chat("hi", other).json["error"]["code"] == "peer_unknown"
    assert acme.stop() == 0


def test_limits_and_the_log_are_taken_over(acme: Reloadable) -> None:
    acme.start()
    acme.write(1, "[limits]\nchat_body_bytes = 1024\n[log]\nlevel = 'error'\n")
    acme.carnet("reload")
    lines = len(acme.log_lines())
    assert acme.chat("x" * 2000, "version").json["error"]["code"] == "body_too_large"
    assert acme.version() == "agents 1 parts 1"
    assert len(acme.log_lines()) == lines  # calls and refusals are no errors
    assert acme.stop() == 0


def test_a_gateway_that_watches_reloads_when_a_file_is_written(acme: Reloadable) -> None:
    acme.options = ("--reload",)
    acme.start()
    (acme.folder / "parts.py").write_text("NUMBER = 7\n")
    until(lambda: acme.version() == "agents 1 parts 7")
    (acme.folder / "parts.py").write_text("NUMBER = \n")
    until(lambda: acme.logged(REFUSED))
    acme.write(8, "[limits]\ncalls = 9\n")
    until(lambda: acme.version() == "agents 8 parts 8")
    assert acme.stop() == 0


def test_a_terminal_that_has_gone_ends_the_gateway_as_ever(acme: Reloadable) -> None:
    ours, acme.terminal = pty.openpty()
    acme.start()
    acme.signal(signal.SIGHUP)  # the terminal is there: somebody asks for a reload
    until(lambda: acme.logged(READ))
    os.close(ours)
    acme.signal(signal.SIGHUP)
    assert acme.ended() == 0


def test_who_may_not_reload_is_refused(acme: Reloadable) -> None:
    acme.start()
    token = acme.new_token("plain")
    done = acme.try_carnet("reload", "--as", token)
    assert (done.returncode, "admin:reload" in done.stderr) == (1, True)
    assert acme.stop() == 0


def test_a_gateway_that_does_not_run_is_said_to_be_unreachable(acme: Reloadable) -> None:
    assert acme.try_carnet("reload").returncode == 3
