"""Tasks at the command line, against a running gateway: made, waited for, listed and cancelled."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from carnet.testing.wait import until
from tests.cli.conftest import Cli
from tests.support.organisation import Organisation, environment

LONG = 30.0

AGENTS = '''
"""Agents of the test."""

import asyncio
import pathlib


async def echo(visit):
    """Say it again."""
    return visit.text


async def wait(visit):
    """Say how far it is, until a file of that name is there."""
    visit.progress(0.4, "reading")
    while not pathlib.Path(f"go-{visit.text}").exists():
        await asyncio.sleep(0.01)
    return f"waited for {visit.text}"


async def broken(visit):
    """Fail."""
    visit.progress(0.5, "halfway")
    raise ValueError("nobody outside may read this")
'''

CONFIG = """
[egress]
allow = ["127.0.0.1:9"]

[agents.wait]
target = "agents:wait"

[agents.broken]
target = "agents:broken"

[agents.paid]
target = "agents:echo"
price = "0.0002"
"""


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    """An organisation whose gateway runs."""
    organisation = Organisation(tmp_path_factory.mktemp("acme"), "acme.example")
    organisation.configure(CONFIG, agents=AGENTS)
    organisation.start()
    yield organisation
    organisation.stop()


@pytest.fixture
def here(cli: Cli, acme: Organisation, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Type a command in the folder of that organisation, with a token that its gateway knows."""
    monkeypatch.chdir(acme.folder)
    monkeypatch.setenv("CARNET_TOKEN", acme.token)
    return cli


def shown(here: Cli, task: str) -> Any:
    return here("tasks", "show", task, "--format", "json").page


def begun(here: Cli, word: str) -> str:
    """The id of a task that runs until it is let go."""
    task = here("call", "wait", word, "--task", "--no-wait").out.strip()
    until(lambda: shown(here, task).get("note"), lambda note: note == "reading")
    return task


def test_the_beginning_of_an_id_is_enough(here: Cli) -> None:
    task = begun(here, "prefix")
    assert shown(here, task[:8])["taskId"] == task
    assert f"{task} was told to stop" in here("tasks", "cancel", task[:8]).out
    assert here("tasks", "wait", task[:8], "--format", "json").error["code"] == "cancelled"
    several = here("tasks", "show", "")
    assert several.code != 0
    unknown = here("tasks", "show", "nope")
    assert (unknown.code, "no such task" in unknown.err) == (1, True)


def let_go(word: str) -> None:
    Path(f"go-{word}").write_text("")


def test_a_task_is_waited_for_and_its_result_printed(here: Cli) -> None:
    ran = here("call", "echo", "good day", "--task")
    assert (ran.code, ran.out) == (0, "good day\n")
    assert ran.err.startswith("task ")
    page = here("call", "paid", "good day", "--task", "--format", "json").page
    assert page["result"] == {"text": "good day"}
    assert page.keys() == {"result", "taskId", "run", "turn"}
    assert here("run", "show", page["run"], "--format", "json").page["cost"] == "0.0002"


def test_an_agent_here_is_given_a_task_by_any_of_its_names(here: Cli) -> None:
    words = ("call", "@echo@acme.example", "skill=chat", "text=hi")
    assert here(*words, "--task").out == here(*words).out
    assert here("call", "agent://acme.example", "hi", "--task").out == "hi\n"


def test_who_does_not_wait_comes_back_to_it(here: Cli) -> None:
    ran = here("call", "wait", "back", "--task", "--no-wait")
    task = ran.out.strip()
    assert f"carnet tasks show {task}" in ran.err
    assert f"carnet tasks cancel {task}" in ran.err
    late = here("tasks", "wait", task, "--timeout", "0.2")
    assert (late.code, late.out) == (3, "")
    assert "The task goes on" in late.err
    let_go("back")
    assert here("tasks", "wait", task).out == "waited for back\n"
    text = here("tasks", "show", task).out
    assert "waited for back" in text
    assert "done" in text


