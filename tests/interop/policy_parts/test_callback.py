"""An agent says by a signed callback that what it asked for was done at its page (R43)."""

import json
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPException
from typing import Any

import pytest

from carnet.testing.wait import until
from carnet.wire.dialects.a2a.extensions.interrupt import INTERRUPT_URI
from tests.faults.stores import end_leases
from tests.interop.conftest import Databases
from tests.interop.interrupts.scene import answer
from tests.interop.policy_parts.scene import (
    Scene,
    Sent,
    fresh,
    played,
    policy,
    resolves,
    spoken,
    task,
)
from tests.support.http import Reply, request
from tests.support.model import Answer, Asked
from tests.support.signing.signed import Sender, Signed, sign, unsigned

PATH = "/policy-resolutions"
URL = "https://search.example/consent/1"
AGENT = Sender("agent://search.example", "search-1")
OTHER = Sender("agent://search.example", "other-1")
PEERS = f"""
[peers."search.example"]
url = "{{url}}"
dialect = "a2a"
keys = ["{AGENT.public}"]
"""


@pytest.fixture(scope="module")
def scene(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with played(tmp_path_factory.mktemp("callback"), database(), more=PEERS) as scene:
        yield scene


def called_back(scene: Scene, state: str, by: Sender = AGENT, **more: Any) -> Reply:
    asked = unsigned(json.dumps({"policy_resolution": resolution(state, **more)}).encode(), PATH)
    return sent(scene, sign(by, asked))


def resolution(state: str, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = resolves(state, **more)["mentionable"]["policy_resolution"]
    return found


def sent(scene: Scene, signed: Signed) -> Reply:
    return request("POST", f"{scene.gateway.url}{PATH}", list(signed.headers), signed.body)


def asked_for(scene: Scene, kind: str = "consent_required", **more: Any) -> tuple[Reply, str]:
    """Have the agent ask for something; what we were answered, and the state."""
    state = fresh()
    given = {"url": URL, "state": state, **more}

    def reply(sent: Sent) -> dict[str, Any]:
        if sent.resolution is None:
            return spoken(policy(kind, **given))
        return spoken({"text": "as you wish"})

    scene.replies(reply)
    return scene.gateway.chat(f"for {state}", "paid-search"), state


def asked_of(scene: Scene, waits: Reply) -> dict[str, Any]:
    page = scene.gateway.get("/approvals?status=all").json["approvals"]
    (asked,) = [each for each in page if each["run"] == waits.headers["x-tangle-runid"]]
    found: dict[str, Any] = asked
    return found


@pytest.mark.parametrize("kind", ["consent_required", "payment_required", "unauthorized", "x.y"])
def test_what_was_done_at_the_page_of_the_agent_goes_on_by_itself(scene: Scene, kind: str) -> None:
    waits, state = asked_for(scene, kind)
    assert asked_of(scene, waits)["url"] == URL
    assert called_back(scene, state).status == 200
    shown = until(
        lambda: scene.again(waits, "paid-search", f"for {state}"), lambda r: r.status == 200
    )
    assert shown.text == "as you wish"
    asked = asked_of(scene, waits)
    assert (asked["status"], asked["resolver"]) == ("resolved", "callback:search.example")
    again = called_back(scene, state)
    assert (again.status, again.code) == (409, "policy_state_invalid")
    assert len([each for each in scene.sent if each.resolution]) == 1


def test_neither_another_key_nor_another_state_nor_no_signature_answers(scene: Scene) -> None:
    waits, state = asked_for(scene)
    refused = [called_back(scene, state, OTHER), called_back(scene, "never-issued")]
    assert [(each.status, each.code) for each in refused] == [(409, "policy_state_invalid")] * 2
    plain = unsigned(json.dumps({"policy_resolution": resolution(state)}).encode(), PATH)
    assert sent(scene, plain).status == 401
    late = sign(AGENT, plain, created=1)
    assert sent(scene, late).status == 401
    altered = sign(AGENT, plain).but(body=plain.body.replace(b"accepted", b"rejected") + b" ")
    assert sent(scene, altered).status == 401
    assert asked_of(scene, waits)["status"] == "open"


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("approval_required", {}),
        ("input_required", {}),
        ("consent_required", {"url": "https://elsewhere.example/x"}),
        ("consent_required", {"url": None}),
    ],
    ids=["approval", "input", "another host", "no page"],
)
def test_what_the_agent_cannot_know_of_its_page_it_cannot_answer(
    scene: Scene, kind: str, more: dict[str, Any]
) -> None:
    waits, state = asked_for(scene, kind, **more)
    refused = called_back(scene, state)
    assert (refused.status, refused.code) == (409, "policy_state_invalid")
    assert asked_of(scene, waits)["status"] == "open"


