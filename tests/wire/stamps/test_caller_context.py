"""The agents-api stamp: claims of one meaning, or none."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.chain.carnet import Carnet, Mark, check_depth, merge
from carnet.errors import DepthExceeded, MalformedCallerContext
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps.caller_context import (
    CALLER_AGENT,
    CALLER_HOST,
    CALLER_USER,
    CHAIN_DEPTH,
    CHAIN_ROOT,
    DEFAULT_MAX_CHAIN_DEPTH,
    CallerContext,
    read,
    write,
)

SHORT = dict(a=CALLER_AGENT, u=CALLER_USER, h=CALLER_HOST, d=CHAIN_DEPTH, r=CHAIN_ROOT)  # noqa: C408
VALID = {
    "a": "source-agent",
    "u": "42",
    "h": "https://source.example",
    "d": "2",
    "r": "root-request-123",
}
NEW_ROOT = "6f1d2c"


def spelled(letters: dict[str, str]) -> dict[str, str]:
    """The five headers by their first letters."""
    return {SHORT[letter]: value for letter, value in letters.items()}


def parse(letters: dict[str, str], max_chain_depth: int = 16) -> CallerContext:
    return CallerContext.from_headers(spelled(letters), max_chain_depth, new_root=lambda: NEW_ROOT)


def on_the_wire(letters: dict[str, str]) -> Headers:
    lines = [
        (SHORT[letter].lower().encode(), value.encode(errors="surrogatepass"))
        for letter, value in letters.items()
    ]
    return Headers([(b"host", b"b.example"), *lines])


def refused_field(values: dict[str, str]) -> str:
    """The field that both readers name when they refuse."""
    with pytest.raises(ValueError, match="invalid_agent_caller_context") as caught:
        parse(values)
    field = str(caught.value).split()[1]
    with pytest.raises(MalformedCallerContext) as wire:
        read(on_the_wire(values), last_depth=16)
    letters = dict(zip(CallerContext.__struct_fields__, (*SHORT.values(), "metadata"), strict=True))
    assert wire.value.facts["header"] == letters[field]
    assert wire.value.status == 400
    return field


def test_without_headers_a_call_is_at_the_top_of_a_chain() -> None:  # W01
    context = parse({})
    assert context == CallerContext("", 0, "self", 0, NEW_ROOT)
    assert not context.is_cross_site()
    assert read(on_the_wire({}), last_depth=16) == (None, None)
    assert read(Headers([(b"x-agents-api-other", b"1")]), last_depth=16) == (None, None)


def test_a_valid_chain_is_recorded_whole() -> None:  # W02, W25
    context = parse(VALID)
    assert context == CallerContext(
        "source-agent", 42, "https://source.example", 2, "root-request-123"
    )
    assert context.is_cross_site()
    mark = Mark(stamp="caller_context", depth=2, last_depth=16, run="root-request-123")
    assert read(on_the_wire(VALID), last_depth=16) == (context, mark)


@pytest.mark.parametrize("depth", ["not-a-number", "-5", "bogus", "+1", "1.0", "1e1", "٣", "1_0"])
def test_a_depth_that_is_not_ascii_digits_is_refused(depth: str) -> None:  # W04 W05 W17 W26
    assert refused_field({"d": depth}) == "chain_depth"
    assert refused_field({**VALID, "d": depth}) == "chain_depth"


@pytest.mark.parametrize("user", ["-1", "x", "1.0", "٣", "9007199254740992", "9" * 17])
def test_a_user_that_is_not_a_whole_number_is_refused_and_never_rounded(user: str) -> None:
    assert refused_field({**VALID, "u": user}) == "caller_user_id"


def test_a_user_may_be_as_large_as_a_number_in_json() -> None:
    assert parse({**VALID, "u": "9007199254740991"}).caller_user_id == 2**53 - 1
    assert parse({**VALID, "u": "007"}).caller_user_id == 7
    assert parse({**VALID, "u": ""}).caller_user_id == 0


def test_names_are_read_in_any_case() -> None:  # W08
    headers = {name.swapcase(): value for name, value in spelled(VALID).items()}
    assert CallerContext.from_headers(headers, new_root=lambda: NEW_ROOT) == parse(VALID)


def test_the_sixteenth_hop_is_taken_and_the_seventeenth_is_not() -> None:  # W10
    assert DEFAULT_MAX_CHAIN_DEPTH == 16
    assert parse({**VALID, "d": "16"}).chain_depth == 16
    for depth in ("17", "9" * 30):
        with pytest.raises(ValueError, match="invalid_agent_caller_context: chain_depth"):
            parse({**VALID, "d": depth})


@pytest.mark.parametrize("depth", ["17", "99999999999999999999"])
def test_on_our_wire_a_chain_too_deep_is_well_formed_and_left_to_the_chain_guard(
    depth: str,
) -> None:
    context, mark = read(on_the_wire({**VALID, "d": depth}), last_depth=16)
    assert context is not None
    assert mark is not None
    with pytest.raises(DepthExceeded) as caught:
        check_depth(merge([mark]))
    assert caught.value.facts["limit"] == 17


def test_only_a_root_is_the_top_of_a_chain_with_that_root() -> None:  # W11
    assert parse({"r": "R"}) == CallerContext.top("R")
    context, mark = read(on_the_wire({"r": "R"}), last_depth=16)
    assert context == CallerContext.top("R")
    assert mark == Mark(stamp="caller_context", last_depth=16, run="R")


def test_an_explicit_depth_0_is_the_top_of_a_chain_that_is_ours_to_name() -> None:
    assert parse({"d": "0"}) == CallerContext.top(NEW_ROOT)
    found = read(on_the_wire({"d": "0"}), last_depth=16)
    assert found == (None, Mark(stamp="caller_context", depth=0, last_depth=16))


@pytest.mark.parametrize("letters", [{"a": "x"}, {"u": "5"}, {"h": "self"}, {"h": "https://s"}])
def test_nobody_may_be_named_at_the_top(letters: dict[str, str]) -> None:  # W13 W14
    assert refused_field(letters) == "chain_depth"
    assert refused_field({**letters, "d": "0", "r": "R"}) == "chain_depth"


def test_user_0_alone_says_nothing() -> None:  # W14
    assert parse({"u": "0"}) == CallerContext.top(NEW_ROOT)
    assert read(on_the_wire({"u": "0"}), last_depth=16) == (None, None)


def test_the_headers_of_the_top_can_be_fed_back() -> None:  # W16, the other way round
    headers = CallerContext.top("R").to_headers()
    assert headers == {CHAIN_ROOT: "R"}
    assert CallerContext.from_headers(headers, new_root=lambda: NEW_ROOT) == CallerContext.top("R")


@pytest.mark.parametrize(
    ("letter", "field"),
    [("a", "caller_agent_id"), ("r", "chain_root_request_id"), ("h", "caller_host")],
)
def test_below_the_top_agent_host_and_root_must_be_named(letter: str, field: str) -> None:  # W19
    assert refused_field({**VALID, letter: " "}) == field
    assert refused_field({k: v for k, v in VALID.items() if k != letter}) == field


@pytest.mark.parametrize(
    "host",
    [
        *("ftp://s", "s.example", "//s", "HTTPS://s", "SELF", "self", "https://", "http:///x"),
        *("https://user:pw@s.example", "https://s.example\\@evil", "https://s example", "https:s"),
        *("https://s.example:x", "https://s.example:123456", "https://bücher.example"),
    ],
)
def test_a_host_that_is_no_absolute_url_is_refused(host: str) -> None:  # W20
    assert refused_field({**VALID, "h": host}) == "caller_host"


@pytest.mark.parametrize(
    "host",
    [
        *("http://s", "https://s.example:8443/site?x=1#y", "https://[::1]:80/", "https://a_b.test"),
        "https://s.example/" + "x" * 2030,
    ],
)
def test_a_host_may_have_a_port_and_a_path(host: str) -> None:
    assert parse({**VALID, "h": host}).caller_host == host


@pytest.mark.parametrize(
    ("letter", "value", "field"),
    [
        ("a", "x" * 129, "caller_agent_id"),
        ("r", "x" * 129, "chain_root_request_id"),
        ("h", "https://s.example/" + "x" * 2031, "caller_host"),
        ("a", "caf\xe9", "caller_agent_id"),
        ("a", "a\r\nb", "caller_agent_id"),
        ("r", "a\x00b", "chain_root_request_id"),
        ("r", "\ud800", "chain_root_request_id"),
    ],
)
def test_values_are_bounded_visible_ascii(letter: str, value: str, field: str) -> None:
    assert refused_field({**VALID, letter: value}) == field
    assert parse({**VALID, "a": "x" * 128, "r": "y" * 128}).caller_agent_id == "x" * 128


@pytest.mark.parametrize("letter", list("auhdr"))
def test_a_repeated_header_is_refused(letter: str) -> None:
    twice = Headers(
        [
            *on_the_wire(VALID).raw,
            (SHORT[letter].lower().encode(), VALID[letter].encode()),
        ]
    )
    with pytest.raises(MalformedCallerContext, match="more than once"):
        read(twice, last_depth=16)
    with pytest.raises(ValueError, match="more than once"):
        CallerContext.from_headers(twice, new_root=lambda: NEW_ROOT)


def test_a_limit_below_0_is_refused_before_anything_is_read() -> None:
    with pytest.raises(ValueError, match="invalid_agent_caller_context: max_chain_depth"):
        parse({"d": "bogus"}, -1)


def test_a_limit_of_0_takes_the_top_alone() -> None:
    assert parse({"r": "R"}, 0).chain_depth == 0
    with pytest.raises(ValueError, match="chain_depth"):
        parse({**VALID, "d": "1"}, 0)


GOOD: dict[str, Any] = {
    "caller_agent_id": "franklin",
    "caller_user_id": 7,
    "caller_host": "https://chubes.net",
    "chain_depth": 2,
    "chain_root_request_id": "cid-1",
    "metadata": {"client": "ci"},
}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"caller_user_id": -1}, "caller_user_id"),
        ({"caller_user_id": "7"}, "caller_user_id"),
        ({"caller_user_id": True}, "caller_user_id"),
        ({"caller_host": ""}, "caller_host"),
        ({"caller_host": "chubes.net"}, "caller_host"),
        ({"caller_host": 5}, "caller_host"),
        ({"chain_depth": -1}, "chain_depth"),
        ({"chain_depth": 1.0}, "chain_depth"),
        ({"chain_root_request_id": ""}, "chain_root_request_id"),
        ({"chain_root_request_id": " "}, "chain_root_request_id"),
        ({"chain_root_request_id": None}, "chain_root_request_id"),
        ({"caller_agent_id": None}, "caller_agent_id"),
        ({"chain_depth": 0}, "chain_depth"),
        ({"caller_host": "self"}, "caller_host"),  # W07
        ({"metadata": []}, "metadata"),
        ({"metadata": {"x": object()}}, "metadata"),
        ({"metadata": {"x": float("nan")}}, "metadata"),
        ({"caller_user_id": -1, "caller_host": "", "chain_depth": -1}, "caller_user_id"),
        ({"caller_host": "x", "chain_depth": -1}, "caller_host"),
        ({"chain_depth": -1, "chain_root_request_id": ""}, "chain_depth"),
        ({"chain_root_request_id": "", "caller_host": "self"}, "chain_root_request_id"),
        ({"caller_host": "self", "metadata": {"x": object()}}, "caller_host"),
    ],
)
def test_a_context_nobody_can_mean_is_refused_by_its_first_fault(
    changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(ValueError, match=f"^invalid_agent_caller_context: {field} "):
        CallerContext(**{**GOOD, **changes})


def test_the_headers_are_text_in_their_documented_case() -> None:  # W22
    assert CallerContext(**GOOD).to_headers() == {
        "X-Agents-Api-Caller-Agent": "franklin",
        "X-Agents-Api-Caller-User": "7",
        "X-Agents-Api-Caller-Host": "https://chubes.net",
        "X-Agents-Api-Chain-Depth": "2",
        "X-Agents-Api-Chain-Root": "cid-1",
    }


def test_a_context_is_read_from_the_fields_it_was_written_to() -> None:  # W23
    context = CallerContext(**GOOD)
    assert context.to_dict() == GOOD
    assert CallerContext.from_dict(context.to_dict()) == context
    assert CallerContext.from_dict({"chain_root_request_id": "R"}) == CallerContext.top("R")


def test_fields_that_are_missing_or_unknown_are_refused() -> None:
    with pytest.raises(ValueError, match="chain_root_request_id"):
        CallerContext.from_dict({})
    with pytest.raises(ValueError, match="metadata"):
        CallerContext.from_dict({**GOOD, "extra": 1})


def test_metadata_never_travels() -> None:
    context = CallerContext(**{**GOOD, "metadata": {"client": "chatty"}})
    assert "chatty" not in str(context.to_headers())


AGENTS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=128)


@given(
    agent=AGENTS,
    root=AGENTS,
    user=st.integers(0, 2**53 - 1),
    host=st.sampled_from(["https://s.example", "http://[::1]:80/x"]),
    depth=st.integers(1, 16),
)
def test_a_chain_is_read_as_it_was_written(
    agent: str, root: str, user: int, host: str, depth: int
) -> None:
    context = CallerContext(agent, user, host, depth, root)
    headers = context.to_headers()
    assert CallerContext.from_headers(headers, new_root=lambda: NEW_ROOT) == context
    written = write(Carnet(run=root, turn="t", depth=depth), agent=agent, host=host, user=user)
    assert written == {name.lower(): value for name, value in headers.items()}
    lines = Headers([(name.encode(), value.encode()) for name, value in written.items()])
    mark = Mark(stamp="caller_context", depth=depth, last_depth=16, run=root)
    assert read(lines, last_depth=16) == (context, mark)


def test_at_depth_0_nothing_is_written() -> None:
    assert write(Carnet(run="r", turn="t"), agent="a", host="https://s.example") == {}


def test_a_call_below_the_top_needs_a_calling_agent_and_a_host() -> None:
    carnet = Carnet(run="r", turn="t", depth=1)
    with pytest.raises(ValueError, match="caller_agent_id"):
        write(carnet, agent="", host="https://s.example")
    with pytest.raises(ValueError, match="caller_host"):
        write(carnet, agent="a", host="self")


def test_a_value_that_would_split_a_header_cannot_be_written() -> None:
    with pytest.raises(MalformedCallerContext):
        write(Carnet(run="r\r\nx: 1", turn="t", depth=1), agent="a", host="https://s.example")
