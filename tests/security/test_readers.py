"""Readers of what was recorded hold little of it at once, however many and whose they are."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from carnet.testing.wait import until
from tests.support.federation import organisation
from tests.support.organisation import Organisation

LONG = 6_000_000  # bytes of one answer
MANY = 100
MOST_GROWTH = (
    192 * 1024 * 1024
)  # of the process, in all; each of them would take as much as a tenth


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    gateway = organisation(tmp_path_factory.mktemp("readers") / "acme", "acme.example")
    gateway.start(env={"CARNET__LIMITS__WRITE_STALL_SECONDS": "300"})
    yield gateway
    assert gateway.stop() == 0


def resident(gateway: Organisation) -> int:
    assert gateway.process is not None
    with open(f"/proc/{gateway.process.pid}/statm") as file:  # noqa: PTH123  no file to speak of
        return int(file.read().split()[1]) * 4096


@contextmanager
def never_reading(gateway: Organisation, request: bytes) -> Iterator[None]:
    """Many connections that ask for something long, and take the first bytes of it at the most."""
    with ExitStack() as lines:
        for _ in range(MANY):
            line = lines.enter_context(socket.socket())
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            line.connect(("127.0.0.1", gateway.port))
            line.sendall(request)
        yield


def asking(gateway: Organisation, token: str, path: str) -> bytes:
    head = f"GET {path} HTTP/1.1\r\nhost: acme\r\nauthorization: Bearer {token}\r\n\r\n"
    assert gateway.port
    return head.encode()


def recorded(gateway: Organisation, token: str, run: str) -> None:
    fields = [("x-tangle-runid", run), ("x-tangle-turnid", f"{run}.t0")]
    assert gateway.chat("x" * LONG, "echo", token=token, headers=fields).status == 200


def open_files(gateway: Organisation) -> int:
    assert gateway.process is not None
    return len(list(Path(f"/proc/{gateway.process.pid}/fd").iterdir()))


def test_who_never_reads_is_hung_up_on_when_its_token_ends(acme: Organisation) -> None:
    """A86: it cannot be told that it sees no more."""
    eve = acme.new_token("eve")
    recorded(acme, eve, "stale")
    before = open_files(acme)
    with never_reading(acme, asking(acme, eve, "/runs/stale/events")):
        until(lambda: open_files(acme) > before + MANY // 2)  # another connection may have closed
        acme.carnet("tokens", "revoke", "eve")
        until(lambda: open_files(acme) < before + MANY // 2)


def test_readers_of_events_that_never_read_hold_a_bounded_part_of_the_memory(
    acme: Organisation,
) -> None:
    """A74: and another caller reads its own meanwhile."""
    mallory, alice = acme.new_token("mallory"), acme.new_token("alice")
    recorded(acme, mallory, "heavy")
    assert acme.chat("hi", "echo", token=alice, headers=[("x-tangle-runid", "light")]).status == 200
    before = resident(acme)
    with never_reading(acme, asking(acme, mallory, f"/runs/{quote('heavy')}/events")):
        for _ in range(20):  # what they are given is given meanwhile
            assert acme.get("/runs/light/events", token=alice).body.count(b"\n\n") >= 4
        assert resident(acme) - before < MOST_GROWTH


def test_so_do_readers_of_tasks(acme: Organisation) -> None:
    """A74: a result is one answer, and is counted until its reader has taken it."""
    mallory, alice = acme.new_token("mallory-2"), acme.new_token("alice-2")
    accepted = acme.chat("y" * LONG, "echo", token=mallory, path="/tasks")
    task = json.loads(accepted.body)["taskId"]
    until(lambda: b'"done"' in acme.get(f"/tasks/{task}", token=mallory).body)
    before = resident(acme)
    with never_reading(acme, asking(acme, mallory, f"/tasks/{task}")):
        for _ in range(20):
            assert acme.get("/tasks", token=alice).status == 200
        assert resident(acme) - before < MOST_GROWTH


def test_who_reads_on_later_is_given_all_of_it(acme: Organisation) -> None:
    """A74: a reader that waited for room misses nothing."""
    token = acme.new_token("patient")
    recorded(acme, token, "whole")
    body = acme.get("/runs/whole/events", token=token).body
    frames = [json.loads(line[6:]) for line in body.splitlines() if line.startswith(b"data: {")]
    assert "".join(frame.get("text", "") for frame in frames) == "x" * LONG
    assert frames[-1] == {"run": "whole"}
