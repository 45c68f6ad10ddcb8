"""Readers that never read and readers that leave: nothing of theirs stays."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from carnet.testing.wait import until
from tests.edge.test_sizes import resident_bytes
from tests.edge.wire import Wire, ask
from tests.support.organisation import Organisation
from tests.support.served import executions

READERS = 50
ABORTS = 300
AT_ONCE = 20
NONE = "carnet_open_calls 0.0"
MOST_BYTES = 4 * 1024 * 1024  # of what waits for one of them, wherever it waits


@pytest.fixture(scope="module")
def scraper(acme: Organisation) -> str:
    return acme.new_token("counting", "--scope", "metrics")


def open_calls(acme: Organisation, scraper: str) -> str:
    lines = acme.get("/metrics", token=scraper).body.decode().splitlines()
    return next(line for line in lines if line.startswith("carnet_open_calls "))


def open_files(acme: Organisation) -> int:
    assert acme.process is not None
    return len(list(Path(f"/proc/{acme.process.pid}/fd").iterdir()))


def test_many_readers_that_never_read_are_cut_off_and_kept_small(
    acme: Organisation, scraper: str
) -> None:
    """A61: their agents are stopped, and what waits for each is bounded."""
    until(lambda: open_calls(acme, scraper) == NONE)
    stopped = len(executions(acme.folder, "flood-stopped"))
    before = resident_bytes(acme)
    most = before
    with ExitStack() as stack:
        for _ in range(READERS):
            wire = stack.enter_context(Wire(acme.port, receive_buffer=4096))
            wire.send(ask(acme.token, "go", "flood", stream=True))

        def all_stopped() -> bool:
            nonlocal most
            most = max(most, resident_bytes(acme))
            return len(executions(acme.folder, "flood-stopped")) == stopped + READERS

        until(all_stopped)
    assert most - before < READERS * MOST_BYTES  # 1.2 MB each where it was measured
    until(lambda: open_calls(acme, scraper) == NONE)
    assert acme.chat("hello").text == "hello"


def test_streams_that_are_opened_and_left_leave_nothing_behind(
    acme: Organisation, scraper: str
) -> None:
    """A62: no call, no socket, no agent that goes on."""
    assert acme.chat("1", "slow").status == 200
    until(lambda: open_calls(acme, scraper) == NONE)
    files = open_files(acme)
    stopped = len(executions(acme.folder, "flood-stopped"))
    ran = len(executions(acme.folder, "flood"))
    for _ in range(ABORTS // AT_ONCE):
        with ExitStack() as stack:
            wires = [stack.enter_context(Wire(acme.port)) for _ in range(AT_ONCE)]
            for wire in wires:
                wire.send(ask(acme.token, "go", "flood", stream=True))
            for number, wire in enumerate(wires):
                if number % 2:  # the others leave before they have received anything
                    assert wire.socket.recv(10)
        until(lambda: open_calls(acme, scraper) == NONE)
    begun = len(executions(acme.folder, "flood")) - ran
    assert ABORTS // 2 <= begun <= ABORTS
    until(lambda: len(executions(acme.folder, "flood-stopped")) - stopped == begun)
    until(lambda: open_files(acme) <= files + 2)
