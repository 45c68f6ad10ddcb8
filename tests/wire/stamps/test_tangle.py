"""The Tangle stamp: strict to read, monotonic to write, and silent about the credential."""

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.chain.carnet import Carnet, Mark, merge
from carnet.core.people.identity import Secret
from carnet.errors import MalformedCallerContext, UnsupportedProtocolVersion
from carnet.wire.grammar.headers import MAX_COUNT, Headers
from carnet.wire.stamps import STAMPS
from carnet.wire.stamps.stamp import Leaving
from carnet.wire.stamps.tangle import (
    DEFAULT_MAX_DEPTH,
    FORWARDED_AUTHORIZATION,
    FORWARDED_DEPTH,
    PARENT_TURN_ID,
    PROTOCOL_VERSION,
    RUN_ID,
    SPEAKER,
    TURN_ID,
    build_forward_headers,
    is_depth_exceeded,
    read,
    read_depth,
    write,
)

USER = "Bearer sk-tan-user-123"
LAST = DEFAULT_MAX_DEPTH - 1

# The hostile and the harmless spellings of a depth, as they lie on the wire.
DEPTHS = [
    *((b"0", 0), (b"1", 1), (b"3", 3), (b"01", 1), (b" 1", 1), (b"1 ", 1)),
    *((b"4", 4), (b"5", 5), (b"15", 15), (b"99", 99), (b"9999", 9999)),
    *((b"99999999999999999999", MAX_COUNT), (b"1" * 5000, MAX_COUNT)),
]
NOT_DEPTHS = [
    *(b"-1", b"+1", b"1.0", b"1e0", b"0x1", b"1_0", b"NaN", b"null", b"1,2", b"1\t", b"1;a"),
    *("٣".encode(), "４".encode(), "²".encode(), b"\xb2", b"-0", b"1.5", b"banana", b"Infinity"),
    *(b"4,5", b"2, 99", b"1 2", b"0b1", b"\x0b1", b"1\x00"),
]


def headers(**fields: str) -> Headers:
    """Headers with these x-tangle fields, underscores for dashes, beside some others."""
    lines = [(f"x-tangle-{n.replace('_', '-')}".encode(), v.encode()) for n, v in fields.items()]
    return Headers([(b"host", b"b.example"), *lines, (b"accept", b"*/*")])


def raw(name: str, *values: bytes) -> Headers:
    """Headers with one line of a field for each value."""
    return Headers([(name.encode(), value) for value in values])


class Stamp(NamedTuple):
    """A stamp that is there."""

    mark: Mark
    forwarded: Secret | None


def stamp(fields: Headers) -> Stamp:
    found = read(fields, last_depth=LAST)
    assert found is not None
    assert found.mark is not None
    return Stamp(found.mark, found.forwarded)


def test_the_six_names_are_in_lower_case() -> None:
    assert (
        *(FORWARDED_AUTHORIZATION, FORWARDED_DEPTH, RUN_ID, TURN_ID, PARENT_TURN_ID, SPEAKER),
    ) == (
        "x-tangle-forwarded-authorization",
        "x-tangle-forwarded-depth",
        "x-tangle-runid",
        "x-tangle-turnid",
        "x-tangle-parent-turnid",
        "x-tangle-speaker",
    )


def test_all_six_headers_are_read() -> None:
    found = stamp(
        headers(
            forwarded_authorization=USER,
            forwarded_depth="2",
            runid="conv_abc",
            turnid="conv_abc.t0.critic",
            parent_turnid="conv_abc.t0.researcher",
            speaker="critic",
        )
    )
    assert found.mark == Mark(
        stamp="tangle",
        depth=2,
        last_depth=3,
        run="conv_abc",
        turn="conv_abc.t0.critic",
        parent_turn="conv_abc.t0.researcher",
        speaker="critic",
    )
    assert found.forwarded == Secret(USER)


@pytest.mark.parametrize(
    "fields",
    [
        Headers([]),
        Headers([(b"host", b"b.example"), (b"authorization", USER.encode())]),
        headers(forwarded_depth="", runid=" ", turnid="", parent_turnid="", speaker=""),
        headers(forwarded_authorization=" "),
    ],
)
def test_without_the_headers_or_with_blank_ones_there_is_no_stamp(fields: Headers) -> None:
    assert read(fields, last_depth=LAST) is None


@pytest.mark.parametrize(("value", "depth"), DEPTHS)
def test_a_depth_of_ascii_digits_is_read_and_saturates(value: bytes, depth: int) -> None:
    assert stamp(raw(FORWARDED_DEPTH, value)).mark.depth == depth


