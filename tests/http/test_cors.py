"""Calls from web pages, at a real gateway."""

from collections.abc import Iterator
from http.client import HTTPConnection

import pytest

from tests.edge.wire import Answer, say
from tests.support.federation import organisation
from tests.support.http import Reply, request
from tests.support.organisation import Organisation

PAGE = "https://app.example"
ORIGIN, EXPOSED = "access-control-allow-origin", "access-control-expose-headers"
ASKED = [
    ("access-control-request-method", "POST"),
    ("access-control-request-headers", "authorization,content-type,x-stainless-os"),
]


def started(folder: pytest.TempPathFactory, name: str, origins: str) -> Organisation:
    house = organisation(folder.mktemp(name), f"{name}.example")
    config = house.folder / "carnet.toml"
    text = config.read_text()
    assert "[gateway]\n" in text
    config.write_text(text.replace("[gateway]\n", f"[gateway]\n{origins}\n", 1))
    house.start()
    return house


@pytest.fixture(scope="module")
def some(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    named = f'cors_origins = ["{PAGE}", "http://localhost:5173"]'
    house = started(tmp_path_factory, "some", named)
    yield house
    assert house.stop() == 0


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    house = started(tmp_path_factory, "every", 'cors_origins = ["*"]')
    yield house
    assert house.stop() == 0


def preflight(house: Organisation, origin: str) -> Reply:
    url = house.url + "/v1/chat/completions"
    return request("OPTIONS", url, [("origin", origin), *ASKED])


def test_a_page_that_is_named_may_ask_and_read(some: Organisation) -> None:
    asked = preflight(some, PAGE)
    assert (asked.status, asked.body) == (200, b"")
    assert asked.headers[ORIGIN] == PAGE
    assert asked.headers["access-control-allow-headers"] == ASKED[1][1]
    assert "POST" in asked.headers["access-control-allow-methods"]
    assert "access-control-allow-credentials" not in asked.headers
    for reply in (
        some.chat("hi", headers=[("origin", PAGE)]),
        some.chat("hi", headers=[("origin", PAGE)], stream=True),
        some.chat("hi", "nobody", headers=[("origin", PAGE)]),
        some.chat("hi", token="ck_wrong", headers=[("origin", PAGE)]),
        some.get("/v1/models", headers=[("origin", PAGE)]),
    ):
        found = {name: reply.headers[name] for name in (ORIGIN, EXPOSED, "vary")}
        assert found == {ORIGIN: PAGE, EXPOSED: "*", "vary": "origin"}


@pytest.mark.parametrize(
    "origin",
    [
        "https://app.example.evil.example",
        "http://app.example",
        "https://app.example:8443",
        "https://APP.example",
        "null",
        "*",
    ],
)
def test_a_page_that_is_not_named_is_told_nothing(some: Organisation, origin: str) -> None:
    asked = preflight(some, origin)
    assert (asked.status, asked.code) == (405, "method_not_allowed")
    reply = some.chat("hi", headers=[("origin", origin)])
    assert reply.status == 200
    assert not [name for name in (*asked.headers, *reply.headers) if name.startswith("access-")]


def test_one_page_is_told_nothing_of_another_on_the_same_connection(some: Organisation) -> None:
    line = HTTPConnection("127.0.0.1", some.port, timeout=30)
    for origin, expected in ((PAGE, PAGE), ("https://evil.example", None), (PAGE, PAGE)):
        line.request("GET", "/healthz", headers={"origin": origin})
        answer = line.getresponse()
        answer.read()
        assert answer.getheader(ORIGIN) == expected
    line.close()


def raw(house: Organisation, head: bytes, body: bytes = b"") -> Answer:
    """What the edge answers to a request of the page."""
    fields = b"host: x\r\norigin: %b\r\n" % PAGE.encode()
    first, _, rest = head.partition(b"\r\n")
    (answer,) = say(house.port, first + b"\r\n" + fields + rest + b"\r\n" + body)
    return answer


REFUSED_AT_THE_EDGE = {
    413: (b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 999999999\r\n", b""),
    414: (b"GET /%b HTTP/1.1\r\n" % (b"x" * 9000), b""),
    431: (b"GET /v1/models HTTP/1.1\r\n" + b"x-y: %b\r\n" % (b"y" * 70_000), b""),
    400: (b"GET /v1/models HTTP/1.1\r\nhost: y\r\n", b""),
    404: (b"GET /nowhere HTTP/1.1\r\nconnection: close\r\n", b""),
    405: (b"DELETE /v1/models HTTP/1.1\r\nconnection: close\r\n", b""),
}


@pytest.mark.parametrize("status", REFUSED_AT_THE_EDGE)
def test_a_page_can_read_what_is_refused_before_a_route_is_known(
    some: Organisation, status: int
) -> None:
    answer = raw(some, *REFUSED_AT_THE_EDGE[status])
    assert answer.status == status
    found = {name: answer.headers.get(name) for name in (ORIGIN, EXPOSED, "vary")}
    assert found == {ORIGIN: PAGE, EXPOSED: "*", "vary": "origin"}


def test_a_page_can_read_that_its_body_has_become_too_large(some: Organisation) -> None:
    head = b"POST /v1/chat/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\n"
    head += b"content-type: application/json\r\nauthorization: Bearer %b\r\n" % some.token.encode()
    piece = b"fffff\r\n%b\r\n" % (b" " * 0xFFFFF)
    answer = raw(some, head, piece * 40)
    assert (answer.status, answer.headers.get(ORIGIN)) == (413, PAGE)


def test_another_page_cannot_read_a_refusal_of_the_edge(some: Organisation) -> None:
    asked = b"GET /v1/models HTTP/1.1\r\norigin: https://evil.example\r\nhost: y\r\nhost: x\r\n\r\n"
    (answer,) = say(some.port, asked)
    assert answer.status == 400
    assert not [name for name in answer.headers if name.startswith("access-")]


def test_every_page_may_ask_where_all_are_named(every: Organisation) -> None:
    assert preflight(every, "https://anywhere.example").headers[ORIGIN] == "*"
    assert every.chat("hi", headers=[("origin", "null")]).headers[ORIGIN] == "*"


def test_fields_that_are_none_are_not_given_back(every: Organisation) -> None:
    odd = [ASKED[0], ("origin", PAGE), ("access-control-request-headers", 'a"; b')]
    reply = request("OPTIONS", every.url + "/v1/models", odd)
    assert reply.headers["access-control-allow-headers"] == "authorization, content-type"


def test_options_that_are_no_preflight_are_refused_as_before(every: Organisation) -> None:
    reply = request("OPTIONS", every.url + "/v1/models", [("origin", PAGE)])
    assert reply.status == 405
    assert reply.headers[ORIGIN] == "*"


def test_without_the_setting_no_page_is_told_anything(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    house = started(tmp_path_factory, "none", "")
    try:
        assert preflight(house, PAGE).status == 405
        reply = house.chat("hi", headers=[("origin", PAGE)])
        assert not {"vary", ORIGIN, EXPOSED} & set(reply.headers)
    finally:
        assert house.stop() == 0
