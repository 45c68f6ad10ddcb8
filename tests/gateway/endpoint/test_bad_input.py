"""Bad requests: each a clear error with a next step, nothing executed."""

import pytest

from tests.support.http import chat_body, request
from tests.support.organisation import Organisation
from tests.support.served import executions

CHAT = "/v1/chat/completions"


def send(acme: Organisation, body: bytes, **changes: str) -> tuple[int, str]:
    fields = {
        "authorization": f"Bearer {acme.token}",
        "content-type": "application/json",
        **{name.replace("_", "-"): value for name, value in changes.items()},
    }
    reply = request("POST", acme.url + CHAT, [(n, v) for n, v in fields.items() if v], body)
    error = reply.json["error"]
    assert error["hint"]
    assert error["docs"] == f"/-/errors/{error['code']}"
    assert error["message"] == reply.json["message"]
    return reply.status, reply.code


@pytest.fixture(autouse=True)
def nothing_runs(acme: Organisation):  # type: ignore[no-untyped-def]
    before = executions(acme.folder, "echo")
    yield
    assert executions(acme.folder, "echo") == before


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"messages": [], "messages": []}',
        b'{"x": NaN}',
        b'{"x": 1e400}',
        b'{"x": 9007199254740993}',
        b"\xef\xbb\xbf{}",
        b"[" * 100_000,
        b'{"x": "\\ud800"}',
        b'{"a": 1} trailing',
        b'{"x": "\xff"}',
    ],
)
def test_a_body_that_is_not_strict_json_is_refused(acme: Organisation, body: bytes) -> None:
    assert send(acme, body) == (400, "invalid_json")


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"messages": "hi"}',
        b'{"messages": []}',
        b'{"messages": [{"role": "pirate", "content": "x"}]}',
        chat_body(carnet={"skill": "a\0b"}),
        chat_body(carnet={"skill": "a\nb"}),
        b'{"messages": [{"role": "user", "content": 7}]}',
        b'{"messages": [{"role": "user", "content": "x"}], "stream": "yes"}',
        b'{"model": 7, "messages": [{"role": "user", "content": "x"}]}',
    ],
)
def test_wrong_shapes_name_the_field(acme: Organisation, body: bytes) -> None:
    assert send(acme, body) == (400, "invalid_request")


def test_an_unknown_agent_is_refused_with_a_suggestion(acme: Organisation) -> None:
    reply = acme.chat("hi", "ecko")
    assert (reply.status, reply.code) == (404, "agent_not_found")
    assert "'echo'" in reply.json["message"]
    assert acme.chat("hi", "@echo@nobody.example").code == "peer_unknown"
    assert acme.chat("hi", "@echo@LOUD.example").code == "address_invalid"


def test_a_missing_and_a_wrong_token_are_told_apart_from_nothing_else(acme: Organisation) -> None:
    assert send(acme, chat_body(), authorization="") == (401, "token_missing")
    assert send(acme, chat_body(), authorization="Bearer ck_wrong") == (401, "token_invalid")
    assert send(acme, chat_body(), authorization="Basic abc") == (401, "token_invalid")


def test_an_oversized_body_is_refused(acme: Organisation) -> None:
    fields = [
        ("authorization", f"Bearer {acme.token}"),
        ("content-type", "application/json"),
        ("content-length", str(11 * 1024 * 1024)),
    ]
    reply = request("POST", acme.url + CHAT, fields, b"{}")
    assert (reply.status, reply.code) == (413, "body_too_large")


def test_media_types_and_encodings_are_checked(acme: Organisation) -> None:
    assert send(acme, chat_body(), content_type="text/plain") == (415, "media_type_unsupported")
    assert send(acme, chat_body(), content_type="") == (415, "media_type_unsupported")
    utf16 = "application/json; charset=utf-16"
    assert send(acme, chat_body(), content_type=utf16) == (415, "media_type_unsupported")
    assert send(acme, chat_body(), content_encoding="gzip") == (415, "encoding_unsupported")


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("x-tangle-runid", "r" * 129),
        ("x-tangle-turnid", "t" * 257),
        ("x-tangle-speaker", "s" * 129),
        ("x-tangle-runid", "caf\xe9"),
    ],
)
def test_ids_are_bounded_visible_ascii(acme: Organisation, header: str, value: str) -> None:
    reply = acme.chat("hi", headers=[(header, value)])
    assert (reply.status, reply.code) == (400, "malformed_caller_context")


def test_unknown_paths_and_methods_are_refused(acme: Organisation) -> None:
    assert request("GET", acme.url + "/nowhere").code == "not_found"
    assert request("POST", acme.url + "/v1/chat%2Fcompletions", [], b"{}").code == "not_found"
    assert request("DELETE", acme.url + CHAT).code == "method_not_allowed"
