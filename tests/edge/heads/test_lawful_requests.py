"""Requests that are odd and lawful: what usual clients send is served, and hides nothing."""

import json

import pytest

from tests.edge.wire import HEAD, Answer, Wire, answers, ask, chat, say
from tests.support.http import chat_body
from tests.support.organisation import Organisation
from tests.support.served import executions

H2C = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAA\r\n"
CHAT = b"/v1/chat/completions"


def java(acme: Organisation, framing: bytes, body: bytes) -> bytes:
    """What the client of Java's library sends on a new connection, unless it is told otherwise."""
    return (
        b"POST " + CHAT + b" HTTP/1.1\r\n"
        b"Connection: Upgrade, HTTP2-Settings\r\n" + framing + b"\r\n"
        b"Host: 127.0.0.1:%d\r\n"
        % acme.port
        + b"HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n"
        b"Upgrade: h2c\r\nUser-Agent: Java-http-client/21.0.2\r\n"
        b"Authorization: Bearer " + acme.token.encode() + b"\r\n"
        b"Content-Type: application/json\r\n\r\n" + body
    )


def curl(acme: Organisation, body: bytes, *, expects: bool = False) -> bytes:
    """What `curl --http2 -d` sends."""
    return (
        b"POST " + CHAT + b" HTTP/1.1\r\n"
        b"Host: 127.0.0.1:%d\r\n"
        % acme.port
        + b"User-Agent: curl/8.5.0\r\nAccept: */*\r\n"
        + H2C
        + b"Authorization: Bearer "
        + acme.token.encode()
        + b"\r\nContent-Type: application/json\r\n"
        + b"Content-Length: %d\r\n" % len(body)
        + (b"Expect: 100-continue\r\n" if expects else b"")
        + b"\r\n"
        + (b"" if expects else body)
    )


def in_chunks(body: bytes) -> bytes:
    half = len(body) // 2
    pieces = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (body[:half], body[half:])]
    return b"".join([*pieces, b"0\r\n\r\n"])


def text_of(answer: Answer) -> str:
    assert answer.status == 200, answer
    return str(json.loads(answer.body)["choices"][0]["message"]["content"])


# ------------------------------------------------------------------------------- another protocol


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunks"])
@pytest.mark.parametrize("at_once", [False, True], ids=["piecemeal", "at_once"])
def test_javas_client_is_answered_though_it_would_like_another_protocol(
    acme: Organisation,
    chunked: bool,  # noqa: FBT001
    at_once: bool,  # noqa: FBT001
) -> None:
    body = chat_body("from java")
    framing = b"Transfer-encoding: chunked" if chunked else b"Content-Length: %d" % len(body)
    raw = java(acme, framing, in_chunks(body) if chunked else body)
    with Wire(acme.port) as wire:
        for piece in [raw] if at_once else [raw[at : at + 7] for at in range(0, len(raw), 7)]:
            wire.send(piece)
        (answer,) = answers(wire.read_to_end())
    assert (text_of(answer), answer.headers["connection"]) == ("from java", "close")


def test_curl_is_answered_though_it_would_like_another_protocol(acme: Organisation) -> None:
    (answer,) = say(acme.port, curl(acme, chat_body("from curl")))
    assert text_of(answer) == "from curl"


def test_curl_is_asked_for_a_body_that_it_holds_back(acme: Organisation) -> None:
    body = chat_body("held back")
    with Wire(acme.port) as wire:
        wire.send(curl(acme, body, expects=True))
        assert wire.read_until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        wire.send(body)
        (answer,) = answers(wire.read_to_end())
    assert text_of(answer) == "held back"


def test_a_large_body_beside_an_upgrade_comes_whole(acme: Organisation) -> None:
    text = "large " * 30_000
    (answer,) = say(acme.port, curl(acme, chat_body(text)))
    assert text_of(answer) == text


@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_nothing_is_read_behind_a_body_beside_an_upgrade(acme: Organisation, framing: str) -> None:
    before, body = len(executions(acme.folder, "echo")), chat_body("one")
    behind = ask(acme.token, "two")
    if framing == "length":
        raw = java(acme, b"Content-Length: %d" % len(body), body)
    else:
        raw = java(acme, b"Transfer-Encoding: chunked", in_chunks(body))
    (answer,) = say(acme.port, raw + behind)
    assert text_of(answer) == "one"
    assert len(executions(acme.folder, "echo")) == before + 1


@pytest.mark.parametrize(
    "framing",
    [
        b"content-length: 4\r\ntransfer-encoding: chunked",
        b"content-length: 4\r\ncontent-length: 4",
        b"content-length: 4, 4",
        b"transfer-encoding: xchunked",
        b"transfer-encoding: chunked, identity",
    ],
)
def test_an_upgrade_excuses_no_framing(acme: Organisation, framing: bytes) -> None:
    before = executions(acme.folder, "echo")
    hidden = ask(acme.token, "smuggled")
    raw = b"POST / HTTP/1.1\r\n" + HEAD + H2C + framing + b"\r\n\r\n0\r\n\r\n" + hidden
    (answer,) = say(acme.port, raw)
    assert (answer.status, answer.code) == (400, "malformed_request")
    assert executions(acme.folder, "echo") == before


