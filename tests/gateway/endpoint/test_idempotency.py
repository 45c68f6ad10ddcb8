"""A turn that is sent again: replay, attach, mismatch, never billed twice."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.support.http import Reply, chat_body, request
from tests.support.organisation import Organisation
from tests.support.served import executions


def turn(run: str, name: str = "t0.echo") -> list[tuple[str, str]]:
    return [("x-tangle-runid", run), ("x-tangle-turnid", f"{run}.{name}")]


def ledger(acme: Organisation, run: str) -> list[dict[str, str]]:
    entries: list[dict[str, str]] = acme.json("ledger", "--run", run)["entries"]
    return entries


def test_a_repeated_turn_is_answered_byte_for_byte_and_not_billed_again(
    acme: Organisation,
) -> None:
    first = acme.chat("hi", "paid", headers=turn("conv_repeat"))
    again = acme.chat("hi", "paid", headers=turn("conv_repeat"))
    assert first.body == again.body
    assert executions(acme.folder, "paid").count("conv_repeat.t0.echo") == 1
    assert [entry["amount"] for entry in ledger(acme, "conv_repeat")] == ["0.0002"]


def test_a_repeated_stream_is_the_same_bytes(acme: Organisation) -> None:
    options: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
    first = acme.chat("a b c", "words", headers=turn("conv_stream"), **options)
    again = acme.chat("a b c", "words", headers=turn("conv_stream"), **options)
    assert first.body == again.body
    assert first.body.endswith(b"data: [DONE]\n\n")
    assert len([t for t in executions(acme.folder, "words") if t.startswith("conv_stream.")]) == 1


def test_the_same_turn_with_another_request_is_refused_and_the_first_stays(
    acme: Organisation,
) -> None:
    first = acme.chat("hi", headers=turn("conv_other"))
    other = acme.chat("something else", headers=turn("conv_other"))
    assert (other.status, other.code) == (422, "idempotency_mismatch")
    assert acme.chat("hi", headers=turn("conv_other")).body == first.body


def test_copies_of_a_running_turn_attach_to_one_execution(acme: Organisation) -> None:
    def ask() -> Reply:
        return acme.chat("5", "slow", headers=turn("conv_copies"))

    with ThreadPoolExecutor(8) as pool:
        replies = [future.result() for future in [pool.submit(ask) for _ in range(8)]]
    assert {reply.body for reply in replies} == {replies[0].body}
    assert replies[0].text == "0 1 2 3 4 "
    assert executions(acme.folder, "slow").count("conv_copies.t0.echo") == 1


def test_a_stream_can_be_attached_to_from_its_first_event(acme: Organisation) -> None:
    replies: list[Reply] = []

    def ask() -> None:
        replies.append(acme.chat("5", "slow", headers=turn("conv_attach"), stream=True))

    first = threading.Thread(target=ask)
    first.start()
    while not any(t.startswith("conv_attach") for t in executions(acme.folder, "slow")):
        pass
    ask()
    first.join()
    assert replies[0].body == replies[1].body
    assert executions(acme.folder, "slow").count("conv_attach.t0.echo") == 1


def test_another_caller_with_the_same_ids_gets_its_own_turn(acme: Organisation) -> None:
    victim = acme.chat("secret of alice", headers=turn("conv_shared"))
    mallory = acme.new_token("mallory")
    reply = acme.chat("hello", headers=turn("conv_shared"), token=mallory)
    assert reply.status == 200
    assert b"secret of alice" not in reply.body
    assert victim.text == "secret of alice"
    assert b"secret" not in acme.get("/runs/conv_shared", token=mallory).body


def test_a_turn_claimed_in_advance_does_not_poison_anybody_elses(acme: Organisation) -> None:
    mallory = acme.new_token("mallory-early")
    acme.chat("poison", headers=turn("conv_ahead"), token=mallory)
    assert acme.chat("wanted", headers=turn("conv_ahead")).text == "wanted"


def keyed(key: str, *more: tuple[str, str]) -> list[tuple[str, str]]:
    return [("idempotency-key", key), *more]


def ids(reply: Reply) -> tuple[str, str]:
    return reply.headers["x-tangle-runid"], reply.headers["x-tangle-turnid"]


def test_a_call_with_a_key_is_answered_once_and_billed_once(acme: Organisation) -> None:
    first = acme.chat("hi", "paid", headers=keyed("order 66"))
    again = acme.chat("hi", "paid", headers=keyed("order 66"))
    run, turn_of_key = ids(first)
    assert (again.body, ids(again)) == (first.body, (run, turn_of_key))
    assert re.fullmatch("idem_[0-9a-f]{32}", run)
    assert turn_of_key == f"{run}.t0"
    assert executions(acme.folder, "paid").count(turn_of_key) == 1
    assert len(ledger(acme, run)) == 1
    other = acme.chat("something else", "paid", headers=keyed("order 66"))
    assert (other.status, other.code) == (422, "idempotency_mismatch")
    assert ids(acme.chat("hi", "paid", headers=keyed("order 67"))) != ids(first)


def test_who_names_a_request_by_a_key_is_told_that_its_answer_was_recorded(
    acme: Organisation,
) -> None:
    for stream in (False, True):
        name = f"told {stream}"
        first, again = [acme.chat("hi", headers=keyed(name), stream=stream) for _ in range(2)]
        assert "idempotent-replayed" not in first.headers
        assert again.headers["idempotent-replayed"] == "true"
    failed = [acme.chat("hi", "missing", headers=keyed("told missing")) for _ in range(2)]
    assert all("idempotent-replayed" not in reply.headers for reply in failed)  # nothing is kept
    waits = [acme.chat("hi", "cautious", headers=keyed("told waits")) for _ in range(2)]
    assert [reply.code for reply in waits] == ["approval_required", "approval_required"]
    assert [reply.headers.get("idempotent-replayed") for reply in waits] == [None, "true"]
    named = [acme.chat("hi", headers=turn("conv_told")) for _ in range(2)]
    assert all("idempotent-replayed" not in reply.headers for reply in named)  # it has no key


def test_the_key_of_one_caller_never_meets_that_of_another(acme: Organisation) -> None:
    """A41."""
    mallory = acme.new_token("mallory-keyed")
    first = acme.chat("secret of alice", headers=keyed("shared"))
    other = acme.chat("hello", headers=keyed("shared"), token=mallory)
    same = acme.chat("secret of alice", headers=keyed("shared"), token=mallory)
    assert (other.text, same.code) == ("hello", "idempotency_mismatch")
    assert ids(other)[0] != ids(first)[0]
    assert acme.get(f"/runs/{ids(first)[0]}", token=mallory).status == 404


def test_a_key_names_the_turn_within_a_run_that_is_named(acme: Organisation) -> None:
    run = ("x-tangle-runid", "conv_keyed")
    first, again = [acme.chat("hi", headers=keyed("step 1", run)) for _ in range(2)]
    assert ids(first)[0] == "conv_keyed"
    assert (first.body, ids(first)) == (again.body, ids(again))
    assert ids(acme.chat("hi", headers=keyed("step 2", run)))[1] != ids(first)[1]


def test_a_key_beside_a_turn_is_not_looked_at(acme: Organisation) -> None:
    reply = acme.chat("hi", headers=[*turn("conv_beside"), *keyed("ignored")])
    assert ids(reply) == ("conv_beside", "conv_beside.t0.echo")


def test_a_key_that_cannot_be_one_is_refused_and_nothing_runs(acme: Organisation) -> None:
    for headers in (keyed("k" * 256), keyed("one", *keyed("two"))):
        reply = acme.chat("hi", headers=headers)
        assert (reply.status, reply.code) == (400, "malformed_caller_context")
    assert acme.chat("hi", headers=keyed("k" * 255)).status == 200
    assert acme.chat("hi", headers=keyed(" ")).headers["x-tangle-runid"].startswith("conv_")


def test_a_task_with_a_key_is_accepted_once(acme: Organisation) -> None:
    fields = [("authorization", f"Bearer {acme.token}"), ("content-type", "application/json")]
    first, again = [
        request("POST", acme.url + "/tasks", [*fields, *keyed("later")], chat_body("hi", "echo"))
        for _ in range(2)
    ]
    assert (first.status, again.status) == (202, 202)
    assert [reply.headers.get("idempotent-replayed") for reply in (first, again)] == [None, "true"]
    assert first.json["taskId"] == again.json["taskId"]


def test_a_call_without_a_turn_id_is_never_a_repeat(acme: Organisation) -> None:
    run = [("x-tangle-runid", "conv_no_turn")]
    first, second = acme.chat("hi", headers=run), acme.chat("hi", headers=run)
    assert first.headers["x-tangle-turnid"] != second.headers["x-tangle-turnid"]


def test_nested_turns_of_other_implementations_do_not_collide(acme: Organisation) -> None:
    nested = [*turn("conv_nested"), ("x-tangle-parent-turnid", "conv_nested.t0.outer")]
    first = acme.chat("first", headers=nested)
    second = acme.chat("second", headers=nested)
    assert (first.text, second.text) == ("first", "second")
    assert acme.chat("first", headers=nested).body == first.body


def test_a_failed_turn_that_may_be_retried_runs_again_under_its_id(acme: Organisation) -> None:
    for _ in range(2):
        reply = acme.chat("hi", "broken", headers=turn("conv_again"))
        assert reply.code == "agent_failed"
    assert executions(acme.folder, "broken").count("conv_again.t0.echo") == 2
    assert acme.get("/runs/conv_again").json["turns"][0]["attempt"] == 2


def test_a_refusal_by_rate_leaves_the_turn_free(acme: Organisation) -> None:
    token = acme.new_token("hasty", "--rate", "1/h")
    assert acme.chat("hi", token=token).status == 200
    limited = acme.chat("hi", token=token, headers=turn("conv_rate"))
    assert (limited.status, limited.code) == (429, "rate_limited")
    assert 0 < int(limited.headers["retry-after"]) <= 3600
    assert acme.get("/runs/conv_rate", token=token).status == 404


def test_a_spending_limit_is_not_overshot(acme: Organisation) -> None:
    token = acme.new_token("thrifty", "--limit", "0.0005")

    def ask() -> int:
        fields = [("authorization", f"Bearer {token}"), ("content-type", "application/json")]
        return request(
            "POST", acme.url + "/v1/chat/completions", fields, chat_body("hi", "paid")
        ).status

    with ThreadPoolExecutor(8) as pool:
        statuses = [future.result() for future in [pool.submit(ask) for _ in range(8)]]
    assert sorted(statuses) == [200, 200, 402, 402, 402, 402, 402, 402]
    assert acme.chat("hi", "paid", token=token).code == "spending_limit_reached"


def test_a_repeat_may_ask_for_the_other_form_of_the_answer(acme: Organisation) -> None:
    acme.chat("a b", "words", headers=turn("conv_form"), stream=True)
    whole = acme.chat("a b", "words", headers=turn("conv_form"))
    assert whole.text == "a b "
    assert len([t for t in executions(acme.folder, "words") if t.startswith("conv_form.")]) == 1
