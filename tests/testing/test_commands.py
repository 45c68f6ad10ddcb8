"""Gateways that are forked from a process which has them loaded: each is as if it was started."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from carnet.testing.wait import until
from tests.support.commands import CONNECT_SECONDS, STOP_SECONDS, USUAL, commands
from tests.support.organisation import Organisation

SHOWS = '''

async def shows(visit):
    """Who answers, and what it was started with."""
    import os
    import sys

    from carnet import faults
    from carnet.runtime.turns.runner import STOP_SECONDS
    from carnet.stores.postgres.writer import CONNECT_SECONDS

    yield f"{os.getpid()} {faults.armed()} {os.environ.get('CARNET_OF_ONE', '')} {sys.path[0]}"
    yield f" {CONNECT_SECONDS} {STOP_SECONDS}"
'''
AGENT = '[agents.shows]\nkind = "python"\ntarget = "agents:shows"\n'


@pytest.fixture
def acme(tmp_path: Path) -> Iterator[Organisation]:
    made = Organisation(tmp_path, "acme.example")
    made.configure(AGENT, agents=(tmp_path / "agents.py").read_text() + SHOWS)
    yield made
    made.close()


def pid_of(gateway: Organisation) -> int:
    assert gateway.process is not None
    return gateway.process.pid


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_forked_gateway_is_a_process_with_its_own_folder_and_environment(
    acme: Organisation,
) -> None:
    acme.start(env={"CARNET_OF_ONE": "mine", "CARNET_NOTE_POINTS": "1", USUAL: "1"})
    assert acme.ask("shows", "") == f"{pid_of(acme)} True mine {acme.folder} 0.9 5.0"
    assert acme.stop() == 0
    acme.start()
    patient = f"{CONNECT_SECONDS} {STOP_SECONDS}"
    assert acme.ask("shows", "") == f"{pid_of(acme)} False  {acme.folder} {patient}"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGABRT])
def test_how_a_forked_gateway_ended_is_told_and_its_number_is_free(
    acme: Organisation, number: int
) -> None:
    acme.start()
    process, pid = acme.process, pid_of(acme)
    assert process is not None
    assert process.poll() is None
    acme.signal(number)
    assert acme.ended() == -number
    assert process.poll() == -number
    assert not exists(pid)
    process.kill()  # and nobody else is hit who has the number then


def test_a_forked_gateway_dies_at_the_point_that_it_was_told(acme: Organisation) -> None:
    acme.launch(env={"CRASH_AT": "recover.begin"})
    assert acme.died()
    acme.start()
    assert acme.ask("echo", "hi") == "hi"


def test_a_process_that_forks_is_replaced_if_it_died(acme: Organisation) -> None:
    acme.start()
    before = commands()
    os.kill(before.pid, signal.SIGKILL)
    until(before.has_died)
    acme.new_token("bob")
    assert commands() is not before
    assert acme.ask("echo", "hi") == "hi"
    assert acme.stop() == 0
