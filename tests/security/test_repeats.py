"""A turn that comes again: one execution, one bill, and the first answer stays what it was."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from carnet.testing.wait import until
from tests.faults.scene import open_calls
from tests.security.support.scene import (
    Running,
    Scene,
    bills,
    fresh,
    ids,
    nothing_done,
    query,
    runs_of,
)
from tests.support.http import Reply, request

COPIES = 300
MESSAGES = [{"role": "user", "content": "hi"}]


def ask(scene: Scene, run: str, body: dict[str, object], *, path: str = "") -> Reply:
    """Send a body as it is written."""
    fields = [
        ("authorization", f"Bearer {scene.alice}"),
        ("content-type", "application/json"),
        *ids(run),
    ]
    url = f"{scene.acme.url}{path}/v1/chat/completions"
    return request("POST", url, fields, json.dumps(body).encode())


@pytest.mark.parametrize(
    "other",
    [
        {"messages": [{"role": "user", "content": "Hi"}]},
        {"messages": [*MESSAGES, *MESSAGES]},
        {"messages": [{"role": "system", "content": "x"}, *MESSAGES]},
        {"messages": [{**MESSAGES[0], "name": "alice"}]},
        {"temperature": 0},
        {"unknown": {"nested": [1]}},
    ],
)
def test_the_same_turn_with_another_body_changes_nothing(
    scene: Scene, other: dict[str, object]
) -> None:
    """A43."""
    run = fresh("other")
    body: dict[str, object] = {"model": "paid", "messages": MESSAGES}
    first = ask(scene, run, body)
    with nothing_done(scene):
        reply = ask(scene, run, body | other)
        assert (reply.status, reply.code) == (422, "idempotency_mismatch")
        assert ask(scene, run, body).body == first.body
    assert first.text == "hi"


def test_the_same_body_in_another_order_is_the_same(scene: Scene) -> None:
    """A43: what is compared is what it says, not how it is written."""
    run = fresh("order")
    first = ask(scene, run, {"model": "paid", "messages": MESSAGES, "n": 1})
    with nothing_done(scene):
        again = ask(scene, run, {"n": 1, "messages": MESSAGES, "model": "paid"})
        other_form = ask(
            scene, run, {"n": 1, "model": "paid", "messages": MESSAGES, "stream": True}
        )
    assert first.body == again.body
    assert b'"content":"hi"' in other_form.body


def test_a_running_turn_is_not_disturbed_by_another_body(scene: Scene) -> None:
    """A43, A44: the other one is refused at once."""
    run = fresh("busy")
    running = Running(scene.acme, scene.alice, run)
    reply = scene.acme.chat("other", "held", token=scene.alice, headers=ids(run))
    assert (reply.status, reply.code) == (422, "idempotency_mismatch")
    (state,) = query(scene.acme, "SELECT state FROM turn WHERE turn = ?", f"{run}.t0.echo")
    assert state == ("running",)
    assert running.reply().text == "half whole "
    assert bills(scene.acme, run) == [("alice@acme.example", "agent:held", 1000)]


def test_three_hundred_copies_of_one_turn_are_one_call_on_both_sides(scene: Scene) -> None:
    """A44: across two gateways, while a second tenant sends the same ids to an agent here."""
    run = fresh("copies")

    def copy(number: int) -> Reply:
        if number % 10:
            agent, token = "@dear@globex.example", scene.alice
        else:
            agent, token = "dear", scene.mallory
        return scene.acme.chat("4", agent, token=token, headers=ids(run))

    with ThreadPoolExecutor(COPIES) as pool:
        replies = list(pool.map(copy, range(COPIES)))
    assert Counter(reply.status for reply in replies) == {200: COPIES}
    assert {reply.text for reply in replies} == {"0 1 2 3 "}
    assert len({reply.body for reply in replies}) == 2
    assert (runs_of(scene.acme, "dear", run), runs_of(scene.globex, "dear", run)) == (1, 1)
    assert sorted(bills(scene.acme, run)) == [
        ("alice@acme.example", "peer:globex.example", 1000),
        ("mallory@acme.example", "agent:dear", 1000),
    ]
    assert [(payer, amount) for payer, _, amount in bills(scene.globex, run)] == [
        ("acme.example@acme.example", 1000)
    ]


def test_copies_that_come_when_it_is_over_are_answered_from_the_record(scene: Scene) -> None:
    """A44: as a stream too, and an upstream gets the first alone."""
    run = fresh("over")
    first = scene.acme.chat("hi", "answer", token=scene.alice, headers=ids(run), stream=True)
    with nothing_done(scene), ThreadPoolExecutor(16) as pool:
        copies = pool.map(
            lambda _: scene.acme.chat(
                "hi", "answer", token=scene.alice, headers=ids(run), stream=True
            ),
            range(32),
        )
        assert {reply.body for reply in copies} == {first.body}
    assert first.body.endswith(b"data: [DONE]\n\n")


def waiting_for(scene: Scene, run: str, seconds: str, *, stream: bool = False) -> Reply:
    fields = [*ids(run), ("prefer", f"respond-async, wait={seconds}")]
    return scene.acme.chat(run, "held", token=scene.alice, headers=fields, stream=stream)


def test_a_copy_that_has_less_time_than_the_turn_is_told_to_come_again(scene: Scene) -> None:
    """A44: and the turn goes on for whoever began it."""
    run = fresh("hasty")
    scraper = scene.acme.new_token(run, "--scope", "metrics")
    until(lambda: open_calls(scene.acme, scraper) == 0)
    running = Running(scene.acme, scene.alice, run)
    for copy in (waiting_for(scene, run, "0"), waiting_for(scene, run, "1")):
        assert (copy.status, copy.code) == (409, "in_progress")
        assert copy.headers["retry-after"] == "1"
    with ThreadPoolExecutor(1) as pool:
        patient = pool.submit(waiting_for, scene, run, "60")
        until(lambda: open_calls(scene.acme, scraper) == 2)
        first = running.reply()
    assert (first.status, first.body) == (200, patient.result().body)
    assert waiting_for(scene, run, "0").body == first.body  # it is over: nothing to wait for
    assert runs_of(scene.acme, "held", run) == 1
    assert bills(scene.acme, run) == [("alice@acme.example", "agent:held", 1000)]


def test_a_stream_of_a_copy_ends_when_its_caller_has_no_more_time(scene: Scene) -> None:
    """A44: what was said so far was shown, and the end says why there is no more."""
    run = fresh("hasty-stream")
    running = Running(scene.acme, scene.alice, run)
    copy = waiting_for(scene, run, "1", stream=True)
    assert b'"in_progress"' in copy.body
    assert b"[DONE]" not in copy.body
    assert running.reply().text == "half whole "


def test_who_begins_a_turn_is_answered_within_the_time_that_it_gives(scene: Scene) -> None:
    """A44: a deadline holds for the first as for its copies."""
    run = fresh("impatient")
    reply = waiting_for(scene, run, "1")
    assert (reply.status, reply.code) == (504, "provider_timeout")
    assert bills(scene.acme, run) == []


def test_a_deadline_that_is_none_is_refused_and_nothing_runs(scene: Scene) -> None:
    with nothing_done(scene):
        reply = waiting_for(scene, fresh("never"), "soon")
        assert (reply.status, reply.code) == (400, "malformed_caller_context")