@pytest.mark.parametrize("value", NOT_DEPTHS)
def test_any_other_depth_is_refused_and_never_read_as_0(value: bytes) -> None:
    with pytest.raises(MalformedCallerContext, match=FORWARDED_DEPTH) as caught:
        read(raw(FORWARDED_DEPTH, value), last_depth=LAST)
    assert caught.value.status == 400


@pytest.mark.parametrize("second", [b"0", b"3", b""])
def test_a_depth_given_twice_is_refused(second: bytes) -> None:
    with pytest.raises(MalformedCallerContext, match="more than once"):
        read(raw(FORWARDED_DEPTH, b"0", second), last_depth=LAST)


@pytest.mark.parametrize("fields", [headers(runid="r"), headers(runid="r", forwarded_depth="")])
def test_an_absent_or_blank_depth_is_not_said_rather_than_0(fields: Headers) -> None:
    found = stamp(fields)
    assert found.mark.depth is None
    assert merge([found.mark]).depth == 0


def test_an_absent_depth_beside_a_parent_turn_counts_as_0() -> None:
    assert merge([stamp(headers(parent_turnid="r.t0.a")).mark]).depth == 0


@pytest.mark.parametrize(
    ("field", "limit"), [("runid", 128), ("turnid", 256), ("parent-turnid", 256), ("speaker", 128)]
)
def test_ids_and_labels_are_bounded_visible_ascii_given_once(field: str, limit: int) -> None:
    name = f"x-tangle-{field}"
    stamp(raw(name, b"x" * limit))
    for values in ([b"x" * (limit + 1)], [b"a\r\nb"], [b"caf\xe9"], [b"a\x00"], [b"a", b"b"]):
        with pytest.raises(MalformedCallerContext, match=name):
            read(raw(name, *values), last_depth=LAST)


def test_ids_are_opaque() -> None:
    mark = stamp(headers(runid="run.with.dots", parent_turnid="r.t-1.outer")).mark
    assert (mark.run, mark.parent_turn) == ("run.with.dots", "r.t-1.outer")


@pytest.mark.parametrize(
    "value",
    [
        *(USER, "bearer x402-token", "BEARER a", "Bearer " + "x" * 8192),
        "Bearer !#$%&'()*+-./:;<=>?@[]^_`{|}~\"\\",
    ],
)
def test_one_bearer_credential_is_kept_byte_for_byte(value: str) -> None:
    forwarded = stamp(headers(forwarded_authorization=value)).forwarded
    assert forwarded is not None
    assert forwarded.reveal() == value


@pytest.mark.parametrize(
    "value",
    [
        b"sk-tan-user-123",
        b"Basic dXNlcjpwYXNz",
        b"Bearer",
        b"Bearer  two-spaces",
        b"Bearer\ttab",
        b"Bearer a b",
        b"Bearer a,b",
        b"Bearer a, Bearer b",
        b"Bearer a\r\nx-evil: 1",
        b"Bearer a\n",
        b"Bearer a\x00",
        b"Bearer caf\xe9",
        "Bearer ４".encode(),
        b"Bearer " + b"x" * 8193,
        b"Bearer " + b"x" * 9000,
        b"XBearer a",
    ],
)
def test_anything_but_one_bearer_credential_is_refused_without_repeating_it(value: bytes) -> None:
    with pytest.raises(MalformedCallerContext) as caught:
        read(raw(FORWARDED_AUTHORIZATION, value), last_depth=LAST)
    assert value.decode("latin-1").strip() not in str(caught.value)
    assert caught.value.public_facts() == {"header": FORWARDED_AUTHORIZATION}


def test_two_forwarded_credentials_are_refused_even_if_they_agree() -> None:
    with pytest.raises(MalformedCallerContext, match="more than once"):
        read(raw(FORWARDED_AUTHORIZATION, USER.encode(), USER.encode()), last_depth=LAST)


def test_a_credential_shows_in_no_print_of_the_stamp() -> None:
    found = stamp(headers(forwarded_authorization=USER, forwarded_depth="1"))
    assert USER not in repr(found)
    assert "sk-tan" not in f"{found}"


def test_a_credential_or_a_label_alone_sets_no_limit_for_another_stamps_chain() -> None:
    assert stamp(headers(forwarded_authorization=USER)).mark == Mark(stamp="tangle", is_usual=True)
    label = Mark(stamp="tangle", speaker="critic", is_usual=True)
    assert stamp(headers(speaker="critic")).mark == label
    assert stamp(headers(runid="r")).mark.last_depth == LAST


@pytest.mark.parametrize("version", ["1", "v0", "00", "0.1", "0, 0", "٠"])
def test_a_version_other_than_0_is_refused(version: str) -> None:
    with pytest.raises(UnsupportedProtocolVersion):
        read(headers(protocol_version=version, runid="r"), last_depth=LAST)
    with pytest.raises(MalformedCallerContext):
        read(raw(PROTOCOL_VERSION, b"0", b"0"), last_depth=LAST)


