"""What the public stage promises: addresses that stay ours, and processes that end with it."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from carnet.testing.address import HOST, Address
from carnet.testing.stage import Organisation, Stage
from carnet.testing.wait import until, until_so

NOTHING = """
async def nothing(visit):
    return "fine"

async def echo(visit):
    return visit.text
"""
LISTENS = """
import socket, sys
handed = socket.socket(fileno=int(sys.argv[1]))
handed.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
handed.listen()
print(handed.accept()[0].recv(9))
"""


def intruder(port: int) -> None:
    """A program that would take the port with as few scruples as one may have."""
    with socket.socket() as taking:
        taking.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taking.bind((HOST, port))
        taking.listen()


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_an_address_is_nobody_elses_and_refuses_at_once_while_nobody_listens() -> None:
    with Address() as held:
        with pytest.raises(OSError, match="in use"):
            intruder(held.port)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((HOST, held.port))
    assert held.fd == -1  # it is given up: whoever comes first may have it


def test_one_process_after_the_other_listens_at_an_address_and_nobody_in_between() -> None:
    with Address() as held:
        for _ in range(2):
            command = [sys.executable, "-c", LISTENS, str(held.fd)]
            with subprocess.Popen(  # noqa: S603  our own script
                command, stdout=subprocess.PIPE, pass_fds=[held.fd]
            ) as process:
                until(lambda: is_reached(held))
                output, _ = process.communicate()
            assert b"hello" in output
            held.shut()
            with pytest.raises(OSError, match="in use"):
                intruder(held.port)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((HOST, held.port))


def is_reached(held: Address) -> bool:
    try:
        with socket.create_connection((HOST, held.port)) as line:
            line.sendall(b"hello")
            return True
    except ConnectionRefusedError:
        return False


def test_an_organisation_keeps_its_address_over_a_kill_and_refuses_meanwhile(
    tmp_path: Path,
) -> None:
    with Stage(tmp_path) as stage:
        acme = stage.organisation("acme.example")
        url = acme.url
        for end in (acme.kill, acme.stop):
            acme.start()
            assert (acme.folder / "var" / "gateway.url").read_text().strip() == url
            assert acme.ask("echo", "hi") == "hi"
            end()
            with pytest.raises(ConnectionRefusedError):
                acme.ask("echo", "hi")


def test_a_gateway_that_dies_by_itself_is_not_waited_for(tmp_path: Path) -> None:
    with Stage(tmp_path) as stage:
        acme = stage.organisation("acme.example")
        acme.start()
        acme.signal(signal.SIGKILL)
        assert acme.died()
        with pytest.raises(ConnectionRefusedError):
            acme.ask("echo", "hi")


def test_what_a_stage_started_ends_with_it_whatever_happened(tmp_path: Path) -> None:
    pids = []

    def fail() -> None:
        with Stage(tmp_path) as stage:
            for domain in ("acme.example", "globex.example"):
                made = stage.organisation(domain)
                made.start()
                assert made.process is not None
                pids.append(made.process.pid)
            stage.organisations[0].signal(signal.SIGSTOP)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [exists(pid) for pid in pids] == [False, False]


def test_a_gateway_that_cannot_start_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    acme = Organisation(tmp_path, "acme.example")
    acme.configure("[agents.odd]\nkind = 'python'\ntarget = 'agents:nothing'\n")
    with pytest.raises(AssertionError, match="nothing"):
        acme.start()
    assert acme.process is None
    acme.configure("", agents=NOTHING)
    acme.start()  # and its address is as good as before
    assert acme.ask("odd", "hi") == "fine"
    acme.close()


def test_until_gives_what_was_seen_and_tells_what_was_seen_last() -> None:
    seen = iter(range(10))
    assert until(lambda: next(seen), lambda number: number == 3) == 3
    with pytest.raises(AssertionError, match="last seen: 7"):
        until(lambda: 7, lambda number: number > 7, seconds=0)


async def test_until_so_lets_others_run_and_awaits_what_is_to_be_awaited() -> None:
    done = asyncio.Event()
    asyncio.get_running_loop().call_soon(done.set)
    assert await until_so(done.is_set)

    async def look() -> int:
        return 3

    assert await until_so(look, lambda number: number == 3) == 3
    with pytest.raises(AssertionError, match="last seen: 3"):
        await until_so(look, lambda number: number > 3, seconds=0)
