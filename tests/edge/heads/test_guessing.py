"""Guessing tokens: what it costs is bounded, and nobody is locked out by it."""

from collections.abc import Callable
from itertools import count

import pytest

from tests.edge.conftest import FAILURES
from tests.edge.wire import CHAT, HEAD, say
from tests.support.http import Reply, request
from tests.support.organisation import Organisation
from tests.support.served import executions

_addresses = (f"198.51.100.{n}" for n in count(1))


@pytest.fixture
def source() -> str:
    """An address that nobody has called from yet."""
    return next(_addresses)


def guess(acme: Organisation, source: str, token: str = "ck_" + "x" * 43) -> Reply:
    return acme.chat("hi", token=token, headers=[("x-forwarded-for", source)])


def test_too_many_wrong_tokens_of_one_address_are_429(acme: Organisation, source: str) -> None:
    """A68."""
    before = executions(acme.folder, "echo")
    replies = [guess(acme, source, f"ck_{n}") for n in range(FAILURES + 3)]
    assert [reply.code for reply in replies[:FAILURES]] == ["token_invalid"] * FAILURES
    for reply in replies[FAILURES:]:
        assert (reply.status, reply.code) == (429, "too_many_failures")
        assert 1 <= int(reply.headers["retry-after"]) <= 60
        assert reply.json["error"]["limit"] == FAILURES
        assert reply.json["error"]["hint"]
        assert "198.51" not in reply.body.decode()
    assert executions(acme.folder, "echo") == before


def test_a_valid_token_passes_from_an_address_that_guesses(acme: Organisation, source: str) -> None:
    """A68: sixty forged requests lock nobody out."""
    for number in range(60):
        assert guess(acme, source, f"ck_{number}").status in {401, 429}
    assert guess(acme, source).code == "too_many_failures"
    assert guess(acme, source, acme.token).text == "hi"
    assert guess(acme, source).code == "too_many_failures"
    assert guess(acme, next(_addresses)).code == "token_invalid"


def test_a_token_made_just_now_passes_from_an_address_that_guesses(
    acme: Organisation, source: str
) -> None:
    for _ in range(FAILURES + 1):
        guess(acme, source)
    fresh = acme.new_token(f"fresh-{source}", "--scope", "call:*", "--scope", "pay")
    assert guess(acme, source, fresh).text == "hi"


def test_what_needs_no_token_is_answered_wherever_it_is_asked_from(
    acme: Organisation, source: str
) -> None:
    for _ in range(FAILURES + 1):
        guess(acme, source)
    fields = [("x-forwarded-for", source)]
    assert request("GET", acme.url + "/healthz", fields).status == 200
    wrong = [*fields, ("authorization", "Bearer ck_wrong")]
    assert request("GET", acme.url + "/healthz", wrong).status == 200
    assert request("GET", acme.url + "/readyz", fields).status == 200
    assert request("GET", acme.url + "/runs", fields).code == "token_missing"


@pytest.mark.parametrize("path", ["/runs", "/runs/x", "/metrics", "/v1/models", "/readyz"])
def test_a_wrong_token_counts_on_every_page(acme: Organisation, source: str, path: str) -> None:
    """A68: there is no page on which tokens can be tried out."""
    fields = [("x-forwarded-for", source), ("authorization", "Bearer ck_wrong")]
    codes = [request("GET", acme.url + path, fields).code for _ in range(FAILURES + 1)]
    assert codes == ["token_invalid"] * FAILURES + ["too_many_failures"]


def test_the_body_of_a_guesser_is_not_waited_for(
    acme: Organisation, source: str, refused: Callable[[str], int]
) -> None:
    """A68: its token alone is looked at."""
    for _ in range(FAILURES):
        guess(acme, source)
    before = refused("too_many_failures")
    fields = f"x-forwarded-for: {source}\r\nauthorization: Bearer ck_wrong\r\n".encode()
    raw = CHAT + fields + b"connection: close\r\ncontent-length: 1000000\r\n\r\n{"
    (answer,) = say(acme.port, raw)
    assert (answer.status, answer.code) == (429, "too_many_failures")
    assert refused("too_many_failures") == before + 1


def test_an_odd_token_is_as_wrong_as_any_other(acme: Organisation, source: str) -> None:
    """A68: nothing that is compared can make the comparing fail."""
    for token in (b"\x7f", b"ck_" + b"\xff" * 43, b"a b", b"", b"ck_" + b"x" * 8000):
        fields = b"x-forwarded-for: %s\r\nauthorization: Bearer %s\r\n" % (source.encode(), token)
        raw = b"GET /runs HTTP/1.1\r\n" + HEAD + fields + b"connection: close\r\n\r\n"
        (answer,) = say(acme.port, raw)
        assert (answer.status, answer.code) in {(400, "malformed_request"), (401, "token_invalid")}
