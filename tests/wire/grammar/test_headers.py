"""Header fields: one value or none, counts that are never coerced, nothing that splits a line."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carnet.errors import InvalidRequest, MalformedCallerContext
from carnet.wire.grammar.headers import MAX_COUNT, Headers, refuse_lookalikes, write_headers
from carnet.wire.stamps import STAMPS

DEPTH = "x-tangle-forwarded-depth"


def with_depth(*values: bytes) -> Headers:
    """Headers with one line of the depth field for each value, between two other fields."""
    lines = [(DEPTH.encode(), value) for value in values]
    return Headers([(b"host", b"a.example"), *lines, (b"accept", b"*/*")])


def test_a_field_is_found_whatever_case_it_is_asked_in() -> None:
    headers = Headers([(b"content-type", b"application/json")])
    assert headers.get("content-type") == "application/json"
    assert headers.get("Content-Type") == "application/json"
    assert headers.get("accept") is None


def test_no_fields_at_all_is_no_trouble() -> None:
    headers = Headers([])
    assert headers.get("a") is None
    assert headers.get_all("a") == []
    assert headers.names(b"") == []
    assert list(headers) == []


@pytest.mark.parametrize("value", [b" x y\t", b"x y", b"\t \tx y "])
def test_whitespace_around_a_value_is_not_part_of_it(value: bytes) -> None:
    headers = Headers([(b"a", value)])
    assert headers.get("a") == "x y"
    assert headers.get_all("a") == ["x y"]
    assert list(headers) == [("a", "x y")]


@pytest.mark.parametrize("value", [b"", b" ", b"\t", b" \t "])
def test_a_blank_field_counts_as_absent(value: bytes) -> None:
    headers = Headers([(b"a", value)])
    assert headers.get("a") is None
    assert headers.visible("a", max_bytes=10) is None
    assert headers.get_all("a") == [""]


@pytest.mark.parametrize("second", [b"1", b"2", b""])
def test_a_field_given_twice_is_refused_even_if_both_agree(second: bytes) -> None:
    headers = Headers([(b"a", b"1"), (b"b", b"1"), (b"a", second)])
    for read in (headers.get, headers.read_count, lambda name: headers.visible(name, max_bytes=9)):
        with pytest.raises(MalformedCallerContext, match="'a' is given more than once"):
            read("a")
    assert headers.get("b") == "1"
    assert headers.get("c") is None
    assert headers.get_all("a") == ["1", second.decode()]


def test_a_field_stands_there_also_if_it_is_blank() -> None:
    headers = Headers([(b"signature", b"")])
    assert headers.has(b"signature")
    assert not headers.has(b"signature-input")


def test_names_are_listed_once_by_their_beginning() -> None:
    headers = Headers([(b"x-b", b"1"), (b"host", b"h"), (b"x-a", b"2"), (b"x-b", b"3")])
    assert headers.names(b"x-") == ["x-b", "x-a"]
    assert headers.names(b"x-a") == ["x-a"]
    assert headers.names(b"y") == []


def test_bytes_beyond_ascii_are_read_as_latin_1() -> None:
    assert Headers([(b"a", b"caf\xe9")]).get("a") == "caf\xe9"


def test_visible_ascii_with_inner_spaces_is_read() -> None:
    headers = Headers([(b"a", b" Bearer sk-tan-~!\x7e ")])
    assert headers.visible("a", max_bytes=17) == "Bearer sk-tan-~!~"
    assert headers.visible("b", max_bytes=17) is None


@pytest.mark.parametrize(
    "value",
    [
        b"a\rb",
        b"a\nb",
        b"a\x00b",
        b"a\x7fb",
        b"a\tb",
        b"a\x1b[0m",
        b"caf\xe9",
        "４".encode(),
        b"\xa0",
    ],
)
def test_a_protocol_value_that_is_not_visible_ascii_is_refused(value: bytes) -> None:
    with pytest.raises(MalformedCallerContext, match="not visible ASCII") as caught:
        Headers([(b"a", value)]).visible("a", max_bytes=100)
    assert value.decode("latin-1") not in str(caught.value)


def test_a_protocol_value_that_is_too_long_is_refused() -> None:
    headers = Headers([(b"a", b"x" * 11)])
    assert headers.visible("a", max_bytes=11) == "x" * 11
    with pytest.raises(MalformedCallerContext, match="'a' is longer than 10 bytes"):
        headers.visible("a", max_bytes=10)


@pytest.mark.parametrize(
    ("value", "count"),
    [
        (b"0", 0),
        (b"1", 1),
        (b"3", 3),
        (b"01", 1),
        (b" 1", 1),
        (b"1  ", 1),
        (b"000", 0),
        (b"9999", 9999),
        (b"2147483646", MAX_COUNT - 1),
        (b"2147483647", MAX_COUNT),
        (b"2147483648", MAX_COUNT),
        (b"9999999999", MAX_COUNT),
        (b"99999999999999999999", MAX_COUNT),
        (b"1" * 10_000, MAX_COUNT),
        (b"0" * 10_000 + b"2", 2),
        (b"0" * 10_000, 0),
    ],
)
def test_all_digits_are_a_count_that_saturates(value: bytes, count: int) -> None:
    assert with_depth(value).read_count(DEPTH) == count


@pytest.mark.parametrize("value", [b"", b" ", b"    "])
def test_a_blank_count_is_absent(value: bytes) -> None:
    assert with_depth(value).read_count(DEPTH) is None
    assert with_depth().read_count(DEPTH) is None


@pytest.mark.parametrize(
    "value",
    [
        *("-1", "+1", "1.0", "1.5", "1e0", "1e1", "0x1", "0x2", "1_0", "٣", "４", "²", "NaN"),
        *("null", "banana", "Infinity", "1,2", "2, 99", "4,", "1\t", "\t1", "\t", "1;a", "1 2"),
        *("1\n", "1\r\n2", "\x0b1", "1\x00", "\xa01", "\x851"),
    ],
)
@pytest.mark.parametrize("charset", ["utf-8", "latin-1"])
def test_anything_else_is_malformed_and_never_coerced(value: str, charset: str) -> None:
    raw = value.encode(charset, errors="xmlcharrefreplace")
    with pytest.raises(MalformedCallerContext, match=f"'{DEPTH}' is not one whole number"):
        with_depth(raw).read_count(DEPTH)


@pytest.mark.parametrize("values", [(b"2", b"99"), (b"2", b"2"), (b"", b"2"), (b"2", b"")])
def test_a_count_given_twice_is_malformed(values: tuple[bytes, bytes]) -> None:
    with pytest.raises(MalformedCallerContext, match="more than once"):
        with_depth(*values).read_count(DEPTH)


@given(st.binary(max_size=40))
@settings(deadline=None)
def test_any_value_is_a_count_absent_or_malformed(value: bytes) -> None:
    try:
        count = with_depth(value).read_count(DEPTH)
    except MalformedCallerContext:
        assert not value.strip(b" ").isdigit()
        return
    digits = value.strip(b" ")
    assert count == (min(int(digits), MAX_COUNT) if digits else None)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("x_tangle_depth", "x-tangle-*"),
        ("x-tangle_forwarded-depth", "x-tangle-*"),
        ("x-tangle-forwarded_authorization", "x-tangle-*"),
        ("x_agents_api_chain_depth", "x-agents-api-*"),
        ("x-actor_id", "x-actor-*"),
        ("x_forwarded_for", "x-forwarded-*"),
        ("carnet_interrupt", "carnet*"),
        ("carnet-inter_rupt", "carnet*"),
    ],
)
def test_an_underscore_spelling_of_a_protocol_header_is_refused(name: str, meant: str) -> None:
    headers = Headers([(b"host", b"h"), (b"a_b", b"1"), (name.encode(), b"1")])
    with pytest.raises(MalformedCallerContext) as caught:
        refuse_lookalikes(headers, STAMPS.lookalikes)
    assert caught.value.public_facts() == {"header": meant}
    assert name not in str(caught.value)


def test_other_names_with_or_without_underscores_pass() -> None:
    for names in (
        [(b"x-tangle-runid", b"r"), (b"carnet", b"c"), (b"x-actor-id", b"1")],
        [(b"sec_ret", b"1"), (b"x_tangled", b"1"), (b"x_request_id", b"1")],
    ):
        refuse_lookalikes(Headers(names), STAMPS.lookalikes)
    assert Headers([(b"a-b", b"1"), (b"a_b", b"1"), (b"a_b", b"2")]).underscored() == ["a_b"]


def test_fields_are_written_in_order_without_the_blank_ones() -> None:
    fields = {"x-b": "Bearer a\tb ~", "x-empty": "", "x-blank": " \t", "x-a": "1"}
    assert write_headers(fields) == [("x-b", "Bearer a\tb ~"), ("x-a", "1")]
    assert write_headers({}) == []


@pytest.mark.parametrize("name", ["", "X-A", "x a", "x:", "x\n", "x-é", "x(", "x\x00", "x\r\ny"])
def test_a_name_that_is_no_lower_case_token_is_not_written(name: str) -> None:
    with pytest.raises(InvalidRequest, match="header name"):
        write_headers({name: "1"})


@pytest.mark.parametrize(
    "value",
    [
        *("a\r\nb: c", "a\nb", "a\r", "\n", "a\x00", "a\x1bb", "a\x7f", "café", "４", "\ud800"),
        *("a\u2028b", "a\x85b", "\xa0", " a", "a ", "\ta", "a\t", "a\x0bb"),
    ],
)
def test_a_value_that_would_not_arrive_as_it_left_is_not_written(value: str) -> None:
    with pytest.raises(MalformedCallerContext, match="'x-a'") as caught:
        write_headers({"x-a": value})
    assert repr(value) not in str(caught.value)


@given(st.dictionaries(st.from_regex(r"[a-z][a-z-]{0,9}", fullmatch=True), st.text(), max_size=4))
@settings(deadline=None)
def test_what_was_written_is_read_back(fields: dict[str, str]) -> None:
    try:
        written = write_headers(fields)
    except MalformedCallerContext:
        return
    received = Headers([(name.encode("ascii"), value.encode("ascii")) for name, value in written])
    for name, value in fields.items():
        assert received.get(name) == (value.strip(" \t") or None)


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1))
@settings(deadline=None)
def test_visible_ascii_survives_the_way_out_and_in(text: str) -> None:
    value = text.strip()
    written = write_headers({"a": value})
    received = Headers([(name.encode(), sent.encode()) for name, sent in written])
    assert received.visible("a", max_bytes=len(text)) == (value or None)
