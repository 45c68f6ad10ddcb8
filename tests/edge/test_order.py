"""Several requests on one connection: each answered in its turn, none overtaken by a refusal."""

import http.client
import json
import signal
import threading
from pathlib import Path

import pytest

from carnet.testing.wait import PATIENCE_SECONDS
from tests.edge.wire import CHAT, HEAD, Wire, answers, ask, chat, say
from tests.support.http import chat_body
from tests.support.organisation import Organisation
from tests.support.served import AGENTS, CONFIG, executions

HEALTH = b"GET /healthz HTTP/1.1\r\n" + HEAD + b"\r\n"
CLOSING = b"GET /healthz HTTP/1.1\r\n" + HEAD + b"Connection: close\r\n\r\n"
BAD = b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"


def text_of(body: bytes) -> str:
    return str(json.loads(body)["choices"][0]["message"]["content"])


def test_a_connection_is_kept_for_the_next_request(acme: Organisation) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", acme.port, timeout=10)
    fields = {"authorization": f"Bearer {acme.token}", "content-type": "application/json"}
    ports = set()
    for number in range(5):
        connection.request("POST", "/v1/chat/completions", chat_body(str(number)), fields)
        assert text_of(connection.getresponse().read()) == str(number)
        ports.add(connection.sock.getsockname()[1])
    connection.close()
    assert len(ports) == 1


def test_requests_sent_at_once_are_answered_in_order(acme: Organisation) -> None:
    texts = [f"number {n}" for n in range(20)]
    raw = b"".join(ask(acme.token, text) for text in texts)
    found = say(acme.port, raw + CLOSING)
    assert [text_of(answer.body) for answer in found[:-1]] == texts
    assert found[-1].status == 200


def test_a_slow_answer_is_not_overtaken_by_the_next(acme: Organisation) -> None:
    slow, quick, closing = say(acme.port, ask(acme.token, "3", "slow") + HEALTH + CLOSING)
    assert text_of(slow.body) == "0 1 2 "
    assert quick.status == closing.status == 200


@pytest.mark.parametrize("bad", [BAD, CHAT + b"transfer-encoding: chunked\r\n\r\n0x1\r\n", b"\0"])
@pytest.mark.parametrize("ahead", [1, 3])
def test_a_bad_request_behind_good_ones_only_ends_the_connection(
    acme: Organisation, bad: bytes, ahead: int
) -> None:
    before = len(executions(acme.folder, "echo"))
    good = [ask(acme.token, str(n)) for n in range(ahead)]
    found = say(acme.port, b"".join(good) + bad + ask(acme.token, "never"))
    assert [text_of(answer.body) for answer in found] == [str(n) for n in range(ahead)]
    assert found[-1].headers["connection"] == "close"
    assert len(executions(acme.folder, "echo")) == before + ahead


def test_a_head_that_never_ends_behind_a_running_answer_does_not_disturb_it(
    hasty: Organisation,
) -> None:
    with Wire(hasty.port) as wire:
        wire.send(ask(hasty.token, "25", "slow"))
        wire.send(b"GET / HTTP/1.1\r\n")
        (answer,) = answers(wire.drip(b"X-A: a\r\n"))
    assert text_of(answer.body).split() == [str(n) for n in range(25)]
    assert answer.headers["connection"] == "close"


def test_only_so_many_requests_wait_on_one_connection(acme: Organisation) -> None:
    before = len(executions(acme.folder, "echo"))
    found = say(acme.port, ask(acme.token, "2", "slow") + ask(acme.token, "x") * 100)
    assert len(found) == 1 + 32
    assert len(executions(acme.folder, "echo")) == before + 32


def test_a_body_is_asked_for_when_the_client_waits_to_be_asked(acme: Organisation) -> None:
    raw = chat(acme.token, chat_body("hi"), b"expect: 100-continue", b"connection: close")
    head, _, body = raw.partition(b"\r\n\r\n")
    with Wire(acme.port) as wire:
        wire.send(head + b"\r\n\r\n")
        assert wire.read_until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        wire.send(body)
        (answer,) = answers(wire.read_to_end())
    assert text_of(answer.body) == "hi"


def test_a_request_may_come_in_any_pieces(acme: Organisation) -> None:
    body = chat_body("piece by piece")
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:9], body[9:]))
    fields = [b"authorization: Bearer " + acme.token.encode(), b"transfer-encoding: chunked"]
    raw = CHAT + b"\r\n".join([*fields, b"connection: close", b"", chunks + b"0\r\n\r\n"])
    with Wire(acme.port) as wire:
        for n in range(0, len(raw), 7):
            wire.send(raw[n : n + 7])
        (answer,) = answers(wire.read_to_end())
    assert text_of(answer.body) == "piece by piece"


def test_a_gateway_drains_beside_connections_that_do_nothing(tmp_path: Path) -> None:
    gateway = Organisation(tmp_path, "drain.example")
    gateway.configure(CONFIG, agents=AGENTS)
    gateway.start()
    got: list[bytes] = []
    with Wire(gateway.port), Wire(gateway.port) as kept, Wire(gateway.port) as half:
        kept.send(HEALTH)
        kept.read_until(b"}")
        half.send(b"GET / HTTP/1.1\r\n")
        with Wire(gateway.port) as stream:
            stream.send(ask(gateway.token, "10", "slow", stream=True))
            got.append(stream.read_until(b"\r\n"))
            assert gateway.process is not None
            gateway.process.send_signal(signal.SIGTERM)
            reading = threading.Thread(target=lambda: got.append(stream.read_to_end()))
            reading.start()
            assert gateway.process.wait(PATIENCE_SECONDS) == 0
            reading.join(PATIENCE_SECONDS)
    assert b"data: [DONE]" in b"".join(got)
