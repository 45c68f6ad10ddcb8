"""kill -9 at every point at which something of a session is written."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPException

import pytest

from carnet.testing.wait import until
from tests.crash.points.choice import ByStore, pytest_generate_tests, store
from tests.faults.stores import end_leases, move_to
from tests.gateway.people.browser import Browser, Somebody
from tests.stores.support import servers
from tests.support.organisation import Organisation

__all__ = ["pytest_generate_tests", "store"]

BEGUN = {"session.before_keep": True, "session.kept": False}  # whether the link is still good
ENDED = {"session.before_end": True, "session.ended": False}  # whether she is still signed in
POINTS = frozenset({*BEGUN, *ENDED})


@pytest.fixture(scope="module")
def homes(
    server: servers.Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ByStore[Organisation]]:
    @contextmanager
    def made(store: str) -> Iterator[Organisation]:
        gateway = Organisation(tmp_path_factory.mktemp("killed"), "acme.example")
        if store == "postgres":
            move_to(gateway, server.create())
        gateway.start()
        yield gateway
        assert gateway.stop() == 0

    with ExitStack() as stack:
        yield ByStore(stack, made)


@pytest.fixture
def home(store: str, homes: ByStore[Organisation]) -> Organisation:
    return homes[store]


def restarted(home: Organisation) -> None:
    until(lambda: home.process is not None and home.process.poll() is not None)
    home.ended()
    end_leases(home)
    home.start()


@pytest.mark.parametrize("point", BEGUN)
def test_a_link_is_unused_or_used_up_after_a_kill_at(home: Organisation, point: str) -> None:
    alice = Somebody(home)
    code, browser = alice.code(), Browser(home)
    home.kill()
    home.start(env={"CRASH_AT": point})
    with suppress(OSError, HTTPException):
        browser.by_code(code)
    assert browser.cookie == ""
    restarted(home)
    assert browser.by_code(code).status == (201 if BEGUN[point] else 401)
    assert Browser(home).by_code(code).code == "sign_in_code_invalid"  # never twice
    assert len(home.json("sessions", "list", "--person", alice.name)["sessions"]) == 1
    assert browser.by_code(alice.code()).status == 201  # another one is good


@pytest.mark.parametrize("point", ENDED)
def test_a_session_is_live_or_ended_after_a_kill_at(home: Organisation, point: str) -> None:
    browser = Somebody(home).browser()
    home.kill()
    home.start(env={"CRASH_AT": point})
    with suppress(OSError, HTTPException):
        browser.send("DELETE", "/session")
    restarted(home)
    assert browser.send("GET", "/runs").status == (200 if ENDED[point] else 401)
