"""An agent three hops down asks for a payment: what the client of the first gateway sees of it."""

import json
from base64 import b64encode
from collections.abc import Iterator
from datetime import datetime

import pytest

from carnet.runtime.peers.policies import NOT_PAID
from carnet.testing.wait import until
from tests.faults.stores import rows
from tests.interop.conftest import Databases
from tests.interop.interrupts.scene import (
    AT_GLOBEX,
    PAYMENT,
    PRICE,
    SELLER,
    Scene,
    answer,
    held,
    poll,
    posted,
    resolution,
    same_turn,
    started,
    state_of,
)
from tests.support.http import Reply, chat_body, request
from tests.support.served import executions
from tests.support.signing.signed import now

HELD = (
    "SELECT t.n, t.reserve, t.holds FROM turn t JOIN run r ON r.n = t.run"
    " WHERE r.id = ? AND (t.reserve <> 0 OR t.holds IS NOT NULL)"
)


@pytest.fixture(scope="module")
def scene(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    scene = started(database, tmp_path_factory)
    yield scene
    scene.stop()


def test_a_payment_asked_for_three_hops_down_reaches_the_origin_and_is_answered_there(
    scene: Scene,
) -> None:
    """A46: nobody on the way swallows it, and all ledgers agree to the micro-unit."""
    waits = scene.ask()
    assert (waits.status, waits.code) == (402, "payment_required")
    asked = waits.json["error"]["interrupt"]
    assert waits.json["error"]["interrupts"] == [asked]
    assert (asked["kind"], asked["amount"], asked["currency"]) == ("payment", "0.02", "credits")
    assert (asked["origin"], asked["message"]) == (SELLER, "The archive costs two cents.")
    assert len(asked["state"]) >= 22  # characters of 6 bits: 128 bits or more
    assert waits.headers["x-should-retry"] == "false"
    done = scene.again(waits, resolution(asked["state"]))
    assert (done.status, done.text) == (200, "sold hi")
    run = waits.headers["x-tangle-runid"]
    assert posted(scene, run) == [(PAYMENT + PRICE, PAYMENT + PRICE)] * 2
    assert [held(gateway) for gateway in scene] == [[], [], []]
    assert done.json["usage"]["cost"] == "0.0202"
    for gateway in scene:
        assert gateway.json("ledger", "verify")["ok"]
        assert gateway.json("ledger", "differences")["differences"] == []


def test_a_resolution_is_good_once_and_for_nothing_else(scene: Scene) -> None:
    """A45: foreign, forged and used ones are refused alike, and nothing runs."""
    waits = scene.ask()
    ran = executions(scene.initech.folder, "seller")
    forged = scene.again(waits, resolution("A" * 43))
    assert (forged.status, forged.code) == (409, "policy_state_invalid")
    foreign = scene.again(scene.ask(), resolution(state_of(waits)))
    assert (foreign.status, foreign.code) == (409, "policy_state_invalid")
    assert len(executions(scene.initech.folder, "seller")) == len(ran) + 1  # of the other turn
    still = scene.again(waits)
    assert (still.status, still.body) == (waits.status, waits.body)
    done = scene.again(waits, resolution(state_of(waits)))
    assert done.status == 200
    used = scene.again(waits, resolution(state_of(waits)))
    assert (used.status, used.code) == (409, "policy_state_invalid")
    assert used.headers["x-should-retry"] == "false"
    same = scene.again(waits)
    assert (same.status, same.body) == (200, done.body)
    assert posted(scene, waits.headers["x-tangle-runid"]) == [(PAYMENT + PRICE,) * 2] * 2


def test_an_answer_that_comes_too_late_is_refused(scene: Scene) -> None:
    """A45."""
    text = "@hasty@globex.example hi"
    waits = scene.ask(text)
    until_when = datetime.fromisoformat(waits.json["error"]["interrupt"]["expires_at"])
    until(lambda: now() > until_when.timestamp())
    late = scene.again(waits, resolution(state_of(waits)), text=text)
    assert (late.status, late.code) == (409, "policy_state_invalid")
    assert len(executions(scene.globex.folder, "hasty")) == 1


@pytest.mark.parametrize("name", ["turn", "key"])
def test_a_caller_that_names_its_calls_answers_under_the_name(scene: Scene, name: str) -> None:
    names = {
        "turn": [("x-tangle-runid", "run-named"), ("x-tangle-turnid", "turn-named")],
        "key": [("idempotency-key", "call-named")],
    }[name]
    waits = scene.ask(headers=names)
    assert waits.status == 402
    assert scene.ask(headers=names).body == waits.body
    done = scene.ask(headers=[*names, resolution(state_of(waits))])
    assert (done.status, done.text) == (200, "sold hi")
    assert posted(scene, waits.headers["x-tangle-runid"]) == [(PAYMENT + PRICE,) * 2] * 2


def test_another_caller_with_the_right_state_is_told_nothing(scene: Scene) -> None:
    """A45: a turn is answered by who asked for it."""
    waits = scene.ask()
    other = scene.acme.new_token("other")
    refused = scene.acme.chat(
        AT_GLOBEX,
        "relay",
        token=other,
        headers=[*same_turn(waits), resolution(state_of(waits))],
    )
    assert (refused.status, refused.code) == (409, "policy_state_invalid")
    assert b"interrupt" not in refused.body.replace(b"/-/errors", b"")
    assert scene.again(waits).body == waits.body


def test_what_is_not_the_form_of_a_resolution_is_refused(scene: Scene) -> None:
    waits = scene.ask()
    state = state_of(waits)
    for written in (
        state,
        f"{state};outcome=maybe",
        f"{state};outcome=accepted;value=:bm8=",
        f"{state};outcome=accepted;value=:e30:",
        f"{state};outcome=accepted;value=:bm8=:",
        f"{state};outcome=accepted;resolver=me",
        f"{state};outcome=accepted, {state};outcome=rejected",
    ):
        refused = scene.again(waits, ("carnet-resolution", written))
        assert (refused.status, refused.code) == (400, "malformed_caller_context"), written
    assert scene.again(waits).body == waits.body


def test_who_says_no_is_heard_by_the_agent_and_pays_the_price_alone(scene: Scene) -> None:
    before = [held(gateway) for gateway in scene]
    waits = scene.ask()
    assert [held(gateway) for gateway in scene] != before  # a turn that waits holds its money
    done = scene.again(waits, resolution(state_of(waits), "rejected"))
    assert (done.status, done.text) == (200, "not sold")
    assert posted(scene, waits.headers["x-tangle-runid"]) == [(PRICE, PRICE)] * 2
    assert [held(gateway) for gateway in scene] == before


def test_who_has_little_left_pays_out_of_what_the_call_holds(scene: Scene) -> None:
    """R53: the call may cost more than there is; it is told what is left beside the payment."""
    token = scene.acme.new_token("pinched", "--limit", "0.05")
    waits = scene.ask(token=token)
    assert dict(held(scene.acme))["token:pinched"] == 50_000
    done = scene.again(waits, resolution(state_of(waits)), token=token)
    assert (done.status, done.text) == (200, "sold hi")
    assert posted(scene, waits.headers["x-tangle-runid"]) == [(PAYMENT + PRICE,) * 2] * 2
    assert "token:pinched" not in dict(held(scene.acme))


def test_an_answer_that_cannot_be_paid_is_refused_and_not_used(scene: Scene) -> None:
    token = scene.acme.new_token("poor", "--limit", "0.01")
    waits = scene.ask("hi", "seller", token=token)
    assert waits.status == 402
    headers = [*same_turn(waits), resolution(state_of(waits))]
    refused = scene.ask("hi", "seller", headers=headers, token=token)
    assert (refused.status, refused.code) == (402, "spending_limit_reached")
    numbers = refused.json["error"]
    assert (numbers["needed"], numbers["left"]) == ("0.02", "0.0098")  # it holds its price
    again = scene.ask("hi", "seller", headers=same_turn(waits), token=token)
    assert again.body == waits.body
    headers = [*same_turn(waits), resolution(state_of(waits), "rejected")]
    assert scene.ask("hi", "seller", headers=headers, token=token).text == "not sold"


@pytest.mark.parametrize(
    ("agent", "text", "hops"),
    [
        ("@dear@globex.example", "hi", 1),
        ("relay", "@relay@globex.example @dear@initech.example hi", 2),
    ],
)
def test_a_payment_beyond_the_credit_at_a_peer_is_asked_for_again_and_paid_once_there_is_room(
    scene: Scene, agent: str, text: str, hops: int
) -> None:
    """Its question is open again, says why, and no answer was used for nothing."""
    for callee in range(1, hops):
        grant(scene, callee)
    waits = scene.ask(text, agent)
    assert waits.status == 402
    name, run = waits.json["error"]["interrupt"]["id"], waits.headers["x-tangle-runid"]
    assert answer(scene.acme, name).status == 200
    page = until(
        lambda: scene.acme.get(f"/approvals/{name}").json, lambda page: page["status"] == "open"
    )
    assert page["message"] == f"{NOT_PAID} All of it costs twelve."
    assert posted(scene, run) == [(0, 0)] * 2
    grant(scene, hops)

    def asked() -> Reply:
        """The call again, answered anew while it still waits: its peer learns of it in a second."""
        if scene.acme.get(f"/approvals/{name}").json["status"] == "open":
            answer(scene.acme, name)
        return scene.again(waits, text=text, agent=agent)

    assert until(asked, lambda reply: reply.status == 200, pause=0.5).text == "sold hi"
    assert posted(scene, run) == [(12_000_000,) * 2] * hops + [(0, 0)] * (2 - hops)
    assert [rows(gateway, HELD, run) for gateway in scene] == [[], [], []]


def grant(scene: Scene, callee: int) -> None:
    """Give more credit to whoever calls this one of the three."""
    caller = scene[callee - 1]
    scene[callee].carnet("peers", "add", caller.domain, "--url", caller.url, "--credit", "40")


def test_a_value_and_its_schema_travel_there_and_back(scene: Scene) -> None:
    text = "@relay@globex.example @clerk@initech.example hi"
    waits = scene.ask(text)
    assert (waits.status, waits.code) == (403, "input_required")
    asked = waits.json["error"]["interrupt"]
    assert (asked["options"], asked["schema"]) == (["red", "blue"], {"type": "string"})
    assert asked["expires_at"]
    value = b64encode(b'"blue"').decode()
    done = scene.again(waits, resolution(asked["state"], value=value), text=text)
    assert (done.status, done.text) == (200, "accepted blue")


def test_questions_one_after_the_other_are_each_answered_in_the_same_turn(scene: Scene) -> None:
    text = "@relay@globex.example @guard@initech.example hi"
    first = scene.ask(text)
    assert (first.status, first.code) == (403, "approval_required")
    second = scene.again(first, resolution(state_of(first)), text=text)
    assert (second.status, second.code) == (403, "consent_required")
    assert scene.again(first, text=text).body == second.body
    done = scene.again(first, resolution(state_of(second), "rejected"), text=text)
    assert (done.status, done.text) == (200, "accepted rejected")


def test_two_that_ask_at_once_are_shown_together_and_answered_one_by_one(scene: Scene) -> None:
    text = "@seller@globex.example @clerk@globex.example"
    waits = scene.ask(text, "both")
    asked = waits.json["error"]["interrupts"]
    assert waits.status == {"payment": 402, "input": 403}[asked[0]["kind"]]  # by the oldest
    assert waits.json["error"]["interrupt"] == asked[0]
    assert sorted(each["origin"] for each in asked) == [
        "@clerk@globex.example",
        "@seller@globex.example",
    ]
    by_kind = {each["kind"]: each["state"] for each in asked}
    headers = [*same_turn(waits), resolution(by_kind["payment"])]
    left = scene.ask(text, "both", headers=headers)
    assert (left.status, left.code) == (403, "input_required")
    assert [each["kind"] for each in left.json["error"]["interrupts"]] == ["input"]
    value = b64encode(b'"red"').decode()
    headers = [*same_turn(waits), resolution(by_kind["input"], value=value)]
    done = scene.ask(text, "both", headers=headers)
    assert (done.status, done.text) == (200, "sold hi and accepted red")
    assert posted(scene, waits.headers["x-tangle-runid"])[0] == (PAYMENT + PRICE,) * 2


def test_a_direct_call_to_a_peer_waits_and_goes_on_as_well(scene: Scene) -> None:
    waits = scene.ask("hi", "@seller@globex.example")
    assert (waits.status, waits.code) == (402, "payment_required")
    assert waits.json["error"]["interrupt"]["origin"] == "@seller@globex.example"
    headers = [*same_turn(waits), resolution(state_of(waits))]
    done = scene.ask("hi", "@seller@globex.example", headers=headers)
    assert (done.status, done.text) == (200, "sold hi")
    assert posted(scene, waits.headers["x-tangle-runid"])[0] == (PAYMENT + PRICE,) * 2
    assert done.json["usage"]["cost"] == "0.0202"


def test_our_own_agent_is_named_by_its_address(scene: Scene) -> None:
    waits = scene.ask("hi", "seller")
    assert waits.json["error"]["interrupt"]["origin"] == "@seller@acme.example"
    child = scene.ask("seller hi", "relay")
    assert child.json["error"]["interrupt"]["origin"] == "@seller@acme.example"


def test_a_person_answers_at_the_origin_and_the_caller_reads_what_comes_of_it(scene: Scene) -> None:
    waits = scene.ask()
    asked = waits.json["error"]["interrupt"]
    answered = answer(scene.acme, asked["id"])
    assert (answered.status, answered.json["asked_by"]) == (200, SELLER)
    done = until(lambda: scene.again(waits), lambda reply: reply.status == 200)
    assert done.text == "sold hi"
    assert posted(scene, waits.headers["x-tangle-runid"]) == [(PAYMENT + PRICE,) * 2] * 2
    used = scene.again(waits, resolution(asked["state"]))
    assert (used.status, used.code) == (409, "policy_state_invalid")


def test_a_stream_that_waits_before_it_began_is_an_error_and_after_it_one_frame(
    scene: Scene,
) -> None:
    waits = scene.ask(stream=True)
    assert (waits.status, waits.code) == (402, "payment_required")
    done = scene.again(waits, resolution(state_of(waits)), stream=True)
    assert done.status == 200
    assert b"sold" in done.body
    assert done.body.endswith(b"data: [DONE]\n\n")
    text = "@teller@globex.example hi"
    begun = scene.ask(text, stream=True)
    assert begun.status == 200
    assert b"[DONE]" not in begun.body
    *_, last = begun.body.removesuffix(b"\n\n").split(b"\n\n")
    asked = json.loads(last.removeprefix(b"data: "))["error"]["interrupt"]
    assert (asked["kind"], asked["origin"]) == ("payment", "@teller@globex.example")
    assert scene.again(begun, text=text, stream=True).body == begun.body
    after = scene.again(begun, resolution(asked["state"]), text=text, stream=True)
    assert after.body.endswith(b"data: [DONE]\n\n")
    assert after.body.index(b"looking") < after.body.index(b"sold")
    assert after.body.count(b"looking") == 1  # what was said before the question is said again


def test_a_task_waits_as_running_and_shows_its_owner_what_for(scene: Scene) -> None:
    fields = [
        ("authorization", f"Bearer {scene.acme.token}"),
        ("content-type", "application/json"),
        ("idempotency-key", "a-task-that-waits"),
    ]
    body = chat_body(AT_GLOBEX, "relay")
    begun = request("POST", f"{scene.acme.url}/tasks", fields, body)
    assert begun.status == 202
    task = begun.json["taskId"]
    until(lambda: "interrupts" in poll(scene, task))
    page = poll(scene, task)
    assert (page["status"], page["waits"]) == ("running", True)
    assert (page["interrupt"]["origin"], page["interrupt"]["amount"]) == (SELLER, "0.02")
    assert page["interrupts"] == [page["interrupt"]]
    reader = scene.acme.new_token("reader", "--scope", "admin:runs", "--scope", "run:read")
    seen = scene.acme.get(f"/tasks/{task}", token=reader).json
    assert "state" not in seen["interrupt"]  # who may see it may not answer it
    shown = scene.acme.carnet("tasks", "show", task).stdout
    assert "payment" in shown
    assert SELLER in shown
    answer = resolution(page["interrupt"]["state"])
    taken = request("POST", f"{scene.acme.url}/tasks", [*fields, answer], body)
    assert (taken.status, taken.json["taskId"]) == (202, task)
    until(lambda: poll(scene, task)["status"] == "done")
    assert poll(scene, task)["result"] == {"text": "sold hi"}
    used = request("POST", f"{scene.acme.url}/tasks", [*fields, answer], body)
    assert (used.status, used.code) == (409, "policy_state_invalid")
    assert posted(scene, page["run"]) == [(PAYMENT + PRICE,) * 2] * 2
