"""Policy parts of agents that we call: what is made of them, and how they are resolved."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.interop.conftest import Databases
from tests.interop.interrupts.scene import answer, resolution, state_of
from tests.interop.policy_parts.scene import (
    STATE,
    Scene,
    Sent,
    played,
    policy,
    spoken,
    task,
)

STATUSES = {
    "unauthorized": 401,
    "payment_required": 402,
    "too_many_requests": 429,
    "service_unavailable": 503,
    "consent_required": 403,
    "com.example.captcha": 403,
}
ENDS = {
    "forbidden": (403, "policy_forbidden"),
    "unavailable_for_legal_reasons": (451, "legal_restriction"),
}
FORMS = ["message", "input_required", "completed", "failed", "artifact", "metadata", "error"]
BINDINGS = ["paid-search", "paid-rest", "former"]
GIVEN: dict[str, Any] = {
    "title": "Pay first",
    "code": "x402:payment",
    "message_translations": {"de": {"title": "Erst zahlen", "message": "Bitte zahlen."}},
    "action_label": "Pay now",
    "data": {"com.example.order": {"n": 7}},
    "state": STATE,
}


@pytest.fixture(scope="module")
def scene(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with played(tmp_path_factory.mktemp("policies"), database()) as scene:
        yield scene


def asked_in(form: str, part: dict[str, Any]) -> dict[str, Any]:
    """The part, where an agent may put it."""
    match form:
        case "message":
            return spoken({"text": "not yet"}, part)
        case "error":
            return {"error": {"code": -32050, "message": "no", "data": part["data"]}}
        case "artifact":
            return task("COMPLETED", artifacts=[{"artifactId": "a", "parts": [part]}])
        case "metadata":
            uri = "https://mentionable.dev/ns/policy/v0.1"
            return spoken({"text": "not yet"}, metadata={uri: part["data"]})
    return task(form.upper(), {"text": "not yet"}, part)


def once_resolved(form: str, part: dict[str, Any]) -> Any:
    def reply(sent: Sent) -> dict[str, Any]:
        if sent.resolution is None:
            return asked_in(form, part)
        return spoken({"text": f"found {sent.text}"})

    return reply


@pytest.mark.parametrize("agent", BINDINGS)
@pytest.mark.parametrize("kind", STATUSES)
def test_every_kind_is_a_question_that_the_call_is_made_again_for(
    scene: Scene, kind: str, agent: str
) -> None:
    scene.replies(once_resolved("message", policy(kind, state=STATE, retry_after_seconds=9)))
    waits = scene.gateway.chat("cats", agent)
    assert waits.status == STATUSES[kind]
    asked = waits.json["error"]["interrupt"]
    assert (asked["message"], asked["state"]) == (f"Please: {kind}.", STATE)
    assert asked["retry_after"] == 9
    assert asked["policy"]["kind"] == kind
    done = scene.again(waits, agent, "cats", resolution(STATE))
    assert (done.status, done.text) == (200, "found cats")
    first, second = scene.sent
    assert first.resolution is None
    assert second.resolution == {"in_reply_to_state": STATE, "outcome": "accepted"}
    assert second.text == "cats"
    assert second.message["messageId"] != first.message["messageId"]


@pytest.mark.parametrize("form", FORMS)
def test_wherever_a_part_stands_it_is_no_success(scene: Scene, form: str) -> None:
    scene.replies(once_resolved(form, policy("payment_required", **GIVEN)))
    waits = scene.gateway.chat(form, "paid-search")
    assert (waits.status, waits.code) == (402, "payment_required")
    (asked,) = [each for each in scene.inbox() if each["run"] == waits.headers["x-tangle-runid"]]
    assert asked["title"] == "Pay first"
    assert asked["action_label"] == "Pay now"
    assert asked["translations"] == GIVEN["message_translations"]
    assert answer(scene.gateway, asked["id"]).status == 200
    assert scene.again(waits, "paid-search", form).status == 200
    assert [sent.resolution for sent in scene.sent if sent.resolution] == [
        {"in_reply_to_state": STATE, "outcome": "accepted"}
    ]


@pytest.mark.parametrize("kind", ENDS)
def test_what_nobody_can_resolve_ends_the_turn_with_its_words(scene: Scene, kind: str) -> None:
    scene.replies(lambda _: spoken(policy(kind, state=STATE)))
    refused = scene.gateway.chat("cats", "paid-search")
    assert (refused.status, refused.code) == ENDS[kind]
    assert refused.json["error"]["said"] == f"Please: {kind}."
    assert len(scene.sent) == 1
    run = refused.headers["x-tangle-runid"]
    assert not [each for each in scene.inbox() if each["run"] == run]


@pytest.mark.parametrize("agent", [*BINDINGS, "silent"])
@pytest.mark.parametrize("status", [402, 403, 429, 503])
def test_a_part_beside_an_error_is_asked_and_not_tried_again(
    scene: Scene, status: int, agent: str
) -> None:
    """Before there is a task: in the data of JSON-RPC, among the details of HTTP."""
    part = policy("payment_required", **GIVEN)["data"]
    name = "details" if agent == "paid-rest" else "data"

    def reply(sent: Sent) -> dict[str, Any]:
        if sent.resolution is None:
            beside = [{"@type": "x"}, {"@type": "https://mentionable.dev/ns/policy/v0.1", **part}]
            error = {"code": -32050, "message": "no", name: beside}
            return {"error": error, "status": status}
        return spoken({"text": f"found {sent.text}"})

    scene.replies(reply)
    waits = scene.gateway.chat(f"error {status}", agent)
    assert (waits.status, waits.code) == (402, "payment_required")
    assert len(scene.sent) == 1
    done = scene.again(waits, agent, f"error {status}", resolution(STATE))
    assert (done.status, done.text) == (200, f"found error {status}")


def test_a_body_that_is_a_part_is_one(scene: Scene) -> None:
    part = policy("unavailable_for_legal_reasons")["data"]
    scene.replies(lambda _: {"error": part, "status": 451})
    refused = scene.gateway.chat("law", "paid-rest")
    assert (refused.status, refused.code) == (451, "legal_restriction")
    assert refused.json["error"]["said"] == part["message"]


@pytest.mark.parametrize(
    "beside", [{"kind": "unheard"}, [7], {"kind": ""}, "x", {"kind": "x" * 999}]
)
def test_an_error_with_no_part_beside_it_is_an_error(scene: Scene, beside: object) -> None:
    scene.replies(lambda _: {"error": {"code": -32602, "message": "no", "data": beside}})
    assert scene.gateway.chat("cats", "paid-search").status == 502


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/pay",
        "https://evil.example/pay",
        "https://127.0.0.1.evil.example/pay",
        "https://127.0.0.1@evil.example/pay",
        "https://evil.example\\@127.0.0.1/",
        "javascript:alert(1)",
        "https://127.0.0.1:1/pay",
    ],
)
def test_a_link_that_leads_elsewhere_is_shown_to_nobody(scene: Scene, url: str) -> None:
    scene.replies(lambda _: spoken(policy("payment_required", url=url, state=STATE)))
    waits = scene.gateway.chat("cats", "paid-search")
    assert waits.status == 402
    assert url not in waits.body.decode().replace("\\\\", "\\")
    (asked,) = [each for each in scene.inbox() if each["run"] == waits.headers["x-tangle-runid"]]
    assert asked["url"] is None
    assert "link" in asked["note"]
    assert url not in scene.gateway.carnet("inbox", "show", asked["id"]).stdout


def test_a_link_to_the_agent_itself_is_shown_with_its_label(scene: Scene) -> None:
    url = "https://127.0.0.1/pay/1"
    scene.replies(
        lambda _: spoken(policy("payment_required", url=url, action_label="Pay", state="s"))
    )
    waits = scene.gateway.chat("cats", "paid-search")
    (asked,) = [each for each in scene.inbox() if each["run"] == waits.headers["x-tangle-runid"]]
    assert (asked["url"], asked["action_label"]) == (url, "Pay")
    shown = scene.gateway.carnet("inbox", "show", asked["id"]).stdout
    assert f"Pay: {url}" in shown
    assert "left)" in shown


def test_a_state_that_was_used_there_is_not_sent_twice_and_the_call_begins_anew(
    scene: Scene,
) -> None:
    used: list[str] = []

    def reply(sent: Sent) -> dict[str, Any]:
        if sent.resolution is None:
            return spoken(policy("consent_required", state=f"st-{len(scene.sent)}"))
        used.append(sent.resolution["in_reply_to_state"])
        return spoken({"text": "ok"})

    scene.replies(reply)
    waits = scene.gateway.chat("twice", "paid-search")
    done = scene.again(waits, "paid-search", "twice", resolution(state_of(waits)))
    assert done.status == 200
    second = scene.again(waits, "paid-search", "twice", resolution(state_of(waits)))
    assert (second.status, second.code) == (409, "policy_state_invalid")
    assert used == ["st-1"]


def test_who_declines_sends_no_resolution_down(scene: Scene) -> None:
    scene.replies(lambda _: task("INPUT_REQUIRED", policy("consent_required", state=STATE)))
    waits = scene.gateway.chat("no", "paid-search")
    done = scene.again(waits, "paid-search", "no", resolution(STATE, "rejected"))
    assert (done.status, done.code) == (403, "declined")
    assert [sent.resolution for sent in scene.sent] == [None]
    assert "CancelTask" in [each.body.get("method") for each in scene.peer.asked]


def test_a_part_of_a_task_that_waits_is_resolved_at_that_task(scene: Scene) -> None:
    part = policy("payment_required", state=STATE)

    def reply(sent: Sent) -> dict[str, Any]:
        return task("INPUT_REQUIRED", part) if sent.resolution is None else spoken({"text": "ok"})

    scene.replies(reply)
    waits = scene.gateway.chat("wait", "paid-search")
    done = scene.again(waits, "paid-search", "wait", resolution(STATE))
    assert (done.status, done.text) == (200, "ok")
    assert scene.sent[-1].message["taskId"] == "t-1"
    assert scene.sent[-1].text == "wait"


def test_data_of_an_agent_that_does_not_know_the_extension_is_data(scene: Scene) -> None:
    scene.replies(lambda _: spoken({"text": "well"}, policy("forbidden")))
    assert scene.gateway.chat("cats", "silent").text == "well"
    scene.replies(lambda _: spoken({"text": "well"}, {"data": {"kind": "cat", "age": 3}}))
    assert scene.gateway.chat("cats", "paid-search").text == "well"
