"""kill -9 at every point at which something of a conversation is written.

Each is tried on one of the stores, in `make crash` on both.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPException

import pytest

from carnet.testing.wait import until
from tests.crash.points.choice import ByStore, pytest_generate_tests, store
from tests.faults.stores import end_leases, move_to, number
from tests.gateway.conversations.scene import AGENTS, Person, StreamReply, numbers
from tests.stores.support import servers
from tests.support.organisation import Organisation

__all__ = ["pytest_generate_tests", "store"]

SENT = ("message.before_keep", "message.kept", "message.before_settle", "message.settled")
DELETED = ("conversation.before_delete", "conversation.deleted")
POINTS = frozenset({*SENT, *DELETED})

CONFIG = '[owner]\nagent = "echo"\n'


@pytest.fixture(scope="module")
def homes(
    server: servers.Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ByStore[Organisation]]:
    @contextmanager
    def made(store: str) -> Iterator[Organisation]:
        gateway = Organisation(tmp_path_factory.mktemp("killed"), "acme.example")
        if store == "postgres":
            move_to(gateway, server.create())
        gateway.configure(CONFIG, agents=AGENTS)
        gateway.start()
        yield gateway
        assert gateway.stop() == 0

    with ExitStack() as stack:
        yield ByStore(stack, made)


@pytest.fixture
def home(store: str, homes: ByStore[Organisation]) -> Organisation:
    return homes[store]


def killed(home: Organisation, point: str) -> None:
    home.kill()
    home.start(env={"CRASH_AT": point})


def restarted(home: Organisation) -> None:
    until(lambda: home.process is not None and home.process.poll() is not None)
    home.ended()
    end_leases(home)
    home.start()


@pytest.mark.parametrize("point", SENT)
def test_what_was_said_is_answered_once_after_a_kill_at(home: Organisation, point: str) -> None:
    alice, word = Person(home), f"word{next(numbers)}"
    killed(home, point)
    with suppress(OSError, HTTPException):
        alice.say(word, client_message_id="c1")
    restarted(home)
    if point != "message.before_keep":
        (listed,) = alice.get("/conversations").json["conversations"]
        assert listed["title"] == word

    def again() -> StreamReply:
        return alice.say(word, client_message_id="c1")

    sent = until(again, lambda sent: sent.reply.status == 200)
    assert (sent.text, sent.events[-1]) == (f"You said: {word}", "done")
    assert alice.ran(word) == 1
    conversation = alice.get(f"/conversations/{sent.conversation}").json
    assert [each["state"] for each in conversation["messages"]] == ["whole", "whole"]
    assert len(alice.get("/conversations").json["conversations"]) == 1


@pytest.mark.parametrize("point", DELETED)
def test_what_is_being_deleted_is_there_or_gone_after_a_kill_at(
    home: Organisation, point: str
) -> None:
    alice, word = Person(home), f"canary{next(numbers)}"
    sent = alice.say(word)
    killed(home, point)
    with suppress(OSError, HTTPException):
        alice.send("DELETE", f"/conversations/{sent.conversation}")
    restarted(home)
    if point == "conversation.before_delete":
        assert alice.get(f"/conversations/{sent.conversation}").status == 200
        assert alice.send("DELETE", f"/conversations/{sent.conversation}").status == 200
    assert alice.get(f"/conversations/{sent.conversation}").status == 410
    left = "SELECT COUNT(*) FROM message WHERE owner = ? AND state <> 'deleted'"
    owner = f"token:{alice.name}"
    until(lambda: number(home, left, owner) == 0)
    assert home.try_carnet("ledger", "verify").returncode == 0