def test_tasks_are_listed_by_state_and_agent(here: Cli) -> None:
    task = begun(here, "list")
    chosen = ("--state", "running", "--agent", "wait", "--format", "json")
    for words in (("tasks", "list"), ("tasks",)):
        running = here(*words, *chosen).page["tasks"]
        assert [(row["taskId"], row["progress"]) for row in running] == [(task, 0.4)]
    text = here("tasks").out
    assert text.startswith("TASK ")
    (line,) = [line for line in text.splitlines() if line.startswith(task)]
    assert line.endswith("running 40%  reading")
    assert here("tasks", "list", "--limit", "1", "--format", "jsonl").page["taskId"] == task
    assert "there are others" in here("tasks", "list", "--agent", "nobody").out
    assert here("tasks", "list", "--agent", "echo").out.count("running") == 0
    chosen = ("--state", "done", "--agent", "echo", "--limit", "1")
    more = here("tasks", "list", *chosen).out.splitlines()[-1]
    assert more.startswith(f"More: carnet tasks list {' '.join(chosen)} --before ")
    assert task not in here(*more.split()[2:]).out
    let_go("list")
    assert here("tasks", "wait", task).code == 0


def test_a_list_that_is_empty_by_its_options_says_that_others_exist(here: Cli) -> None:
    assert here("call", "echo", "hello", "--task").code == 0
    others = "No task is like that, but there are others: carnet tasks\n"
    assert here("tasks", "--agent", "nobody").out == others
    assert here("tasks", "--state", "done", "--before", "1").out == others


@pytest.mark.usefixtures("home")
def test_where_there_are_no_tasks_at_all_none_are_promised(cli: Cli) -> None:
    for words in ((), ("--state", "failed")):
        assert cli("tasks", *words).out.startswith("No tasks. Make one: "), words


def test_a_task_is_cancelled_and_its_end_is_told(here: Cli) -> None:
    task = begun(here, "cancel")
    assert "was told to stop" in here("tasks", "cancel", task).out
    ended = here("tasks", "wait", task)
    assert (ended.code, ended.out) == (1, "")
    assert "cancelled" in ended.err
    assert shown(here, task)["error"]["code"] == "cancelled"
    assert f"{task} has ended" in here("tasks", "cancel", task).out


def test_a_task_that_fails_ends_the_command_like_a_call(here: Cli) -> None:
    ran = here("call", "broken", "x", "--task")
    assert (ran.code, ran.out) == (here("call", "broken", "x").code, "")
    assert "nobody outside" not in ran.err
    in_json = here("call", "broken", "x", "--task", "--format", "json")
    assert in_json.error["code"] == "agent_failed"
    (line,) = here("tasks", "list", "--agent", "broken", "--limit", "1").out.splitlines()[1:2]
    assert line.endswith("failed (agent_failed)")  # and not what it noted on the way


def test_a_task_that_is_refused_is_refused_at_once(here: Cli) -> None:
    ran = here("call", "echo", "skill=nope", "--task", "--format", "json")
    assert (ran.code, ran.error["code"]) == (1, "skill_not_found")
    callback = here("call", "echo", "x", "--callback", "http://127.0.0.1/x", "--format", "json")
    assert (callback.code, callback.error["code"]) == (2, "callback_forbidden")
    unknown = here("tasks", "show", "7b0c6a4e-52a7-4f3a-9a53-31a3d4f1f6a0")
    assert (unknown.code, "no such task" in unknown.err) == (1, True)


def test_a_callback_comes_with_the_secret_that_proves_it(here: Cli) -> None:
    words = ("call", "echo", "x", "--callback", "https://127.0.0.1:9/done", "--no-wait")
    page = here(*words, "--format", "json").page
    assert page["webhook_secret"].startswith("whsec_")
    assert page["status"] == "accepted"
    assert here("tasks", "wait", page["taskId"]).out == "x\n"


