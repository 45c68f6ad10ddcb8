"""Who called, as a trusted proxy tells it; from everybody else it is not even read."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.errors import CarnetError, MalformedRequest
from carnet.http.proxies import MOST_HOPS, Origin, Proxies
from tests.edge.wire import HEAD, say
from tests.support.organisation import Organisation

PROXIES = Proxies(["10.0.0.0/8", "::1", "2001:db8:ffff::/48"])
PEER = "10.0.0.1"
FOR, PROTO, FORWARDED = b"x-forwarded-for", b"x-forwarded-proto", b"forwarded"


@pytest.mark.parametrize(
    ("fields", "origin"),
    [
        ([], Origin(PEER)),
        ([(FOR, b"")], Origin(PEER)),
        ([(FOR, b"192.0.2.1")], Origin("192.0.2.1")),
        ([(FOR, b"6.6.6.6, 192.0.2.1")], Origin("192.0.2.1")),
        ([(FOR, b"6.6.6.6,192.0.2.1 ,\t10.9.9.9")], Origin("192.0.2.1")),
        ([(FOR, b"6.6.6.6"), (b"x-a", b"b"), (FOR, b"192.0.2.1")], Origin("192.0.2.1")),
        ([(FOR, b"10.2.2.2, 10.3.3.3")], Origin("10.2.2.2")),
        ([(FOR, b"192.0.2.1:4711")], Origin("192.0.2.1")),
        ([(FOR, b"2001:DB8::1")], Origin("2001:db8::1")),
        ([(FOR, b"[2001:db8::1]:4711, 2001:db8:ffff::7")], Origin("2001:db8::1")),
        ([(FOR, b"::ffff:192.0.2.1")], Origin("192.0.2.1")),
        ([(PROTO, b"https")], Origin(PEER, "https")),
        ([(FOR, b"192.0.2.1"), (PROTO, b"HTTP")], Origin("192.0.2.1", "http")),
        ([(FORWARDED, b"for=192.0.2.1")], Origin("192.0.2.1")),
        (
            [(FORWARDED, b"For=192.0.2.1;Proto=https;by=10.0.0.1;host=a")],
            Origin("192.0.2.1", "https"),
        ),
        (
            [
                (
                    FORWARDED,
                    b'for=6.6.6.6;proto=http, for="[2001:db8::1]:1";proto=https, for=10.1.1.1',
                )
            ],
            Origin("2001:db8::1", "https"),
        ),
        ([(FORWARDED, b"for=6.6.6.6"), (FORWARDED, b"for=192.0.2.1")], Origin("192.0.2.1")),
        ([(FORWARDED, b"for=unknown")], Origin(PEER)),
        ([(FORWARDED, b"for=6.6.6.6, for=_hidden, for=10.4.4.4")], Origin("10.4.4.4")),
        ([(FORWARDED, b"by=10.0.0.1;proto=https")], Origin(PEER)),
        ([(FORWARDED, b"for=192.0.2.1"), (FOR, b"6.6.6.6, 192.0.2.1")], Origin("192.0.2.1")),
    ],
)
def test_the_right_most_address_that_is_not_trusted_called(
    fields: list[tuple[bytes, bytes]], origin: Origin
) -> None:
    assert PROXIES.origin(PEER, fields) == origin


@pytest.mark.parametrize(
    "fields",
    [
        [(FOR, b"somewhere")],
        [(FOR, b"192.0.2.256")],
        [(FOR, b"192.0.2.1,")],
        [(FOR, b"192.0.2.1 192.0.2.2")],
        [(FOR, b"192.0.2.1:123456")],
        [(FOR, b"[192.0.2.1]")],
        [(FOR, b"fe80::1%eth0")],
        [(FOR, b"0192.0.2.1")],
        [(FOR, b"\xd9\xa1.0.0.1")],
        [(FOR, b"unknown")],
        [(FOR, b"nonsense, 192.0.2.1")],
        [(FOR, b",".join([b"10.0.0.1"] * (MOST_HOPS + 1)))],
        [(PROTO, b"ftp")],
        [(PROTO, b"https, http")],
        [(PROTO, b"https"), (PROTO, b"https")],
        [(FORWARDED, b"192.0.2.1")],
        [(FORWARDED, b"for=192.0.2.1,")],
        [(FORWARDED, b"for=192.0.2.1;for=6.6.6.6")],
        [(FORWARDED, b'for="192.0.2.1')],
        [(FORWARDED, b'for="192.0.2.1\\""')],
        [(FORWARDED, b"for=2001:db8::1")],
        [(FORWARDED, b"for=somewhere")],
        [(FORWARDED, b"for=192.0.2.1;proto=gopher")],
        [(FORWARDED, b"for=192.0.2.1"), (FOR, b"6.6.6.6")],
        [(FORWARDED, b"for=unknown"), (FOR, b"6.6.6.6")],
    ],
)
def test_what_cannot_be_read_in_one_way_is_refused(fields: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(MalformedRequest):
        PROXIES.origin(PEER, fields)


@given(
    st.lists(
        st.tuples(st.sampled_from([FOR, PROTO, FORWARDED]), st.binary(max_size=40)), max_size=4
    )
)
def test_nothing_that_a_proxy_sends_does_anything_but_pass_or_be_refused(
    fields: list[tuple[bytes, bytes]],
) -> None:
    try:
        origin = PROXIES.origin(PEER, fields)
    except CarnetError:
        return
    assert origin.scheme in {None, "http", "https"}


@pytest.mark.parametrize(
    ("address", "trusted"),
    [
        ("10.255.0.1", True),
        ("::ffff:10.0.0.1", True),
        ("::1", True),
        ("11.0.0.1", False),
        ("::2", False),
        ("", False),
        ("a.sock", False),
    ],
)
def test_an_address_is_trusted_by_the_list_alone(address: str, trusted: bool) -> None:  # noqa: FBT001
    assert PROXIES.trusts(address) is trusted
    assert not Proxies().trusts(address)


# ------------------------------------------------------------------------- a gateway behind one


def ask_nowhere(acme: Organisation, path: str, field: bytes, source: str) -> tuple[int, str]:
    raw = b"GET %s HTTP/1.1\r\n%s%s\r\nconnection: close\r\n\r\n" % (path.encode(), HEAD, field)
    (answer,) = say(acme.port, raw, source=source)
    return answer.status, answer.code


def test_the_log_names_the_caller_behind_a_trusted_proxy(
    acme: Organisation, logged: Callable[[str], list[dict[str, Any]]]
) -> None:
    """A36: and from nobody else is the field believed."""
    field = "x-forwarded-for"
    for number, peer in enumerate(("127.0.0.1", "127.0.0.2")):
        code = f"nonsuch-{number}"
        raw = b"GET /-/errors/%s HTTP/1.1\r\n" % code.encode() + HEAD
        raw += f"{field}: 6.6.6.6, 192.0.2.77\r\nconnection: close\r\n\r\n".encode()
        (answer,) = say(acme.port, raw, source=peer)
        assert answer.status == 404
    reply = acme.chat("hi", headers=[(field, "192.0.2.78")])
    run = reply.headers["x-tangle-runid"]
    clients = [line["client"] for line in logged(run) if line["message"] == "call answered"]
    assert clients == ["192.0.2.78"]
    refusals = [line["client"] for line in logged('"code":"not_found"')]
    assert {"192.0.2.77", "127.0.0.2"} <= set(refusals)
    assert "6.6.6.6" not in refusals


def test_a_field_that_cannot_be_read_is_refused_from_a_proxy_and_ignored_from_others(
    acme: Organisation,
) -> None:
    """A36."""
    for field in (b"x-forwarded-for: me", b"forwarded: for", b"x-forwarded-proto: ftp"):
        assert ask_nowhere(acme, "/x", field, "127.0.0.1") == (400, "malformed_request")
        assert ask_nowhere(acme, "/x", field, "127.0.0.2") == (404, "not_found")
