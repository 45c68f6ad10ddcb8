"""The table of routes: found as they were sent, and reached with the token that they ask for."""

from typing import Any

import pytest

from carnet.core.people.identity import Actor, Caller
from carnet.errors import InvalidRequest, MethodNotAllowed, RouteNotFound, TokenMissing
from carnet.http.exchange import Exchange, RouteTable, Row, offered
from carnet.http.link import LINE, Line
from carnet.http.openapi import describe
from carnet.wire.dialects.route import Route

ALICE = Caller(actor=Actor(name="token:alice"), scopes=frozenset())


class Tokens:
    """An access that knows Alice, if she shows herself."""

    async def check(self, exchange: Exchange, permission: str | None) -> Caller:
        if exchange.headers.get("authorization") is None:
            raise TokenMissing
        assert permission == "run:read"
        return ALICE


class Pages:
    """A room."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []

    async def open(self, exchange: Exchange, *names: str) -> None:
        self.asked.append((exchange.method, *names))

    async def shut(self, exchange: Exchange, caller: Caller, *names: str) -> None:
        self.asked.append((exchange.method, caller, *names))


ROUTES = (
    Row(method="GET", path="/a", endpoint=Pages.open, auth="open", summary="A"),
    Row(method="POST", path="/a", endpoint=Pages.open, auth="open", summary="A too", status=202),
    Row(method="GET", path="/a/{one}", endpoint=Pages.open, auth="open", summary="One"),
    Row(
        method="GET",
        path="/b/{one}/c/{two}",
        endpoint=Pages.shut,
        permission="run:read",
        summary="Two",
        answer="Page",
    ),
)


def exchange(method: str, path: str, *headers: tuple[bytes, bytes]) -> Exchange:
    async def never(*_: Any) -> Any:
        raise AssertionError

    scope = {
        "client": None,
        "scheme": "http",
        "method": method,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": list(headers),
        LINE: Line(),
    }
    return Exchange(scope, never, never)


def routed() -> tuple[RouteTable, Pages]:
    pages = Pages()
    return RouteTable(offered(ROUTES, pages), Tokens()), pages  # type: ignore[arg-type]  # all of it


async def test_a_row_is_found_by_its_method_and_path() -> None:
    router, pages = routed()
    for method, path in (("GET", "/a"), ("HEAD", "/a"), ("POST", "/a"), ("GET", "/a/x%20y")):
        await router(exchange(method, path))
    assert pages.asked == [("GET",), ("HEAD",), ("POST",), ("GET", "x y")]


async def test_a_row_that_asks_for_a_token_is_given_the_caller() -> None:
    router, pages = routed()
    await router(exchange("GET", "/b/1/c/2", (b"authorization", b"Bearer x")))
    assert pages.asked == [("GET", ALICE, "1", "2")]
    with pytest.raises(TokenMissing):
        await router(exchange("GET", "/b/1/c/2"))


@pytest.mark.parametrize(
    ("method", "path", "refusal"),
    [
        ("GET", "/nowhere", RouteNotFound),
        ("GET", "/a/b/c", RouteNotFound),
        ("GET", "/a/", RouteNotFound),
        ("DELETE", "/a", MethodNotAllowed),
        ("POST", "/a/x", MethodNotAllowed),
        ("GET", "/a/%ff", InvalidRequest),
        ("GET", "/a/%00", InvalidRequest),
    ],
)
async def test_what_is_not_there_is_refused(method: str, path: str, refusal: Any) -> None:
    router, pages = routed()
    with pytest.raises(refusal):
        await router(exchange(method, path))
    assert pages.asked == []


async def test_a_method_that_is_not_allowed_names_those_that_are() -> None:
    router, _ = routed()
    with pytest.raises(MethodNotAllowed) as caught:
        await router(exchange("PUT", "/a"))
    assert caught.value.facts["allow"] == "GET, POST, HEAD"


def test_two_rows_do_not_answer_the_same() -> None:
    with pytest.raises(ValueError, match="GET /a"):
        RouteTable([*offered(ROUTES, Pages()), ROUTES[0]], Tokens())  # type: ignore[arg-type]  # ditto


def test_the_description_is_made_of_the_rows() -> None:
    router, _ = routed()
    description = describe(router.routes, {"Page": {"type": "object"}})
    assert set(description["paths"]) == {"/a", "/a/{one}", "/b/{one}/c/{two}"}
    assert set(description["paths"]["/a"]) == {"get", "post"}
    assert list(description["paths"]["/a"]["post"]["responses"]) == ["202", "default"]
    assert description["paths"]["/a"]["get"]["security"] == []
    two = description["paths"]["/b/{one}/c/{two}"]
    assert [each["name"] for each in two["parameters"]] == ["one", "two"]
    assert "run:read" in two["get"]["description"]
    assert description["components"]["schemas"] == {"Page": {"type": "object"}}


def test_what_is_read_of_a_query_is_described() -> None:
    listed = Route(method="GET", path="/l", summary="L", query=("limit", "all", "state"))
    parameters = describe([listed], {})["paths"]["/l"]["get"]["parameters"]
    assert {(each["name"], each["in"], each["required"]) for each in parameters} == {
        ("limit", "query", False),
        ("all", "query", False),
        ("state", "query", False),
    }
    assert [each["schema"]["type"] for each in parameters] == ["integer", "boolean", "string"]


def test_a_signed_route_and_one_that_reads_stamps_describe_their_headers() -> None:
    signed = Route(method="POST", path="/s", summary="S", auth="signature", streams=True, body="B")
    chained = Route(method="POST", path="/c", summary="C", auth="gate", chain=True)
    paths = describe([signed, chained], {}, {"x-run": "The run."})["paths"]
    assert paths["/s"]["post"]["parameters"][0]["name"] == "content-digest"
    assert "requestBody" in paths["/s"]["post"]
    assert paths["/c"]["post"]["parameters"][0]["description"] == "The run."
    assert "security" not in paths["/c"]["post"]
