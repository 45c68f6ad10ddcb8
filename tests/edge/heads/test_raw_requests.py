"""Raw requests that two servers could read differently: refused, closed, and nothing behind them.

A request that reaches the application at `/` is refused there as `not_found`, and counted.
"""

from collections.abc import Callable

import pytest

from tests.edge.wire import HEAD, Wire, answers, ask, chat, say
from tests.support.http import chat_body
from tests.support.organisation import Organisation
from tests.support.served import executions

POST = b"POST / HTTP/1.1\r\nHost: a\r\n"
GET = b"GET / HTTP/1.1\r\nHost: a\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
CHUNKS = b"3\r\nabc\r\n0\r\n\r\n"

MALFORMED = {
    "clte": POST + b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG",
    "dupcl_diff": POST + b"Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde",
    "dupcl_same": POST + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
    "cl_plus": POST + b"Content-Length: +3\r\n\r\nabc",
    "cl_neg": POST + b"Content-Length: -3\r\n\r\nabc",
    "cl_under": POST + b"Content-Length: 0_3\r\n\r\nabc",
    "cl_list": POST + b"Content-Length: 3, 3\r\n\r\nabc",
    "te_xchunked": POST + b"Transfer-Encoding: xchunked\r\n\r\n" + CHUNKS,
    "te_identity": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n" + CHUNKS,
    "te_tab": POST + b"Transfer-Encoding:\x0bchunked\r\n\r\n" + CHUNKS,
    "te_10": b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS,
    "ws_colon": GET + b"X-A : b\r\n\r\n",
    "obsfold": GET + b"X-A: b\r\n c\r\n\r\n",
    "barelf": b"GET / HTTP/1.1\nHost: a\nX-A: b\n\n",
    "barecr": GET + b"X-A: b\rX-B: c\r\n\r\n",
    "nul": GET + b"X-A: b\0c\r\n\r\n",
    "ctl_name": GET + b"X\x01A: b\r\n\r\n",
    "nohost": b"GET / HTTP/1.1\r\n\r\n",
    "duphost": GET + b"Host: b\r\n\r\n",
    "badhost": b"GET / HTTP/1.1\r\nHost: a b/@c\r\n\r\n",
    "chunk_ext_lf": CHUNKED + b"3;a=\nb\r\nabc\r\n0\r\n\r\n",
    "chunk_badterm": CHUNKED + b"3\r\nabcXX0\r\n\r\n",
    "chunk_0x": CHUNKED + b"0x3\r\nabc\r\n0\r\n\r\n",
    "chunk_huge": CHUNKED + b"ffffffffffffffffff\r\nabc\r\n0\r\n\r\n",
    "absuri_mismatch": b"GET http://evil/ HTTP/1.1\r\nHost: a\r\n\r\n",
    "latin1": GET + b"X-A: \xff\xfe\r\n\r\n",
    # Beyond the first list: what else has more than one reading.
    "authority": b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
    "asterisk": b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    "fragment": b"GET /healthz#x HTTP/1.1\r\nHost: a\r\n\r\n",
    "http_10": b"GET / HTTP/1.0\r\nHost: a\r\n\r\n",
    "http_09": b"GET /\r\n\r\n",
    "http_20": b"GET / HTTP/2.0\r\nHost: a\r\n\r\n",
    "te_twice": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS,
    "host_empty": b"GET / HTTP/1.1\r\nHost:\r\n\r\n",
    "trailer": CHUNKED + b"3\r\nabc\r\n0\r\nauthorization: Bearer x\r\n\r\n",
    "tunnel_body": b"CONNECT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
    "method": b"FOO / HTTP/1.1\r\nHost: a\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
}

TOO_LARGE = {
    "hdr200k": (GET + b"X-A: " + b"a" * 200_000 + b"\r\n\r\n", 431, "headers_too_large"),
    "hdr5000": (
        GET + b"".join(b"X-%d: 1\r\n" % n for n in range(5000)) + b"\r\n",
        431,
        "headers_too_large",
    ),
    "fields101": (
        GET + b"".join(b"X-%d: 1\r\n" % n for n in range(100)) + b"\r\n",
        431,
        "headers_too_large",
    ),
    "url100k": (
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        414,
        "uri_too_long",
    ),
    "url2049": (b"GET /" + b"a" * 2048 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414, "uri_too_long"),
    "body1g": (POST + b"Content-Length: 1073741824\r\n\r\n", 413, "body_too_large"),
    "body1g_expected": (
        POST + b"Expect: 100-continue\r\nContent-Length: 1073741824\r\n\r\n",
        413,
        "body_too_large",
    ),
}