def test_version_0_may_be_said_and_says_nothing_more() -> None:
    assert read(headers(protocol_version="0"), last_depth=LAST) is None
    assert stamp(headers(protocol_version="0", runid="r")).mark.run == "r"


def test_headers_that_a_later_version_adds_are_ignored() -> None:
    assert read(headers(client="ci", source="x"), last_depth=LAST) is None
    assert stamp(headers(client="ci", forwarded_depth="1")).mark.depth == 1


def test_the_callees_document_is_written_as_it_is() -> None:
    carnet = Carnet(
        run="conv_abc",
        turn="conv_abc.t0.critic",
        depth=2,
        parent_turn="conv_abc.t0.researcher",
        speaker="critic",
    )
    plain, secret = write(carnet, forwarded=Secret(USER))
    assert plain == {
        "x-tangle-forwarded-depth": "2",
        "x-tangle-runid": "conv_abc",
        "x-tangle-turnid": "conv_abc.t0.critic",
        "x-tangle-parent-turnid": "conv_abc.t0.researcher",
        "x-tangle-speaker": "critic",
    }
    assert secret == {"x-tangle-forwarded-authorization": Secret(USER)}


def test_what_is_not_there_is_left_out_rather_than_written_empty() -> None:
    plain, secret = write(Carnet(run="r", turn="t", depth=1), forwarded=None)
    assert plain == {FORWARDED_DEPTH: "1", RUN_ID: "r", TURN_ID: "t"}
    assert secret == {}


def test_no_version_header_is_written() -> None:
    plain, secret = write(Carnet(run="r", turn="t", depth=1, speaker="s"), forwarded=Secret(USER))
    assert PROTOCOL_VERSION not in {*plain, *secret}


@pytest.mark.parametrize(
    ("speaker", "label"),
    [
        ("GPT-5 Codex", "GPT-5 Codex"),
        ("100%", "100%"),
        ("José", "Jos%C3%A9"),
        ("José Ito", "Jos%C3%A9%20Ito"),
        ("研究者", "%E7%A0%94%E7%A9%B6%E8%80%85"),
        (" x ", "%20x%20"),
        ("a\r\nx-evil: 1", "a%0D%0Ax-evil%3A%201"),
        ("\ud800", "%3F"),
        ("x" * 200, "x" * 128),
        ("x" * 127 + " y", "x" * 127),
        ("é" * 200, "%C3%A9" * 21),
    ],
)
def test_a_speaker_is_written_as_visible_ascii_that_every_reader_takes(
    speaker: str, label: str
) -> None:
    plain, _ = write(Carnet(run="r", turn="t", depth=1, speaker=speaker), forwarded=None)
    assert plain[SPEAKER] == label
    assert stamp(headers(speaker=label)).mark.speaker == label


@pytest.mark.parametrize("value", ["a\r\nx-evil: 1", "a\nb", "a\x00", "café", " a", "a "])
def test_an_id_that_would_not_arrive_as_it_left_is_refused(value: str) -> None:
    for carnet in (
        Carnet(run=value, turn="t", depth=1),
        Carnet(run="r", turn=value, depth=1),
        Carnet(run="r", turn="t", parent_turn=value, depth=1),
    ):
        with pytest.raises(MalformedCallerContext):
            write(carnet, forwarded=None)


VISIBLE = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=128)


@given(
    run=VISIBLE,
    turn=VISIBLE,
    parent=st.none() | VISIBLE,
    speaker=st.none() | VISIBLE,
    depth=st.integers(0, MAX_COUNT),
    token=st.none() | VISIBLE.map(lambda text: text.replace(",", ".")),
)
def test_the_chain_is_read_as_it_was_written(
    run: str, turn: str, parent: str | None, speaker: str | None, depth: int, token: str | None
) -> None:
    carnet = Carnet(run=run, turn=turn, depth=depth, parent_turn=parent, speaker=speaker)
    forwarded = None if token is None else Secret(f"Bearer {token}")
    plain, secret = write(carnet, forwarded=forwarded)
    sent = {**plain, **{name: value.reveal() for name, value in secret.items()}}
    found = stamp(Headers([(name.encode(), value.encode()) for name, value in sent.items()]))
    assert found.forwarded == forwarded
    assert found.mark == Mark(
        stamp="tangle",
        depth=depth,
        last_depth=LAST,
        run=run,
        turn=turn,
        parent_turn=parent,
        speaker=speaker,
    )


