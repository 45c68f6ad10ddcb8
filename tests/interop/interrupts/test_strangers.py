"""A gateway of another make answers with a policy: what is made of it, and what it is sent then."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.interop.conftest import Databases
from tests.interop.interrupts.scene import resolution, same_turn, state_of
from tests.support.federation import organisation
from tests.support.http import Reply
from tests.support.model import Answer, Asked, Model, answered
from tests.support.organisation import Organisation

VENDOR = """
[agents.vendor]
kind = "tangle"
url = "{url}/v1"
retries = 2
"""


class Scene(NamedTuple):
    """Acme, and what its agent `vendor` leads to."""

    acme: Organisation
    vendor: Model

    def again(self, waits: Reply, *brought: tuple[str, str], text: str = "hi") -> Reply:
        return self.acme.chat(text, "vendor", headers=[*same_turn(waits), *brought])


@pytest.fixture(scope="module")
def scene(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    acme = organisation(tmp_path_factory.mktemp("acme"), "acme.example", database())
    with Model().serving() as vendor:
        acme.configure(VENDOR.format(url=vendor.url))
        acme.start()
        yield Scene(acme, vendor)
        assert acme.stop() == 0


def policy(status: int, **asked: Any) -> Answer:
    members = {"kind": "payment", "message": "Half a credit.", "amount": "0.5", **asked}
    error = {"message": "no", "code": "policy", "interrupt": {"currency": "credits", **members}}
    return Answer(status, json.dumps({"error": error}).encode())


def test_a_policy_without_a_secret_is_asked_for_again_when_a_person_says_that_it_is_done(
    scene: Scene,
) -> None:
    """R43: the other side has no way to be told, and judges the call anew."""
    has_paid = False

    def reply(asked: Asked) -> Answer:
        assert "carnet-resolution" not in asked.headers
        return answered("well") if has_paid else policy(402, url="https://pay.example/1", hue="red")

    scene.vendor.reply = reply
    waits = scene.acme.chat("hi", "vendor")
    assert (waits.status, waits.code) == (402, "payment_required")
    asked = waits.json["error"]["interrupt"]
    assert (asked["amount"], asked["url"]) == ("0.5", "https://pay.example/1")
    assert (asked["hue"], asked["origin"]) == ("red", "@vendor@acme.example")
    assert scene.again(waits).body == waits.body
    assert len(scene.vendor.of("hi")) == 1  # it is not asked again by itself
    still = scene.again(waits, resolution(asked["state"]))
    assert still.status == 402
    assert state_of(still) != asked["state"]
    has_paid = True
    done = scene.again(waits, resolution(state_of(still)))
    assert (done.status, done.text) == (200, "well")


def test_a_policy_with_a_secret_is_brought_the_answer(scene: Scene) -> None:
    def reply(asked: Asked) -> Answer:
        brought = asked.headers.get("carnet-resolution")
        return answered(f"got {brought}") if brought else policy(403, id="p1", state="s3cret")

    scene.vendor.reply = reply
    waits = scene.acme.chat("one", "vendor")
    assert state_of(waits) == "s3cret"
    done = scene.again(waits, resolution("s3cret", "rejected"), text="one")
    assert done.text == "got s3cret;outcome=rejected"
    brought = [asked.headers.get("carnet-resolution") for asked in scene.vendor.of("one")]
    assert brought == [None, None, "s3cret;outcome=rejected"]


@pytest.mark.parametrize(
    ("status", "kind", "expected"),
    [
        (401, "sign_in", (401, "sign_in_required")),
        (403, "approval", (403, "approval_required")),
        (403, "consent", (403, "consent_required")),
        (403, "carrier_pigeon", (403, "input_required")),
        (429, "rate_limited", (429, "rate_limited")),
        (503, "unavailable", (503, "unavailable")),
        (451, "legal", (451, "legal_restriction")),
        (403, "forbidden", (403, "policy_forbidden")),
    ],
)
def test_every_kind_has_its_status_and_is_asked_once(
    scene: Scene, status: int, kind: str, expected: tuple[int, str]
) -> None:
    scene.vendor.reply = lambda _: policy(status, kind=kind, message="canary words", retry_after=7)
    text = f"kind {kind}"
    reply = scene.acme.chat(text, "vendor")
    assert (reply.status, reply.code) == expected
    assert len(scene.vendor.of(text)) == 1
    is_over = kind in {"legal", "forbidden"}
    assert b"canary words" in reply.body
    assert reply.json["error"].get("said") == ("canary words" if is_over else None)
    assert ("interrupt" in reply.json["error"]) is not is_over
    assert reply.headers.get("retry-after") == (None if is_over else "7")
    run = reply.headers["x-tangle-runid"]
    shown = scene.acme.carnet("run", "show", run).stdout
    assert "canary words" in shown  # what it asks for, or why it is over (R43)
    assert ("carnet inbox approve int_" in shown) is not is_over


def test_a_refusal_without_a_policy_is_what_it_was(scene: Scene) -> None:
    scene.vendor.reply = lambda _: Answer(402, b'{"error":{"message":"pay"}}')
    reply = scene.acme.chat("plain", "vendor")
    assert (reply.status, reply.code) == (502, "peer_refused")
