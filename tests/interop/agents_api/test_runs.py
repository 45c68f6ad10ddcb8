"""Runs have the names that callers give them, and no name is run twice."""

import threading

from carnet.testing.stage import Organisation
from tests.support.agents_api.client import Client, message, new_name, text_in

STARTED = "agents_chat_run_already_started"
FORBIDDEN = "agents_chat_run_owner_forbidden"


def test_a_name_that_was_run_is_refused_and_nothing_runs_again(client: Client) -> None:
    run, words = new_name(), new_name("words")
    given = message(words, id=run, sessionId="s1")
    assert text_in(client.result("counts", "message/send", given)) == "1"
    for method in ("message/send", "tasks/send"):
        error = client.error("counts", method, given)
        assert (error["code"], error["data"]["code"]) == (-32603, STARTED)
        assert error["message"] == "The run_id has already been claimed for execution."
    (frame,) = client.stream("counts", given)
    assert frame["error"]["data"]["code"] == STARTED
    assert text_in(client.send("counts", words)) == "2"


def test_another_message_under_the_same_name_is_refused_as_well(client: Client) -> None:
    run = new_name()
    client.send("counts", "first", id=run, sessionId="s1")
    error = client.error("counts", "message/send", message("second", id=run, sessionId="s1"))
    assert error["data"]["code"] == STARTED


def test_the_same_name_in_another_session_is_not_the_callers_to_use(client: Client) -> None:
    run = new_name()
    client.send("counts", "hello", id=run, sessionId="s1")
    error = client.error("counts", "message/send", message("hello", id=run, sessionId="s2"))
    assert (error["code"], error["data"]["code"]) == (-32603, FORBIDDEN)


def test_a_run_that_failed_is_not_run_again_under_its_name(client: Client) -> None:
    run = new_name()
    first = client.error("fails", "message/send", message("go", id=run))
    assert first["data"]["run_outcome"]["retryable"] is True
    again = client.error("fails", "message/send", message("go", id=run))
    assert again["data"]["code"] == STARTED


def test_the_name_of_somebody_elses_run_is_like_one_that_nobody_has_used(
    client: Client, other: Client
) -> None:
    run, words = new_name(), new_name("words")
    assert text_in(client.send("counts", words, id=run)) == "1"
    assert text_in(other.send("counts", words, id=run)) == "2"
    assert other.error("counts", "message/send", message(words, id=run))["data"]["code"] == STARTED


def test_of_many_who_send_one_name_at_a_time_one_is_run(client: Client) -> None:
    run, words = new_name(), new_name("words")
    body = message(words, id=run, sessionId="s1")
    replies: list[dict[str, object]] = []

    def send() -> None:
        replies.append(client.ask("counts", "message/send", body).json)

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([each for each in replies if "result" in each]) == 1
    assert text_in(client.send("counts", words)) == "2"


def test_a_key_beside_it_does_not_let_a_name_run_twice(client: Client) -> None:
    given = message("hello", id=new_name())
    fields = [("idempotency-key", new_name("key"))]
    assert "result" in client.ask("counts", "message/send", given, fields=fields).json
    fields = [("idempotency-key", new_name("key"))]
    reply = client.ask("counts", "message/send", given, fields=fields)
    assert reply.json["error"]["data"]["code"] == STARTED


def test_the_same_boundary_holds_after_a_restart(gateway: Organisation, client: Client) -> None:
    run = new_name()
    client.send("counts", "hello", id=run, sessionId="s1")
    gateway.kill()
    gateway.start()
    error = client.error("counts", "message/send", message("hello", id=run, sessionId="s1"))
    assert error["data"]["code"] == STARTED
