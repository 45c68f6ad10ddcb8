"""kill -9 at every point at which something of a schedule or a hook is written.

Each is tried on one of the stores, in `make crash` on both.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from http.client import HTTPException
from typing import Any

import pytest

from carnet.testing.wait import until
from tests.crash.points.choice import ByStore, pytest_generate_tests, store
from tests.faults.stores import end_leases, move_to, rows
from tests.gateway.conversations.scene import AGENTS, numbers
from tests.gateway.triggers.scene import Owner, send
from tests.stores.support import servers
from tests.support.organisation import Organisation

__all__ = ["pytest_generate_tests", "store"]

HOOK = ("hook.before_keep", "hook.kept", "firing.leased", "firing.begun")
SCHEDULE = ("schedule.before_tick", "schedule.ticked", "firing.before_end", "firing.ended")
POINTS = frozenset({*HOOK, *SCHEDULE})
FLAKY = '[agents.flaky]\nkind = "python"\ntarget = "agents:flaky"\n'
TICK = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000  # of @yearly, long missed


@pytest.fixture(scope="module")
def homes(
    server: servers.Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ByStore[Organisation]]:
    @contextmanager
    def made(store: str) -> Iterator[Organisation]:
        gateway = Organisation(tmp_path_factory.mktemp("killed"), "acme.example")
        if store == "postgres":
            move_to(gateway, server.create())
        gateway.configure(FLAKY, agents=AGENTS)
        gateway.start()
        yield gateway
        assert gateway.stop() == 0

    with ExitStack() as stack:
        yield ByStore(stack, made)


@pytest.fixture
def home(store: str, homes: ByStore[Organisation]) -> Organisation:
    return homes[store]


def begun_once(owner: Owner, word: str) -> list[dict[str, Any]]:
    """The one conversation that was begun, when it has been answered."""

    def look() -> list[dict[str, Any]]:
        listed = owner.get("/conversations").json["conversations"]
        return [each for each in listed if not each["answering"] and each["size"] == 2]

    found = until(look)
    trace = (owner.acme.folder / "ran.txt").read_text().splitlines()
    assert (len(found), found[0]["title"], trace.count(word)) == (1, word, 1)
    return found


def restarted(home: Organisation) -> None:
    until(lambda: home.process is not None and home.process.poll() is not None)
    home.ended()
    end_leases(home)
    rows(home, "UPDATE firing SET held = 0")  # as if it had been silent for as long
    home.start()


@pytest.mark.parametrize("point", HOOK)
def test_an_event_that_is_sent_until_it_is_taken_begins_once_after_a_kill_at(
    home: Organisation, point: str
) -> None:
    owner, word = Owner(home), f"word{next(numbers)}"
    hook, body = owner.hook(template="{{ body.word }}"), json.dumps({"word": word}).encode()
    home.kill()
    home.start(env={"CRASH_AT": point})
    with suppress(OSError, HTTPException):
        send(hook, body)
    restarted(home)
    assert send(hook, body).status == 202
    owner.ended("/hooks/orders")
    begun_once(owner, word)
    assert len(owner.get("/hooks/orders").json["recent"]) == 1


@pytest.mark.parametrize("point", SCHEDULE)
def test_a_tick_begins_once_after_a_kill_at(home: Organisation, point: str) -> None:
    owner, word = Owner(home), f"word{next(numbers)}"
    owner.schedule(message=word)
    home.kill()
    sql = "UPDATE schedule SET next = ? WHERE person = (SELECT n FROM person WHERE name = ?)"
    rows(home, sql, TICK, owner.name)
    home.launch(env={"CRASH_AT": point})
    restarted(home)
    (fired,) = owner.ended("/schedules/digest")
    assert fired["state"] == "fired"
    (found,) = begun_once(owner, word)
    assert fired["conversation"] == found["id"]
    assert found["unread"] == 1


def test_what_has_failed_is_not_run_again_after_a_kill_before_that_is_noted(
    home: Organisation,
) -> None:
    owner, word = Owner(home), f"word{next(numbers)}"
    owner.schedule(agent="flaky", message=word)
    home.kill()
    home.start(env={"CRASH_AT": "firing.before_end"})
    with suppress(OSError, HTTPException):
        owner.post("/schedules/digest/fire")
    restarted(home)
    (fired,) = owner.ended("/schedules/digest")
    assert (fired["state"], fired["code"]) == ("failed", "agent_failed")
    trace = (home.folder / "ran.txt").read_text().splitlines()
    assert trace.count(f"flaky {word}") == 1
