"""SIGTERM ends a gateway, whatever its agents do: drain, grace, exit (F38)."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from carnet.testing.wait import until
from tests.support.federation import organisation
from tests.support.organisation import Organisation
from tests.support.served import AGENTS

DRAIN_SECONDS = 1
GRACE_SECONDS = 2
LATE_SECONDS = 40  # for a machine that is busy; what holds the process would hold it for ever
STAYING = '''
import threading
import time


async def swallows(visit: carnet.Visit) -> str:
    """Take no cancellation."""
    note(visit)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue


async def leaves_a_task(visit: carnet.Visit) -> str:
    """End, and leave somebody behind who does not."""
    asyncio.get_running_loop().stays = asyncio.create_task(swallows(visit))
    return "done"


async def leaves_a_thread(visit: carnet.Visit) -> str:
    """The same with a thread that Python waits for at its end."""
    note(visit)
    threading.Thread(target=threading.Event().wait).start()
    return "done"


async def leaves_an_executor(visit: carnet.Visit) -> str:
    """The same with a thread of the loop."""
    note(visit)
    asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)
    return "done"


async def leaves_a_process(visit: carnet.Visit) -> str:
    """The same with a process that Python waits for at its end."""
    import multiprocessing

    note(visit)
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(3600,))
    child.start()
    RAN.with_name("child.pid").write_text(str(child.pid))
    return "done"


async def holds(visit: carnet.Visit) -> str:
    """Hold the loop itself."""
    note(visit)
    while True:
        time.sleep(0.01)


async def keeps_a_pool(visit: carnet.Visit) -> str:
    """Keep threads for the next call."""
    from concurrent.futures import ThreadPoolExecutor

    loop = asyncio.get_running_loop()
    loop.pool = ThreadPoolExecutor(2)
    return await loop.run_in_executor(loop.pool, str, "done")


async def registers(visit: carnet.Visit) -> str:
    """Stay at the end of the interpreter."""
    import atexit

    note(visit)
    atexit.register(threading.Event().wait)
    return "done"
'''
# Who is left behind has the time to be, on a machine that is busy.
UNHURRIED = """
from carnet.http import process

process.LAST_SECONDS = 60.0
"""
ENDING = ("swallows", "leaves_a_task", "leaves_a_thread", "leaves_an_executor")
FORCED = ("holds", "leaves_a_process", "registers")
CONFIG = "".join(
    f'[agents.{n}]\nkind = "python"\ntarget = "agents:{n}"\n'
    for n in (*ENDING, *FORCED, "keeps_a_pool")
)


@contextmanager
def started(folder: Path, agents: str) -> Iterator[Organisation]:
    gateway = organisation(folder, "acme.example")
    gateway.configure(CONFIG, agents=agents)
    config = gateway.folder / "carnet.toml"
    seconds = f"drain_seconds = {DRAIN_SECONDS}\ngrace_seconds = {GRACE_SECONDS}"
    config.write_text(config.read_text().replace("[gateway]", f"[gateway]\n{seconds}", 1))
    gateway.start()
    yield gateway
    gateway.kill()
    child = gateway.folder / "child.pid"
    if child.exists():
        os.kill(int(child.read_text()), signal.SIGKILL)


@pytest.fixture
def acme(tmp_path: Path) -> Iterator[Organisation]:
    with started(tmp_path / "acme", AGENTS + STAYING) as gateway:
        yield gateway


@pytest.fixture
def unhurried(tmp_path: Path) -> Iterator[Organisation]:
    with started(tmp_path / "acme", AGENTS + STAYING + UNHURRIED) as gateway:
        yield gateway


def ask(gateway: Organisation, agent: str) -> None:
    """Have the agent run, and do not wait for its answer."""

    def call() -> None:
        try:
            gateway.chat("x", agent)
        except OSError:  # the process ended
            return

    Thread(target=call, daemon=True).start()
    until((gateway.folder / "ran.txt").exists)


def stop(gateway: Organisation) -> tuple[int, float]:
    """How it ended, and how long it took."""
    assert gateway.process is not None
    began = time.monotonic()
    gateway.process.send_signal(signal.SIGTERM)
    code = gateway.process.wait(LATE_SECONDS)
    return code, time.monotonic() - began


@pytest.mark.parametrize("agent", ENDING)
def test_f38_who_does_not_want_to_stop_is_left_behind_after_the_grace(
    unhurried: Organisation, agent: str
) -> None:
    ask(unhurried, agent)
    code, seconds = stop(unhurried)
    assert code == 0
    assert seconds >= GRACE_SECONDS
    unhurried.ended()
    assert any('"stopped"' in line for line in unhurried.log_lines())
    unhurried.start()  # nothing of it is left
    assert unhurried.chat("again").status == 200


@pytest.mark.parametrize("agent", FORCED)
def test_f38_who_holds_the_process_itself_is_ended_and_named(
    acme: Organisation, agent: str
) -> None:
    ask(acme, agent)
    code, seconds = stop(acme)
    assert code == 1
    assert seconds >= GRACE_SECONDS
    acme.ended()
    errors = acme.errors.read_text()
    assert "Timeout" in errors
    assert "most recent call first" in errors
    acme.start()
    assert acme.chat("again").status == 200


def test_f38_a_gateway_that_nobody_holds_does_not_wait_for_the_grace(acme: Organisation) -> None:
    config = acme.folder / "carnet.toml"
    acme.stop()
    config.write_text(config.read_text().replace("grace_seconds = 2", "grace_seconds = 600"))
    acme.start()
    assert acme.chat("hello").status == 200
    assert acme.chat("hello" * 400_000).status == 200  # threads of ours wait for more such
    assert acme.chat("hello", "keeps_a_pool").status == 200  # and threads of an agent
    code, _ = stop(acme)
    assert code == 0
    assert not any("left behind" in line for line in acme.log_lines())
