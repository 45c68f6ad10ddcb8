"""`carnet demo`: three organisations, a true model, and a run that waits for a person."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from carnet.cli.demo import processes
from carnet.cli.demo.processes import Demo, House
from carnet.cli.start.local_model import INSTALL
from carnet.testing.stage import Gateway, carnet_command, environment
from tests.cli.conftest import Cli
from tests.support.http import request

pytestmark = pytest.mark.timeout(600)  # a model computes, on whatever machine this is

SPOKEN = (
    "acme.example    calls @writer@globex.example, signed, in A2A, at depth 1",
    "acme.example    calls @archive@initech.example, signed, in SAMVAD, at depth 1",
    "globex.example  calls @facts@initech.example, signed, in Tangle, at depth 2",
)
PAYMENT = "payment   0.02 credits  A page of figures about such evenings costs two cents."
APPROVAL = "approval  Reserve the hall at the river, on Tuesday?"


# Of all its processes, to the end of the run, the model's answer too; idle, a tenth of it.
# How long it takes on a clock is up to what else the machine does.
MOST_CPU_SECONDS = 45
# What is started in the background, by `nohup` or by a service, has signals ignored that end it.
UNIGNORED = (
    "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_DFL);"
    " os.execv(sys.argv[1], sys.argv[1:])"
)


def is_left(folder: Path) -> bool:
    """Whether a process works in a folder, or below it."""
    for place in Path("/proc").glob("[0-9]*/cwd"):
        try:
            where = place.readlink()
        except OSError:  # it has ended, or is not ours to look at
            continue
        if where.is_relative_to(folder):
            return True
    return False


def test_once_it_runs_to_its_end_with_a_true_model_and_leaves_nothing(tmp_path: Path) -> None:
    # A gateway that the person has elsewhere is none of its business.
    env = environment({"TMPDIR": str(tmp_path), "CARNET_URL": "http://127.0.0.1:1"})
    process = subprocess.Popen(  # noqa: S603  our own command
        [*carnet_command(), "demo", "--once"],
        cwd=tmp_path,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        assert process.stdout is not None
        lines = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, lines
    assert re.search(
        r"The first run is live, \d+\.\d s after the start: http://127\.0\.0\.1:", lines
    )
    assert used.ru_utime + used.ru_stime < MOST_CPU_SECONDS
    for spoken in (*SPOKEN, PAYMENT, APPROVAL):
        assert spoken in lines, lines
    assert "There is no model here" not in lines
    assert re.search(r"globex\.example  writer is done, cost 0\.003, \d+ tokens", lines)
    assert "  Figures: of forty who are invited, thirty-one come" in lines
    assert "  Hall: the one at the river, with 40 seats." in lines
    assert re.search(r"run conv_\S+  done  payer starter@acme\.example  cost 0\.025 credits", lines)
    assert list(tmp_path.iterdir()) == []
    assert not is_left(tmp_path)


@contextmanager
def shown(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    words = [*carnet_command(), "demo", str(folder)]
    process = subprocess.Popen(  # noqa: S603  our own command
        words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    with process, ended(process):
        yield process


@contextmanager
def ended(process: "subprocess.Popen[str]") -> Iterator[None]:
    """Whatever comes of it, it does not go on: with all that it has started, if it can."""
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


def read_to(process: "subprocess.Popen[str]", sign: str) -> str:
    """What it prints until a line has this in it."""
    assert process.stdout is not None
    output = ""
    while sign not in output:
        line = process.stdout.readline()
        assert line, output
        output += line
    return output


def test_it_waits_for_a_person_who_answers_by_a_link_or_a_command(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    with shown(folder) as process:
        printed = read_to(process, "Ctrl-C ends the demo.")
        (link,) = re.findall(r"http://127\.0\.0\.1:\d+/sign-in\?code=\S+", printed)
        assert request("GET", link).status == 200
        answers = re.findall(r"carnet -c (\S+) inbox approve (int_\w+) --as (@\S+)", printed)
        assert len(answers) == 2
        for config, question, token in answers:
            ran = subprocess.run(  # noqa: S603  as it is printed
                [*carnet_command(), "-c", config, "inbox", "approve", question, "--as", token],
                env=environment(),
                capture_output=True,
                text=True,
                check=False,
            )
            assert ran.returncode == 0, ran.stderr
        assert "planner is done, cost 0.025" in read_to(process, "planner is done")
        read_to(process, "Ctrl-C ends the demo.")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert sorted(each.name for each in folder.iterdir()) == ["acme", "globex", "initech"]
    assert not is_left(folder)


def test_without_a_model_it_says_how_to_get_one_and_shows_the_rest(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    ran = cli("demo", "--once")
    assert ran.code == 0, (ran.out, ran.err)
    (line,) = [each for each in ran.out.splitlines() if "There is no model here" in each]
    assert INSTALL in line
    assert "No model is installed here: these words are fixed." in ran.out
    assert "cost 0.025 credits" in ran.out


def test_a_folder_that_is_used_is_left_alone(cli: Cli, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "letter.txt").write_text("dear")
    ran = cli("demo", "mine")
    assert ran.code == 2
    assert "There is something in" in ran.err
    assert [each.name for each in mine.iterdir()] == ["letter.txt"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_it_starts_and_others_while_it_ends_leave_nothing(
    tmp_path: Path, number: signal.Signals
) -> None:
    process = subprocess.Popen(  # noqa: S603  our own command
        [sys.executable, "-c", UNIGNORED, *carnet_command(), "demo"],
        env=environment({"TMPDIR": str(tmp_path)}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process, ended(process):
        read_to(process, "Starting acme.example")
        process.send_signal(number)
        read_to(process, "The demo has ended.")
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGHUP)
        assert process.wait(60) in {0, -signal.SIGTERM, -signal.SIGHUP}
    assert list(tmp_path.iterdir()) == []
    assert not is_left(tmp_path)


def test_one_that_does_not_end_keeps_no_other_from_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []

    def stop(self: House) -> int:
        raise TimeoutError(self.domain)

    def close(self: House) -> None:
        Gateway.close(self)
        closed.append(self.domain)

    monkeypatch.setattr(House, "stop", stop)
    monkeypatch.setattr(House, "close", close)
    demo = Demo(tmp_path / "kept")
    with pytest.raises(TimeoutError), demo:
        asyncio.run(demo.launch())
    assert sorted(closed) == ["acme.example", "globex.example", "initech.example"]
    assert not is_left(tmp_path)


def test_a_model_that_does_not_start_keeps_nobody_from_answering(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"no weights")
    monkeypatch.setattr(processes, "MODEL", ("model", "local", "--weights", str(broken)))
    with Demo(tmp_path / "kept") as demo:
        asyncio.run(demo.launch())
        demo.wait()
        assert demo.lacks == "The model did not start. Type: carnet model local"
        globex = demo.houses[1]
        assert "HAS_MODEL = False" in (globex.folder / "agents.py").read_text()
        assert "[models" not in (globex.folder / "carnet.toml").read_text()
        assert [request("GET", f"{each.url}/healthz").status for each in demo.houses] == [200] * 3


def test_the_port_of_the_model_is_nobody_elses_before_it_listens() -> None:
    with processes.held_port() as port, socket.socket() as other:
        with pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
        with socket.socket() as model:
            model.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            model.bind(("127.0.0.1", port))
            model.listen()
