"""The records of tasks, and the signature of who asks about one."""

import json
from typing import Any

import pytest

from carnet.errors import (
    Cancelled,
    DigestMismatch,
    HeaderNotSigned,
    InsufficientCoverage,
    SignatureExpired,
    SignatureInvalid,
    SignatureMissing,
)
from carnet.wire.crypto import digests, ed25519, signatures
from carnet.wire.crypto.signatures import Request
from carnet.wire.dialects.samvad import (
    read_asking,
    read_task,
    write_accepted,
    write_not_found,
    write_record,
)
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps import STAMPS

SEED = bytes(range(32))
PATH = "/agent/task/t-1"

RECORDS: list[tuple[bytes, dict[str, Any]]] = [
    (write_record("t-1", "pending"), {"taskId": "t-1", "status": "pending"}),
    (
        write_record("t-1", "running"),
        {"taskId": "t-1", "status": "running", "progress": 0},
    ),
    (
        write_record("t-1", "running", progress=250),
        {"taskId": "t-1", "status": "running", "progress": 0.25},
    ),
    (
        write_record("t-1", "done", progress=250, result={"text": "well"}),
        {"taskId": "t-1", "status": "done", "result": {"text": "well"}},
    ),
]


@pytest.mark.parametrize(("written", "expected"), RECORDS)
def test_a_record_holds_what_its_state_has_and_nothing_else(
    written: bytes, expected: dict[str, Any]
) -> None:
    assert json.loads(written) == expected
    assert read_task(written, task="t-1").status == expected["status"]


def test_a_failed_task_has_one_of_the_nine_codes_and_our_sentence() -> None:
    record = json.loads(write_record("t-1", "failed", error=Cancelled("raw detail")))
    assert set(record) == {"taskId", "status", "error"}
    assert record["error"]["code"] == "AGENT_UNAVAILABLE"
    assert "raw detail" not in record["error"]["message"]


def test_a_task_that_is_not_there_is_told_as_the_sdks_tell_it() -> None:
    status, headers, body = write_not_found()
    assert (status, body) == (404, b'{"error":"Task not found"}')
    assert headers["cache-control"] == "no-store"


def test_what_is_accepted_is_told_in_two_words() -> None:
    assert json.loads(write_accepted("t-1")) == {"taskId": "t-1", "status": "accepted"}


# ------------------------------------------------------------------------------------- asking


def asked(*more: tuple[str, str], body: bytes = b"", query: str | None = None) -> Request:
    fields = [("content-digest", digests.write(body)), *more]
    return Request(
        method="GET",
        authority="acme.example",
        path=f"/agents/critic{PATH}",
        query=query,
        headers=Headers([(name.encode(), value.encode()) for name, value in fields]),
    )


def signed(plain: Request, **options: Any) -> Request:
    given: dict[str, Any] = {
        "components": ("@method", "@path", "content-digest"),
        "keyid": "k1",
        "created": 1000,
        "sign": lambda base: ed25519.sign(SEED, base),
        "newline": True,
        **options,
    }
    path = given.pop("path", PATH)
    fields = signatures.write(
        Request(
            method=plain.method,
            authority=plain.authority,
            path=path,
            query=plain.query,
            headers=plain.headers,
        ),
        **given,
    )
    raw = [(name.encode(), value.encode()) for name, value in fields.items()]
    digest = plain.headers.get("content-digest") or ""
    return Request(
        method=plain.method,
        authority=plain.authority,
        path=plain.path,
        query=plain.query,
        headers=Headers([(b"content-digest", digest.encode()), *raw]),
    )


def holds(request: Request) -> bool:
    asking = read_asking(request, b"", short_path=PATH, stamps=STAMPS)
    public = ed25519.public_of(SEED)
    return any(ed25519.holds(public, base, asking.signature) for base in asking.bases)


@pytest.mark.parametrize("path", [PATH, f"/agents/critic{PATH}"])
@pytest.mark.parametrize("newline", [True, False])
def test_the_form_of_the_protocol_is_read_over_either_path_and_ending(
    path: str, *, newline: bool
) -> None:
    request = signed(asked(), path=path, newline=newline)
    assert holds(request)
    asking = read_asking(request, b"", short_path=PATH, stamps=STAMPS)
    assert (asking.profile, asking.keyid, asking.at) == ("samvad", "k1", 1_000_000_000)


def test_our_own_profile_covers_the_host() -> None:
    whole = ("@method", "@authority", "@path", "content-digest")
    own: dict[str, Any] = {"tag": "carnet", "newline": False, "path": f"/agents/critic{PATH}"}
    request = signed(asked(), components=whole, **own)
    assert holds(request)
    assert read_asking(request, b"", short_path=PATH, stamps=STAMPS).profile == "carnet"
    with pytest.raises(InsufficientCoverage):
        holds(signed(asked(), **own))


def test_what_is_not_signed_in_one_of_the_two_forms_is_refused() -> None:
    with pytest.raises(SignatureMissing):
        holds(asked())
    with pytest.raises(SignatureInvalid):
        holds(signed(asked(), tag="other"))
    with pytest.raises(InsufficientCoverage):
        holds(signed(asked(), components=("@method", "@path")))
    with pytest.raises(HeaderNotSigned):
        holds(signed(asked(query="x=1")))
    with pytest.raises(DigestMismatch):
        read_asking(signed(asked()), b"a body", short_path=PATH, stamps=STAMPS)
    assert not holds(signed(asked(), path="/agent/task/t-2"))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"keyid": "k" * 129}, SignatureInvalid),
        ({"created": -1}, SignatureInvalid),
        ({"expires": 1000}, SignatureExpired),
    ],
)
def test_a_key_a_time_and_an_end_are_what_they_say(
    options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        holds(signed(asked(), **options))