# What is well framed is for the application to refuse: nothing is served at these paths.
NOWHERE = b"GET /nowhere HTTP/1.1\r\nHost: a\r\n"
FOR_THE_APPLICATION = {
    "under_hdr": NOWHERE + b"x_tangle_forwarded_depth: 0\r\n\r\n",
    "dup_depth": NOWHERE + b"x-tangle-forwarded-depth: 0\r\nX-Tangle-Forwarded-Depth: 3\r\n\r\n",
    "pctpath": b"GET /%2e%2e/a%00b HTTP/1.1\r\nHost: a\r\n\r\n",
    "slashes": b"GET //evil/healthz HTTP/1.1\r\nHost: a\r\n\r\n",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_can_be_read_in_two_ways_is_refused_and_closed(
    acme: Organisation, refused: Callable[[str], int], name: str
) -> None:
    before = refused("not_found"), refused("malformed_request")
    (answer,) = say(acme.port, MALFORMED[name])
    assert (answer.status, answer.code) == (400, "malformed_request")
    assert answer.headers["connection"] == "close"
    assert (refused("not_found"), refused("malformed_request")) == (before[0], before[1] + 1)


@pytest.mark.parametrize("name", TOO_LARGE)
def test_what_is_too_large_is_refused_by_its_own_status(
    acme: Organisation, refused: Callable[[str], int], name: str
) -> None:
    raw, status, code = TOO_LARGE[name]
    before = refused("not_found")
    (answer,) = say(acme.port, raw)
    assert (answer.status, answer.code) == (status, code)
    assert refused("not_found") == before


@pytest.mark.parametrize("name", FOR_THE_APPLICATION)
def test_what_is_well_framed_is_refused_by_the_application_once(
    acme: Organisation, refused: Callable[[str], int], name: str
) -> None:
    before = refused("not_found")
    with Wire(acme.port) as wire:
        wire.send(FOR_THE_APPLICATION[name])
        (answer,) = answers(wire.read_until(b"}"))
    assert (answer.status, answer.code) == (404, "not_found")
    assert refused("not_found") == before + 1


@pytest.mark.parametrize(
    "field",
    [
        b"x_tangle_forwarded_depth: 0",
        b"x-tangle-forwarded-depth: 0\r\nX-Tangle-Forwarded-Depth: 3",
        b"x-tangle-runid: caf\xe9",
    ],
)
def test_a_bad_stamp_is_named_by_the_chat_endpoint(acme: Organisation, field: bytes) -> None:
    before = executions(acme.folder, "echo")
    raw = chat(acme.token, chat_body("hi"), field, b"connection: close")
    (answer,) = say(acme.port, raw)
    assert (answer.status, answer.code) == (400, "malformed_caller_context")
    assert executions(acme.folder, "echo") == before


@pytest.mark.parametrize(
    "framing",
    [
        b"content-length: 4\r\ntransfer-encoding: chunked",
        b"transfer-encoding: chunked\r\ncontent-length: 4",
        b"content-length: 4\r\ncontent-length: 4",
        b"transfer-encoding : chunked",
        b"transfer-encoding:\x0bchunked",
        b"transfer-encoding: chunked\r\n , identity",
    ],
)
def test_no_request_can_be_hidden_behind_another(acme: Organisation, framing: bytes) -> None:
    before = executions(acme.folder, "echo")
    hidden = ask(acme.token, "smuggled")
    (answer,) = say(acme.port, POST + framing + b"\r\n\r\n0\r\n\r\n" + hidden)
    assert answer.status == 400
    assert executions(acme.folder, "echo") == before


def test_nothing_is_read_behind_a_request_that_asks_for_another_protocol(
    acme: Organisation,
) -> None:
    before = executions(acme.folder, "echo")
    asked = b"GET /healthz HTTP/1.1\r\n" + HEAD + b"Connection: upgrade\r\nUpgrade: h2c\r\n\r\n"
    (answer,) = say(acme.port, asked + ask(acme.token, "smuggled"))
    assert (answer.status, answer.headers["connection"]) == (200, "close")
    assert executions(acme.folder, "echo") == before


def test_a_refusal_has_the_one_shape_and_no_banner(acme: Organisation) -> None:
    with Wire(acme.port) as wire:
        wire.send(MALFORMED["clte"])
        data = wire.read_to_end()
    (answer,) = answers(data)
    assert answer.headers["content-type"] == "application/json"
    for field in (b'"code":', b'"message":', b'"hint":', b'"docs":"/-/errors/malformed_request"'):
        assert field in answer.body
    assert "server" not in answer.headers
    for word in (b"uvicorn", b"python", b"carnet"):
        assert word not in data.lower()
