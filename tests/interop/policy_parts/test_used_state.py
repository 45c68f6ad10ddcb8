"""An issuer whose states are good once, and a kill after it was sent one (F46).

It has taken the answer, and acted on it; whoever sent it is dead, and sends it again. What follows
is safe: nothing is paid twice, the person is told what happened, and at the most asked again.
"""

from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPException
from typing import Any

import pytest

from carnet.runtime.peers.policies import NOT_TAKEN
from carnet.testing.wait import until
from tests.faults.stores import end_leases
from tests.interop.conftest import Databases
from tests.interop.interrupts.scene import answer
from tests.interop.policy_parts.scene import Scene, Sent, fresh, played, policy, spoken, task
from tests.support.http import Reply

USED = "That was paid already, with order 7."


class Issuer:
    """An agent that takes each of its states once, and counts what it was paid."""

    def __init__(self, form: str, refuses_by: str) -> None:
        self.name = fresh()
        self._form = form
        self._refuses_by = refuses_by
        self._issued: set[str] = set()
        self.paid: list[str] = []

    def __call__(self, sent: Sent) -> dict[str, Any]:
        if sent.resolution is None:
            return self._asks()
        state = sent.resolution["in_reply_to_state"]
        if state in self._issued:
            self._issued.remove(state)
            self.paid.append(state)
            return spoken({"text": f"sold {len(self.paid)}"})
        error: dict[str, Any] = {"code": -32602, "message": "the state was used"}
        if self._refuses_by == "part":
            error["data"] = [{"kind": "forbidden", "message": USED}]
        return {"error": error}

    def _asks(self) -> dict[str, Any]:
        state = f"{self.name}-{len(self._issued) + len(self.paid)}"
        self._issued.add(state)
        part = policy("payment_required", state=state)
        return spoken(part) if self._form == "message" else task("INPUT_REQUIRED", part)


@pytest.fixture(scope="module")
def scene(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with played(tmp_path_factory.mktemp("used"), database()) as scene:
        yield scene


def killed_after_sending(scene: Scene, issuer: Issuer) -> Reply:
    """Agree to a payment, and die when the issuer has taken it; how the call waited before."""
    scene.replies(issuer)
    waits = scene.gateway.chat(issuer.name, "paid-search")
    assert waits.status == 402
    (asked,) = open_of(scene, waits)
    scene.gateway.kill()
    scene.gateway.start(env={"CRASH_AT": "upstream.first_byte:2"})  # the first is that of the card
    with suppress(OSError, HTTPException):
        answer(scene.gateway, asked["id"])
    until(lambda: scene.gateway.process is None or scene.gateway.process.poll() is not None)
    assert len(issuer.paid) == 1
    scene.gateway.ended()
    end_leases(scene.gateway)
    scene.gateway.start()
    return waits


def open_of(scene: Scene, waits: Reply) -> list[dict[str, Any]]:
    return [each for each in scene.inbox() if each["run"] == waits.headers["x-tangle-runid"]]


def test_what_was_taken_before_a_kill_is_asked_again_and_says_so(scene: Scene) -> None:
    issuer = Issuer("message", "error")
    waits = killed_after_sending(scene, issuer)
    (asked,) = until(lambda: open_of(scene, waits), bool)
    assert asked["message"].startswith(NOT_TAKEN)
    assert asked["message"].endswith("Please: payment_required.")
    assert len(issuer.paid) == 1
    assert answer(scene.gateway, asked["id"], "rejected").status == 200
    ended = until(lambda: scene.again(waits, "paid-search", issuer.name), lambda r: r.status != 402)
    assert (ended.status, ended.code) == (403, "declined")
    assert len(issuer.paid) == 1


def test_who_agrees_again_knowingly_pays_again(scene: Scene) -> None:
    issuer = Issuer("message", "error")
    waits = killed_after_sending(scene, issuer)
    (asked,) = until(lambda: open_of(scene, waits), bool)
    assert answer(scene.gateway, asked["id"]).status == 200
    done = until(lambda: scene.again(waits, "paid-search", issuer.name), lambda r: r.status == 200)
    assert done.text == "sold 2"
    assert len(set(issuer.paid)) == 2


def test_an_issuer_that_says_why_ends_the_turn_with_its_words(scene: Scene) -> None:
    issuer = Issuer("message", "part")
    waits = killed_after_sending(scene, issuer)
    ended = until(lambda: scene.again(waits, "paid-search", issuer.name), lambda r: r.status != 402)
    assert (ended.status, ended.code) == (403, "policy_forbidden")
    assert ended.json["error"]["said"] == USED
    assert not open_of(scene, waits)
    assert len(issuer.paid) == 1
