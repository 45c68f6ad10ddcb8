"""W3C trace context: joined where it is valid, ignored where it is not, never a refusal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.chain.carnet import Trace
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps.stamp import read_trace, write_trace

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"


def headers(*parents: str, states: tuple[str, ...] = ()) -> Headers:
    return Headers(
        [
            *((b"traceparent", parent.encode("latin-1")) for parent in parents),
            *((b"tracestate", state.encode("latin-1")) for state in states),
        ]
    )


def state(*states: str) -> str | None:
    found = read_trace(headers(PARENT, states=states))
    assert found is not None
    return found.state


def test_a_valid_parent_is_joined() -> None:
    assert read_trace(headers(PARENT)) == Trace(TRACE, SPAN, "01", None)
    assert read_trace(headers(f" {PARENT}\t")) == Trace(TRACE, SPAN, "01", None)


@pytest.mark.parametrize(
    "parent",
    [
        "",
        "00",
        PARENT[:-1],
        PARENT + "0",
        PARENT + "-extra",
        PARENT + "-",
        PARENT.upper(),
        PARENT.replace("-", "_"),
        f"ff-{TRACE}-{SPAN}-01",
        f"0-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[:-1]}g-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-0x",
        f"00-{TRACE}-{SPAN}-01\n",
        f"01-{TRACE}-{SPAN}-01extra",
        f"00-{TRACE}-{SPAN}-\xb2\xb3",
    ],
)
def test_an_invalid_parent_is_ignored(parent: str) -> None:
    assert read_trace(headers(parent, states=("a=1",))) is None


def test_no_parent_or_two_are_no_trace() -> None:
    assert read_trace(headers()) is None
    assert read_trace(headers(states=("a=1",))) is None
    assert read_trace(headers(PARENT, PARENT)) is None


@pytest.mark.parametrize("parent", [f"01-{TRACE}-{SPAN}-01", f"cc-{TRACE}-{SPAN}-01-what-comes"])
def test_a_later_version_is_read_as_far_as_we_know_it(parent: str) -> None:
    assert read_trace(headers(parent)) == Trace(TRACE, SPAN, "01", None)


@pytest.mark.parametrize(
    ("flags", "kept"), [("00", "00"), ("01", "01"), ("03", "03"), ("ff", "03"), ("08", "00")]
)
def test_flags_that_we_do_not_know_are_not_passed_on(flags: str, kept: str) -> None:
    assert read_trace(headers(f"00-{TRACE}-{SPAN}-{flags}")) == Trace(TRACE, SPAN, kept, None)


def test_state_from_several_lines_is_joined_in_order() -> None:
    assert state("a=1", "b=2,c=3") == "a=1,b=2,c=3"
    assert state(" a=1 ,\t, b=2,,") == "a=1,b=2"
    assert state("tenant@system=x y", "0a=~!") == "tenant@system=x y,0a=~!"
    assert state() is None
    assert state("", " ") is None


@pytest.mark.parametrize(
    "text",
    [
        *("a", "a=", "=1", "A=1", "a=1=2", "a b=1", "é=1", "a=\xe9", "a=1\x00"),
        *("a=1,a=2", "_a=1", "a" * 257 + "=1", "a=" + "x" * 257),
        ",".join(f"k{n}=1" for n in range(33)),
    ],
)
def test_invalid_state_is_dropped_and_the_trace_holds(text: str) -> None:
    assert state(text) is None


def test_too_much_state_loses_long_members_first_and_then_the_last() -> None:
    assert state(",".join(f"k{n}=1" for n in range(32))) is not None
    long = "long=" + "x" * 200
    short = [f"k{n:02}=" + "x" * 26 for n in range(20)]
    assert state(",".join([long, *short[:9]])) == ",".join([long, *short[:9]])
    assert state(",".join([short[0], long, *short[1:12]])) == ",".join(short[:12])
    assert state(",".join([*short, long])) == ",".join(short[:16])


def test_the_call_itself_is_the_parent_of_what_the_callee_does() -> None:
    assert write_trace(Trace(TRACE, SPAN, "01", "a=1"), "1" * 16) == {
        "traceparent": f"00-{TRACE}-1111111111111111-01",
        "tracestate": "a=1",
    }
    assert write_trace(Trace(TRACE, SPAN, "00"), "1" * 16) == {
        "traceparent": f"00-{TRACE}-1111111111111111-00"
    }


@given(
    trace_id=st.from_regex("[0-9a-f]{31}[1-9a-f]", fullmatch=True),
    span_id=st.from_regex("[0-9a-f]{15}[1-9a-f]", fullmatch=True),
    flags=st.sampled_from(["00", "01", "02", "03"]),
    members=st.none() | st.sampled_from(["a=1", "a=1,b@c=2 3"]),
)
def test_a_trace_is_read_as_it_was_written(
    trace_id: str, span_id: str, flags: str, members: str | None
) -> None:
    written = write_trace(Trace(trace_id, SPAN, flags, members), span_id)
    lines = Headers([(name.encode(), value.encode()) for name, value in written.items()])
    assert read_trace(lines) == Trace(trace_id, span_id, flags, members)