def test_what_would_be_debited_here_its_seller_cannot_agree_to(scene: Scene) -> None:
    state = fresh()
    asked = {"id": "i", "kind": "payment", "message": "Pay.", "url": URL, "state": state}
    asked |= {"amount": "0.1", "currency": "credits"}
    waits = task("INPUT_REQUIRED", {"text": "Pay."})
    waits["task"]["status"]["message"]["metadata"] = {INTERRUPT_URI: {"interrupts": [asked]}}
    scene.replies(lambda _: waits)
    reply = scene.gateway.chat(f"for {state}", "paid-search")
    assert asked_of(scene, reply)["amount"] == "0.1"
    refused = called_back(scene, state)
    assert (refused.status, refused.code) == (409, "policy_state_invalid")
    assert asked_of(scene, reply)["status"] == "open"


def test_a_person_says_done_and_a_kill_loses_nothing(scene: Scene) -> None:
    waits, state = asked_for(scene)
    asked = asked_of(scene, waits)
    scene.gateway.kill()
    scene.gateway.start()
    assert asked_of(scene, waits)["status"] == "open"
    scene.gateway.carnet("inbox", "approve", asked["id"])
    shown = until(
        lambda: scene.again(waits, "paid-search", f"for {state}"), lambda r: r.status == 200
    )
    assert shown.text == "as you wish"
    (resolved,) = [each for each in scene.sent if each.resolution]
    assert resolved.resolution == {"in_reply_to_state": state, "outcome": "accepted"}


@pytest.mark.parametrize(
    "point", ["resolve.used", "answer.done", "task.leased", "upstream.before_connect"]
)
def test_a_kill_between_the_agreement_and_the_call_made_again_loses_and_doubles_nothing(
    scene: Scene, point: str
) -> None:
    waits, state = asked_for(scene, "payment_required")
    asked = asked_of(scene, waits)
    scene.gateway.kill()
    scene.gateway.start(env={"CRASH_AT": point})
    with suppress(OSError, HTTPException):
        answer(scene.gateway, asked["id"])
    until(lambda: scene.gateway.process is None or scene.gateway.process.poll() is not None)
    scene.gateway.ended()
    end_leases(scene.gateway)
    scene.gateway.start()
    until(lambda: answer(scene.gateway, asked["id"]), lambda reply: reply.status == 200)
    shown = until(
        lambda: scene.again(waits, "paid-search", f"for {state}"), lambda r: r.status == 200
    )
    assert shown.text == "as you wish"
    (resolved,) = [each for each in scene.sent if each.resolution]
    assert resolved.text == f"for {state}"


def test_a_kill_after_the_call_was_made_again_runs_nothing_twice(
    scene: Scene,
) -> None:
    waits, state = asked_for(scene, "payment_required")
    asked, ran = asked_of(scene, waits), dict[str, str]()
    first = scene.peer.reply

    def once(sent: Asked) -> Answer:
        message = sent.body.get("params", {}).get("message", {})
        ran.setdefault(message.get("messageId", ""), state)  # who knows an id answers from memory
        return first(sent)

    scene.peer.reply = once
    scene.gateway.kill()
    scene.gateway.start(env={"CRASH_AT": "upstream.first_byte:2"})  # the first is that of the card
    with suppress(OSError, HTTPException):
        answer(scene.gateway, asked["id"])
    until(lambda: scene.gateway.process is None or scene.gateway.process.poll() is not None)
    scene.gateway.ended()
    end_leases(scene.gateway)
    scene.gateway.start()
    shown = until(
        lambda: scene.again(waits, "paid-search", f"for {state}"), lambda r: r.status == 200
    )
    assert shown.text == "as you wish"
    resolved = [each.message["messageId"] for each in scene.sent if each.resolution]
    assert len(resolved) >= 1
    assert len(set(resolved)) == 1
    assert len([name for name in ran if name]) == 1
