"""Files, memory and threads that run out: the gateway sheds load, lives on and recovers (F31)."""

import http.client
import resource
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from carnet.testing.wait import until
from tests.faults.scene import ids
from tests.support.federation import organisation
from tests.support.http import Reply, chat_body
from tests.support.organisation import Organisation
from tests.support.served import AGENTS

BOUND_SECONDS = 30
MIB = 1024 * 1024
BLOCKED = '''

def wait_for_go() -> None:
    import time

    while not RAN.with_name("go").exists():
        time.sleep(0.05)


async def blocked(visit: carnet.Visit) -> str:
    """Hold a thread of the pool until the test says so."""
    note(visit)
    await asyncio.to_thread(wait_for_go)
    return "free"
'''
CONFIG = """
[agents.blocked]
kind = "python"
target = "agents:blocked"

[limits]
bodies_bytes = 33554432
"""
SENDERS = 60  # of 9 MiB each: without a bound, the copies of their bodies need two gigabytes
MEMORY_BYTES = 768 * MIB
HUNG_UP = 0


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Organisation:
    gateway = organisation(tmp_path_factory.mktemp("exhaustion") / "acme", "acme.example")
    gateway.configure(CONFIG, agents=AGENTS + BLOCKED)
    return gateway


@pytest.fixture
def acme(shared: Organisation) -> Iterator[Organisation]:
    shared.start()
    yield shared
    assert shared.stop() == 0


def pid_of(gateway: Organisation) -> int:
    assert gateway.process is not None
    return gateway.process.pid


@contextmanager
def limited(gateway: Organisation, kind: int, most: int) -> Iterator[None]:
    """Give the running process a limit that it did not know of when it started."""
    before = resource.prlimit(pid_of(gateway), kind)
    resource.prlimit(pid_of(gateway), kind, (most, before[1]))
    yield
    resource.prlimit(pid_of(gateway), kind, before)


def descriptors(gateway: Organisation) -> int:
    return len(list(Path(f"/proc/{pid_of(gateway)}/fd").iterdir()))


def answers(gateway: Organisation) -> bool:
    try:
        return gateway.get("/healthz").status == 200
    except (OSError, http.client.HTTPException):
        return False


def test_f31_a_gateway_out_of_files_goes_on_and_takes_new_connections_when_there_are_some(
    acme: Organisation,
) -> None:
    kept = http.client.HTTPConnection("127.0.0.1", acme.port, timeout=BOUND_SECONDS)
    kept.request("GET", "/healthz")
    kept.getresponse().read()
    most = descriptors(acme) + 16
    with limited(acme, resource.RLIMIT_NOFILE, most), ExitStack() as flood:
        for _ in range(64):
            line = flood.enter_context(socket.socket())
            line.settimeout(BOUND_SECONDS)
            line.connect(("127.0.0.1", acme.port))  # the kernel takes it, whoever accepts it
        until(lambda: descriptors(acme) >= most - 1)
        kept.request("GET", "/healthz")
        assert kept.getresponse().read()  # who is connected is served
    until(lambda: answers(acme))
    assert acme.chat("after").text == "after"
    until(lambda: descriptors(acme) < most)
    kept.close()


def test_f31_a_pool_of_threads_that_is_used_up_holds_up_nobody_else(acme: Organisation) -> None:
    replies: list[Reply] = []

    def ask(n: int) -> None:
        replies.append(acme.chat("hold", "blocked", headers=ids(f"conv_blocked_{n}")))

    asking = [threading.Thread(target=ask, args=(n,)) for n in range(48)]
    for thread in asking:
        thread.start()
    try:
        until(lambda: acme.get("/runs?limit=200").body.count(b"conv_blocked_") >= 48)
        for n in range(5):
            assert acme.chat("beside", headers=ids(f"conv_beside_{n}")).text == "beside"
        assert acme.get("/readyz").status == 200
        assert acme.get("/runs/conv_beside_0").status == 200
    finally:
        (acme.folder / "go").touch()
        for thread in asking:
            thread.join(BOUND_SECONDS)
    assert [reply.text for reply in replies] == ["free"] * 48


def test_f31_more_bodies_at_once_than_there_is_memory_for_are_refused_and_not_fatal(
    acme: Organisation,
) -> None:
    pages = int(Path(f"/proc/{pid_of(acme)}/statm").read_text().split()[0])
    seen: list[int] = []
    body = chat_body("x" * (9 * MIB), "echo")

    def send() -> None:
        line = http.client.HTTPConnection("127.0.0.1", acme.port, timeout=BOUND_SECONDS)
        fields = {"authorization": f"Bearer {acme.token}", "content-type": "application/json"}
        try:
            line.request("POST", "/v1/chat/completions", body, fields)
            seen.append(line.getresponse().status)
        except (OSError, http.client.HTTPException):
            seen.append(HUNG_UP)  # refused while it was still being sent
        finally:
            line.close()

    with limited(acme, resource.RLIMIT_AS, pages * resource.getpagesize() + MEMORY_BYTES):
        senders = [threading.Thread(target=send) for _ in range(SENDERS)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join(BOUND_SECONDS)
        assert len(seen) == SENDERS
        assert set(seen) <= {200, 503, HUNG_UP}
        assert acme.get("/healthz").status == 200
        send()
        assert seen[-1] == 200
    assert acme.chat("after").text == "after"