class Terminal:
    """A terminal that a process writes to."""

    def __init__(self) -> None:
        self._ours, self.theirs = pty.openpty()
        self._read = b""

    def until(self, text: str, times: int = 1) -> str:
        """Everything so far, once this is there."""
        deadline = time.monotonic() + LONG
        while self._read.count(text.encode()) < times:
            ready, _, _ = select.select([self._ours], [], [], deadline - time.monotonic())
            assert ready, self._read
            self._read += os.read(self._ours, 65536)
        return self._read.decode()

    def close(self) -> None:
        os.close(self._ours)
        os.close(self.theirs)


def waiting(command: list[str], at: Organisation, stderr: int) -> "subprocess.Popen[bytes]":
    """A command of a person who looks at a terminal."""
    env = environment({"NO_COLOR": "1"})
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=at.folder, env=env, stdout=pipe, stderr=stderr)  # noqa: S603


def test_a_person_sees_the_progress_and_who_stops_waiting_is_told_that_the_task_goes_on(
    acme: Organisation, here: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CARNET_TOKEN")  # it is the operator's task
    command = [sys.executable, "-m", "carnet.cli.main", "call", "wait", "ctrl-c", "--task"]
    terminal = Terminal()
    with waiting(command, acme, terminal.theirs) as process:
        seen = terminal.until("running 40%  reading")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=LONG)
    task = seen.split()[1]
    assert (process.returncode, out) == (130, b"")
    terminal.until(f"carnet tasks cancel {task}")
    assert f"The task goes on. See it: carnet tasks show {task}" in terminal.until("goes on")
    terminal.close()
    let_go("ctrl-c")
    assert here("tasks", "wait", task).out == "waited for ctrl-c\n"


def test_a_gateway_that_was_started_again_is_waited_for(
    acme: Organisation, here: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever it was that waited: for a new task, or for one that it came back to."""
    monkeypatch.delenv("CARNET_TOKEN")
    task = begun(here, "again")
    terminal = Terminal()
    command = [sys.executable, "-m", "carnet.cli.main"]
    waits, calls = ["tasks", "wait", task], ["call", "wait", "again", "--task"]
    most = ["--timeout", "60"]
    with (
        waiting([*command, *waits, *most], acme, terminal.theirs) as one,
        waiting([*command, *calls, *most], acme, terminal.theirs) as other,
    ):
        terminal.until("run ")  # the second names its task and its run
        acme.kill()
        terminal.until("does not answer", 2)
        acme.start()
        let_go("again")
        outs = [process.communicate(timeout=LONG)[0] for process in (one, other)]
    terminal.close()
    assert outs == [b"waited for again\n"] * 2
    assert (one.returncode, other.returncode) == (0, 0)


def test_who_gives_up_on_a_gateway_that_is_gone_is_told_that_the_task_goes_on(
    acme: Organisation, here: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [".venv/bin/carnet"])
    task = begun(here, "gone")
    acme.kill()
    try:
        ran = here("tasks", "wait", task, "--timeout", "2")
    finally:
        acme.start()
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.count("The gateway does not answer. The task is kept") == 1
    assert f"\n  The task goes on. See it: .venv/bin/carnet tasks show {task}\n" in ran.err
    assert f"\n  Wait for it: .venv/bin/carnet tasks wait {task} " in ran.err
    let_go("gone")
    assert here("tasks", "wait", task).code == 0


def test_tasks_are_shown_from_the_store_when_no_gateway_runs(acme: Organisation, here: Cli) -> None:
    task = here("call", "echo", "hi", "--task", "--format", "json").page["taskId"]
    before = shown(here, task)
    acme.stop()
    try:
        assert shown(here, task) == before
        assert task in [row["taskId"] for row in here("tasks", "--format", "json").page["tasks"]]
        assert here("tasks", "cancel", task).code == 3
    finally:
        acme.start()
