"""What a request is called: in every answer, and in what is kept of it (R49)."""

import json
import re

import pytest

from carnet.testing.wait import until
from tests.edge.wire import say
from tests.support.http import Reply, chat_body, request
from tests.support.organisation import Organisation

CORRELATION, REQUEST_ID = "x-correlation-id", "x-request-id"


def name_of(reply: Reply) -> str:
    assert reply.headers[CORRELATION] == reply.headers[REQUEST_ID]
    return reply.headers[REQUEST_ID]


def found_by(acme: Organisation, name: str, run: str) -> None:
    """Wait until the run, and no other, is found by a name."""
    until(
        lambda: [found["run"] for found in acme.json("runs", "--correlation", name)["runs"]],
        lambda runs: runs == [run],
    )


def test_every_answer_has_a_name_of_its_own(acme: Organisation) -> None:
    replies = [
        acme.chat("hi"),
        acme.chat("hi", stream=True),
        acme.chat("hi", "broken"),
        acme.chat("hi", "broken", stream=True),
        acme.chat("hi", "nobody"),
        acme.chat("hi", token="ck_wrong"),
        acme.get("/v1/models"),
        acme.get("/no/such/place"),
        *[request("GET", acme.url + path) for path in ("/healthz", "/runs", "/openapi.json")],
        request("HEAD", acme.url + "/healthz"),
        request("DELETE", acme.url + "/v1/models"),
        request("POST", acme.url + "/agent/message", body=b"{}"),
        request("GET", acme.url + "/.well-known/agent.json"),
    ]
    names = [name_of(reply) for reply in replies]
    assert all(re.fullmatch("[0-9a-f]{32}", name) for name in names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    "head",
    [
        b"GET /healthz HTTP/1.1\r\n\r\n",  # no host
        b"not http at all\r\n\r\n",
        b"GET /" + b"p" * 20_000 + b" HTTP/1.1\r\nhost: a\r\n\r\n",
    ],
)
def test_so_has_a_refusal_of_a_head(acme: Organisation, head: bytes) -> None:
    (answer,) = say(acme.port, head)
    assert answer.status in {400, 414}
    assert re.fullmatch("[0-9a-f]{32}", answer.headers[REQUEST_ID])
    assert answer.headers[REQUEST_ID] == answer.headers[CORRELATION]


def test_a_name_that_the_caller_gave_comes_back_and_finds_the_run(acme: Organisation) -> None:
    for number, model in enumerate(("echo", "words", "broken")):
        name = f"order-17/{number}:x"
        reply = acme.chat("hi", model, headers=[(CORRELATION, name)])
        assert name_of(reply) == name
        run = reply.headers["x-tangle-runid"]
        found_by(acme, name, run)
    assert name_of(request("GET", acme.url + "/runs", [(CORRELATION, "mine")])) == "mine"


def test_a_name_that_was_drawn_finds_the_run(acme: Organisation) -> None:
    reply = acme.chat("hi")
    run = reply.headers["x-tangle-runid"]
    found_by(acme, name_of(reply), run)
    other = acme.new_token("elsewhere", "--scope", "run:read")
    page = acme.get(f"/runs?correlation={name_of(reply)}", token=other)
    assert page.json["runs"] == []


@pytest.mark.parametrize(
    "headers",
    [
        [(CORRELATION, "~" * 129)],
        [(CORRELATION, "two words")],
        [(CORRELATION, "")],
        [(CORRELATION, "a"), (CORRELATION, "b")],
        [(REQUEST_ID, "that-of-a-proxy")],
    ],
)
def test_what_is_no_name_is_not_taken_for_one(
    acme: Organisation, headers: list[tuple[str, str]]
) -> None:
    assert re.fullmatch("[0-9a-f]{32}", name_of(acme.chat("hi", headers=headers)))


def test_a_task_is_found_by_the_name_of_its_request(acme: Organisation) -> None:
    fields = [("authorization", f"Bearer {acme.token}"), ("content-type", "application/json")]
    reply = request("POST", acme.url + "/tasks", fields, chat_body("hi", "echo"))
    found_by(acme, name_of(reply), reply.json["run"])


def test_what_became_no_call_is_in_the_log_by_its_name(acme: Organisation) -> None:
    name = name_of(acme.chat("hi", token="ck_wrong"))
    lines = until(lambda: [line for line in acme.log_lines() if name in line], bool)
    assert json.loads(lines[0])["correlation_id"] == name
