"""Whatever grows is bounded, in the gateway's memory too."""

import re
from pathlib import Path

import pytest

from tests.edge.wire import CHAT, HEAD, Wire, answers, ask
from tests.support.organisation import Organisation
from tests.support.served import executions

ENDLESS = 64 * 1024 * 1024
CHUNKED = b"transfer-encoding: chunked\r\n\r\n"


def resident_bytes(gateway: Organisation) -> int:
    assert gateway.process is not None
    status = Path(f"/proc/{gateway.process.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found
    return int(found[1]) * 1024


@pytest.mark.parametrize(
    ("first", "piece", "status", "code"),
    [
        (b"GET /", b"a" * 4096, 414, "uri_too_long"),
        (b"GET / HTTP/1.1\r\nX-A: ", b"a" * 4096, 431, "headers_too_large"),
        (b"GET / HTTP/1.1\r\n", b"X-A: a\r\n" * 512, 431, "headers_too_large"),
        (b"", b"\r\n" * 2048, 431, "headers_too_large"),
        (CHAT + CHUNKED, b"1000\r\n%s\r\n" % (b"a" * 4096), 413, "body_too_large"),
        (CHAT + CHUNKED + b"1\r\na\r\n0\r\nX-A: ", b"a" * 4096, 431, "headers_too_large"),
        (CHAT + CHUNKED + b"1\r\na\r\n0\r\n", b"X-A: a\r\n" * 512, 431, "headers_too_large"),
        (CHAT + CHUNKED + b"1;", b"a" * 4096, 431, "headers_too_large"),
    ],
    ids=["target", "field", "fields", "line breaks", "body", "trailer", "trailers", "extension"],
)
def test_what_has_no_end_is_refused_and_not_kept(
    acme: Organisation, first: bytes, piece: bytes, status: int, code: str
) -> None:
    before = resident_bytes(acme)
    first = first.replace(CHUNKED, b"authorization: Bearer %s\r\n" % acme.token.encode() + CHUNKED)
    with Wire(acme.port) as wire:
        wire.send(first)
        (answer,) = answers(wire.flood(piece, ENDLESS))
    assert (answer.status, answer.code) == (status, code)
    assert resident_bytes(acme) - before < 5 * 1024 * 1024


def test_a_body_as_large_as_it_may_be_is_taken(acme: Organisation) -> None:
    text = "x" * (1024 * 1024 - 80)
    assert acme.chat(text).text == text


def test_a_request_that_was_answered_without_its_body_cannot_go_on_without_end(
    acme: Organisation,
) -> None:
    with Wire(acme.port) as wire:
        wire.send(CHAT.replace(b"application/json", b"text/plain") + CHUNKED)
        (answer,) = answers(wire.read_until(b"}"))
        assert (answer.status, answer.code) == (415, "media_type_unsupported")
        assert wire.flood(b"1000\r\n%s\r\n" % (b"a" * 4096), ENDLESS) == b""


def test_a_head_within_its_bounds_is_taken(acme: Organisation) -> None:
    fields = b"".join(b"X-%d: %s\r\n" % (n, b"a" * 140) for n in range(90))
    with Wire(acme.port) as wire:
        wire.send(b"GET /healthz?" + b"a" * 2000 + b" HTTP/1.1\r\n" + HEAD + fields + b"\r\n")
        (answer,) = answers(wire.read_until(b"}"))
    assert answer.status == 200


def test_a_caller_may_have_only_so_many_streams(acme: Organisation) -> None:
    before = len(executions(acme.folder, "slow"))
    with Wire(acme.port) as first, Wire(acme.port) as second:
        for wire in (first, second):
            wire.send(ask(acme.token, "30", "slow", stream=True))
            wire.read_until(b"\r\n")
        reply = acme.chat("1", "slow", stream=True)
        assert (reply.status, reply.code) == (429, "too_many_streams")
        assert reply.headers["retry-after"] == "1"
        assert acme.chat("hello").text == "hello"  # calls that are not streamed are not meant
    assert len(executions(acme.folder, "slow")) == before + 2
