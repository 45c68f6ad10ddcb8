"""What the edge takes for a head."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.errors import BodyTooLarge, CarnetError, HeadersTooLarge, MalformedRequest, UriTooLong
from carnet.http.arrival import MOST_NAMES, LowerCase
from carnet.http.link import EdgeLimits, check_head

LIMITS = EdgeLimits(
    header_bytes=1024,
    header_fields=10,
    url_bytes=100,
    header_seconds=10,
    body_bytes=1000,
    body_seconds=30,
    write_stall_seconds=30,
    connections=100,
    requests=100,
    bodies_bytes=1_000_000,
)
HOST = (b"host", b"a")


@pytest.mark.parametrize(
    ("fields", "has_body"),
    [
        ([HOST], False),
        ([(b"host", b"a.example:8700 ")], False),
        ([(b"host", b"[::1]:8700")], False),
        ([(b"host", b"my_service")], False),
        ([HOST, (b"accept", b"x"), (b"accept", b"y")], False),
        ([HOST, (b"content-length", b"0")], False),
        ([HOST, (b"content-length", b"1000 ")], True),
        ([HOST, (b"transfer-encoding", b"chunked")], True),
        ([HOST, (b"x-tangle-runid", b"\xe9")], False),
        ([HOST, *((b"x-%d" % n, b"a" * 90) for n in range(9))], False),
    ],
)
def test_a_plain_head_is_taken(fields: list[tuple[bytes, bytes]], has_body: bool) -> None:  # noqa: FBT001
    assert check_head(b"/a?b=c", fields, LIMITS) == (has_body, False)


@pytest.mark.parametrize(
    ("target", "fields", "refusal"),
    [
        (b"/" + b"a" * 100, [HOST], UriTooLong),
        (b"/", [HOST, *((b"x-%d" % n, b"") for n in range(10))], HeadersTooLarge),
        (b"/", [HOST, (b"x-a", b"a" * 1020)], HeadersTooLarge),
        (b"/", [HOST, (b"content-length", b"1001")], BodyTooLarge),
        (b"/", [HOST, (b"content-length", b"9" * 20)], MalformedRequest),
        (b"/", [HOST, (b"content-length", b"3"), (b"content-length", b"3")], MalformedRequest),
        (b"/", [HOST, (b"content-length", b"\xb2")], MalformedRequest),
        (
            b"/",
            [HOST, (b"content-length", b"3"), (b"transfer-encoding", b"chunked")],
            MalformedRequest,
        ),
        (b"/", [HOST, (b"transfer-encoding", b"gzip, chunked")], MalformedRequest),
        (b"/", [HOST, (b"x-a", b"\xff")], MalformedRequest),
        (b"/", [HOST, HOST], MalformedRequest),
        (b"/", [], MalformedRequest),
        (b"/", [(b"host", b"a@b")], MalformedRequest),
        (b"/", [(b"host", b"a:123456")], MalformedRequest),
        (b"http://a/", [HOST], MalformedRequest),
        (b"/a#b", [HOST], MalformedRequest),
        (b"*", [HOST], MalformedRequest),
        (b"", [HOST], MalformedRequest),
    ],
)
def test_any_other_head_is_refused(
    target: bytes, fields: list[tuple[bytes, bytes]], refusal: type[CarnetError]
) -> None:
    with pytest.raises(refusal):
        check_head(target, fields, LIMITS)


names = st.sampled_from([b"host", b"content-length", b"transfer-encoding"]) | st.binary(max_size=20)


@given(st.binary(max_size=120), st.lists(st.tuples(names, st.binary(max_size=30)), max_size=12))
def test_no_head_does_anything_but_pass_or_be_refused(
    target: bytes, fields: list[tuple[bytes, bytes]]
) -> None:
    try:
        check_head(target, fields, LIMITS)
    except CarnetError:
        return
    framing = [n for n, _ in fields if n in {b"host", b"content-length", b"transfer-encoding"}]
    assert framing.count(b"host") == 1
    assert len(framing) == len(set(framing)) <= 2
    assert target.startswith(b"/")


@pytest.mark.parametrize(
    ("fields", "expects"),
    [
        ([HOST, (b"expect", b"100-Continue")], True),
        ([HOST, (b"expect", b"100-continue"), (b"expect", b"else")], True),
        ([HOST, (b"expect", b"else")], False),
    ],
)
def test_who_waits_to_be_asked_for_its_body_says_so(
    fields: list[tuple[bytes, bytes]],
    expects: bool,  # noqa: FBT001
) -> None:
    assert check_head(b"/", fields, LIMITS) == (False, expects)


def test_names_are_remembered_in_lower_case_within_a_bound() -> None:
    names = LowerCase()
    assert (names[b"Host"], names[b"X" * 65]) == (b"host", b"x" * 65)
    assert dict(names) == {b"Host": b"host"}
    for number in range(2 * MOST_NAMES):
        assert names[b"X-%d" % number] == b"x-%d" % number
    assert len(names) == MOST_NAMES