def test_a_driver_tells_its_callee_one_more_than_it_was_told() -> None:
    built = build_forward_headers(
        run_id="run_1",
        turn_id="run_1.t0.researcher",
        speaker="researcher",
        inbound_depth=1,
        parent_turn_id="run_0.t0.outer",
        forwarded_authorization=USER,
    )
    assert built == {
        "x-tangle-forwarded-depth": "2",
        "x-tangle-runid": "run_1",
        "x-tangle-turnid": "run_1.t0.researcher",
        "x-tangle-parent-turnid": "run_0.t0.outer",
        "x-tangle-speaker": "researcher",
        "x-tangle-forwarded-authorization": USER,
    }


def test_a_driver_without_credential_or_parent_sends_neither_header() -> None:
    built = build_forward_headers(run_id="r", turn_id="t", speaker="s", inbound_depth=0)
    assert built == {FORWARDED_DEPTH: "1", RUN_ID: "r", TURN_ID: "t", SPEAKER: "s"}


@given(depth=st.integers(0, MAX_COUNT - 1))
def test_no_driver_can_lower_or_reset_the_depth(depth: int) -> None:
    built = build_forward_headers(run_id="r", turn_id="t", speaker="s", inbound_depth=depth)
    assert read_depth(built) == depth + 1


def test_a_depth_below_0_cannot_be_forwarded() -> None:
    with pytest.raises(MalformedCallerContext, match=FORWARDED_DEPTH):
        build_forward_headers(run_id="r", turn_id="t", speaker="s", inbound_depth=-1)


def test_a_driver_cannot_split_a_header_with_a_credential() -> None:
    with pytest.raises(MalformedCallerContext, match=FORWARDED_AUTHORIZATION):
        build_forward_headers(
            run_id="r",
            turn_id="t",
            speaker="s",
            inbound_depth=0,
            forwarded_authorization="Bearer a\r\nx-evil: 1",
        )


@pytest.mark.parametrize(
    ("fields", "depth"),
    [
        ({}, 0),
        ({"X-Tangle-Forwarded-Depth": "3"}, 3),
        ({"x-tangle-forwarded-depth": ""}, 0),
        ({"x-tangle-forwarded-depth": "01", "host": "b.example"}, 1),
        ([("Host", "b.example"), ("X-Tangle-Forwarded-Depth", "3")], 3),
        ([(b"x-tangle-forwarded-depth", b"2")], 2),
        ({"X-Tangle-Forwarded-Depth": ["3"], "host": ["b.example"]}, 3),
        ([], 0),
    ],
)
def test_a_depth_is_found_in_any_case_of_its_name(fields: Any, depth: int) -> None:
    assert read_depth(fields) == depth


@pytest.mark.parametrize(
    "fields",
    [
        {"x-tangle-forwarded-depth": "1", "X-Tangle-Forwarded-Depth": "1"},
        {"x-tangle-forwarded-depth": "2, 99"},
        {"x-tangle-forwarded-depth": "٣"},
        {"x-tangle-forwarded-depth": "-1"},
        {"x-tangle-forwarded-depth": "\ud800"},
        {"x-tangle-forwarded-depth": ["1", "2"]},
        [("x-tangle-forwarded-depth", "1"), ("x-tangle-forwarded-depth", "1")],
        [(b"x-tangle-forwarded-depth", b"\xff")],
    ],
)
def test_a_depth_that_is_not_one_number_is_refused(fields: Any) -> None:
    with pytest.raises(MalformedCallerContext):
        read_depth(fields)


def test_a_depth_is_exceeded_when_it_has_reached_the_limit() -> None:
    assert DEFAULT_MAX_DEPTH == 4
    assert [is_depth_exceeded(depth) for depth in (0, 3, 4, 99)] == [False, False, True, True]
    assert is_depth_exceeded(2, max_depth=2)
    assert not is_depth_exceeded(2, 3)


@pytest.mark.parametrize(
    ("dialect", "bound_by", "counts"),
    [
        ("tangle", "caller_context", True),
        ("a2a", "mentionable", False),
        ("a2a", "tangle", True),
        ("agents_api", "caller_context", False),
        ("agents_api", "chain_depth", False),
        ("agents_api", "tangle", True),
    ],
)
def test_the_depth_is_left_to_the_stamp_of_a_dialect_that_has_its_own_limit(
    dialect: str, bound_by: str, counts: object
) -> None:  # R2
    carnet = Carnet(run="r", turn="t", depth=2, last_depth=9, bound_by=bound_by)
    leaving = Leaving(dialect=dialect, agent="a", host="https://acme.example")
    written = STAMPS.write(carnet, leaving).headers
    assert (FORWARDED_DEPTH in written) is counts
    nobody = Leaving(dialect="agents_api")  # then no caller context is written
    assert FORWARDED_DEPTH in STAMPS.write(carnet, nobody).headers
