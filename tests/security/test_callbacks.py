"""A63: callbacks to where no peer may make us call are refused when they are named."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from carnet.errors import CallbackForbidden, InvalidRequest
from tests.runtime.egress.test_addresses_destinations import FORBIDDEN
from tests.security.support.scene import nothing_done
from tests.security.support.signing import CANARY, SHAPE, SignedEdge
from tests.support.http import request
from tests.support.signing.signed import Sender, message, refusal

TASK = "/agent/task"
# Spellings of this machine, each at a port where somebody listens.
HERE = [
    *("https://127.0.0.1:{}/", "http://127.0.0.1:{}/", "https://127.1:{}/", "https://0:{}/"),
    *("https://2130706433:{}/", "https://0x7f000001:{}/", "https://0177.0.0.1:{}/"),
    *("https://localhost:{}/", "https://localhost.:{}/", "https://[::ffff:127.0.0.1]:{}/"),
    *("https://x@127.0.0.1:{}/", "http://[::ffff:7f00:1]:{}/in", "https://0.0.0.0:{}/"),
]


@contextmanager
def nobody_comes() -> Iterator[int]:
    """A port of this machine that nobody connects to meanwhile."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0)
        yield int(listening.getsockname()[1])
        with pytest.raises(BlockingIOError):
            listening.accept()


def test_a63_the_whole_list_is_refused_before_anything_is_claimed(
    edge: SignedEdge, alice: Sender
) -> None:
    with nobody_comes() as port, nothing_done(edge.scene):
        for url in [*FORBIDDEN, *(spelled.format(port) for spelled in HERE), "", "not-a-url"]:
            asked = edge.message(alice, target=TASK, mode="async", callbackUrl=url)
            reply = edge.send(asked)
            assert refusal(reply) == SHAPE, url
            code = reply.headers["carnet-code"]
            assert code in {CallbackForbidden.code, InvalidRequest.code}, url
            assert CANARY.encode() not in reply.body
            assert url.encode() not in reply.body or not url


def test_a63_the_refusal_says_what_may_be_named(edge: SignedEdge, alice: Sender) -> None:
    asked = edge.message(alice, target=TASK, mode="async", callbackUrl="https://10.0.0.1/in")
    reply = edge.refuses(asked, CallbackForbidden, SHAPE)
    assert "public https address" in reply.json["error"]["message"]


def test_a63_nobody_who_is_not_proved_learns_anything_about_an_address(
    edge: SignedEdge, mallory: Sender
) -> None:
    asked = message(
        mallory, edge.identity, target=TASK, mode="async", callbackUrl="https://10.0.0.1/in"
    )
    with nothing_done(edge.scene):
        assert refusal(edge.send(asked)) == (401, "AUTH_FAILED")


def test_a_callback_is_for_tasks_alone(edge: SignedEdge, alice: Sender) -> None:
    asked = edge.message(alice, callbackUrl="https://hooks.example/in")
    edge.refuses(asked, InvalidRequest, SHAPE)


def test_a63_a_task_that_comes_with_a_token_is_judged_as_well(edge: SignedEdge) -> None:
    gateway = edge.scene.acme
    fields = [
        ("authorization", f"Bearer {edge.scene.alice}"),
        ("content-type", "application/json"),
    ]
    body = (
        b'{"model":"echo","messages":[{"role":"user","content":"hi"}],'
        b'"callback":"https://169.254.169.254/latest"}'
    )
    with nothing_done(edge.scene):
        reply = request("POST", gateway.url + "/tasks", fields, body)
    assert (reply.status, reply.json["error"]["code"]) == (422, CallbackForbidden.code)