@pytest.mark.parametrize(
    "chunks",
    [
        b"3\r\nabcXX0\r\n\r\n",
        b"0x3\r\nabc\r\n0\r\n\r\n",
        b"3\r\nabc\r\n0\r\nauthorization: x\r\n\r\n",
    ],
    ids=["end", "number", "trailer"],
)
def test_a_body_beside_an_upgrade_is_read_as_strictly_as_any(
    acme: Organisation, chunks: bytes
) -> None:
    raw = b"POST / HTTP/1.1\r\n" + HEAD + H2C + b"Transfer-Encoding: chunked\r\n\r\n" + chunks
    (answer,) = say(acme.port, raw)
    assert (answer.status, answer.code) == (400, "malformed_request")


def test_an_upgrade_behind_another_request_is_answered_in_its_turn(acme: Organisation) -> None:
    raw = ask(acme.token, "first") + curl(acme, chat_body("second")) + ask(acme.token, "third")
    first, second = say(acme.port, raw)
    assert (text_of(first), text_of(second)) == ("first", "second")


# -------------------------------------------------------------------------------------- framing


@pytest.mark.parametrize("coding", [b"Chunked", b"CHUNKED", b"  chunkeD "])
def test_the_name_of_the_transfer_coding_is_of_any_case(acme: Organisation, coding: bytes) -> None:
    raw = chat(acme.token, b"", b"transfer-encoding: " + coding)
    raw = raw.replace(b"content-length: 0\r\n", b"") + in_chunks(chat_body("in chunks"))
    with Wire(acme.port) as wire:
        wire.send(raw)
        (one,) = answers(wire.read_until(b"}"))
        wire.send(ask(acme.token, "and on"))  # the body ended where both sides think
        (two,) = answers(wire.read_until(b"}"))
    assert (text_of(one), text_of(two)) == ("in chunks", "and on")


# --------------------------------------------------------------------------------- whole targets


@pytest.mark.parametrize(
    ("target", "host"),
    [
        (b"http://a/healthz", b"a"),
        (b"https://a/healthz", b"a"),
        (b"HTTP://Acme.Example:8700/healthz", b"acme.example:8700"),
        (b"http://[::1]:8700/healthz?x=http://b/", b"[::1]:8700"),
    ],
)
def test_a_whole_address_is_taken_for_the_path_in_it(
    acme: Organisation, target: bytes, host: bytes
) -> None:
    raw = b"GET " + target + b" HTTP/1.1\r\nHost: " + host + b"\r\nconnection: close\r\n\r\n"
    (answer,) = say(acme.port, raw)
    assert (answer.status, answer.body) == (200, b'{"status":"ok"}')


@pytest.mark.parametrize("target", [b"http://a", b"http://a?x=1", b"http://a/"])
def test_an_address_without_a_path_has_the_shortest_one(acme: Organisation, target: bytes) -> None:
    raw = b"GET " + target + b" HTTP/1.1\r\nHost: a\r\nconnection: close\r\n\r\n"
    (answer,) = say(acme.port, raw)
    assert (answer.status, answer.code) == (421, "host_unknown")  # there the console is, under ours


def test_a_call_to_a_whole_address_is_answered(acme: Organisation) -> None:
    raw = ask(acme.token, "by proxy").replace(b"POST /", b"POST http://a/", 1)
    with Wire(acme.port) as wire:
        wire.send(raw)
        (answer,) = answers(wire.read_until(b"}"))
    assert text_of(answer) == "by proxy"


@pytest.mark.parametrize(
    "head",
    [
        b"GET http://evil/healthz HTTP/1.1\r\nHost: a\r\n",
        b"GET http://a.evil/healthz HTTP/1.1\r\nHost: a\r\n",
        b"GET http://a:1/healthz HTTP/1.1\r\nHost: a\r\n",
        b"GET http://a@evil/healthz HTTP/1.1\r\nHost: a\r\n",
        b"GET http://evil@a/healthz HTTP/1.1\r\nHost: a\r\n",
        b"GET http://a/healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n",
        b"GET http://a/healthz HTTP/1.1\r\n",
        b"GET http:///healthz HTTP/1.1\r\nHost: a\r\n",
        b"GET http:/healthz HTTP/1.1\r\nHost: a\r\n",
        b"GET ftp://a/healthz HTTP/1.1\r\nHost: a\r\n",
        b"GET http://a/healthz#x HTTP/1.1\r\nHost: a\r\n",
        b"GET a/healthz HTTP/1.1\r\nHost: a\r\n",
        b"CONNECT http://a/healthz HTTP/1.1\r\nHost: a\r\n",
    ],
)
def test_a_whole_address_that_may_be_another_one_is_refused(
    acme: Organisation, head: bytes
) -> None:
    (answer,) = say(acme.port, head + b"\r\n")
    assert (answer.status, answer.code) == (400, "malformed_request")


def test_a_whole_address_is_no_way_past_the_limit_of_paths(acme: Organisation) -> None:
    raw = b"GET http://a/" + b"x" * 2048 + b" HTTP/1.1\r\nHost: a\r\n\r\n"
    (answer,) = say(acme.port, raw)
    assert (answer.status, answer.code) == (414, "uri_too_long")
