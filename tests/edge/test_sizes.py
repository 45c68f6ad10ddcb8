"""Whatever grows is bounded, in the gateway's memory too."""

import re
from contextlib import ExitStack
from pathlib import Path

import pytest

from carnet.testing.wait import until
from tests.edge.conftest import STREAMS
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
    caller = acme.new_token("streamer")
    before = len(executions(acme.folder, "slow"))
    with ExitStack() as stack:
        wires = [stack.enter_context(Wire(acme.port)) for _ in range(STREAMS)]
        for wire in wires:
            wire.send(ask(caller, "600", "slow", stream=True))
        for wire in wires:
            wire.read_until(b"\r\n")
        reply = acme.chat("1", "slow", token=caller, stream=True)
        assert (reply.status, reply.code) == (429, "too_many_streams")
        assert reply.headers["retry-after"] == "1"
        other = acme.chat("hello", token=caller)  # calls that are not streamed are not meant
        assert other.text == "hello"
        follow = b"GET /runs/%s/events HTTP/1.1\r\n" + HEAD
        run = other.headers["x-tangle-runid"].encode()
        token = b"authorization: Bearer %s\r\n\r\n" % caller.encode()
        with Wire(acme.port) as wire:  # nor may it follow a run beside them
            wire.send(follow % run + token)
            (answer,) = answers(wire.read_until(b"}"))
        assert (answer.status, answer.code) == (429, "too_many_streams")
    assert len(executions(acme.folder, "slow")) == before + STREAMS


def test_whoever_follows_runs_has_streams_open(acme: Organisation) -> None:
    caller = acme.new_token("follower")
    running = Wire(acme.port)
    running.send(ask(caller, "600", "slow", stream=True))
    run = answers_head(running.read_until(b"\n\n\r\n"))["x-tangle-runid"]
    fields = HEAD + b"authorization: Bearer %s\r\n\r\n" % caller.encode()
    follow = b"GET /runs/%s/events HTTP/1.1\r\n" % run.encode() + fields
    with ExitStack() as stack:
        stack.enter_context(running)
        wires = [stack.enter_context(Wire(acme.port)) for _ in range(STREAMS)]
        for wire in wires[:-1]:
            wire.send(follow)
        for wire in wires[:-1]:
            wire.read_until(b"\n\n\r\n")
        wires[-1].send(follow)
        (answer,) = answers(wires[-1].read_until(b"}"))
        assert (answer.status, answer.code) == (429, "too_many_streams")
        reply = acme.chat("1", "slow", token=caller, stream=True)
        assert (reply.status, reply.code) == (429, "too_many_streams")
    until(lambda: acme.chat("1", "slow", token=caller, stream=True).status == 200)


def answers_head(data: bytes) -> dict[str, str]:
    """The fields of an answer that has begun."""
    lines = data.partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
    return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
