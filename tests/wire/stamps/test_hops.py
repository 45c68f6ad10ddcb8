"""The hop counters of other gateways: strict, and never below what another stamp says."""

import pytest

from carnet.core.chain.carnet import Carnet, Mark, check_depth, merge
from carnet.errors import ChainMismatch, DepthExceeded, HeaderNotSigned, MalformedCallerContext
from carnet.wire.grammar.headers import MAX_COUNT, Headers
from carnet.wire.stamps import ROWS, STAMPS
from carnet.wire.stamps.hops import A2A_HOP, CONTEXTFORGE_HOP
from carnet.wire.stamps.stamp import MINIMUM, PROFILE, Leaving, check_coverage

HOPS = (A2A_HOP, CONTEXTFORGE_HOP)
DEPTH = "x-tangle-forwarded-depth"


def read(*fields: tuple[str, str]) -> tuple[Mark, ...]:
    raw = [(name.encode(), value.encode()) for name, value in fields]
    return STAMPS.read(Headers(raw)).marks


@pytest.mark.parametrize("header", HOPS)
@pytest.mark.parametrize(
    ("text", "depth"),
    [("0", 0), ("1", 1), ("01", 1), (" 3 ", 3), ("9999", 9999), ("9" * 20, MAX_COUNT)],
)
def test_a_hop_is_a_depth_that_saturates(header: str, text: str, depth: int) -> None:
    (mark,) = read((header, text))
    assert (mark.depth, mark.last_depth) == (depth, 3)


@pytest.mark.parametrize("header", HOPS)
@pytest.mark.parametrize(
    "text", ["-1", "+1", "４", "١", "1_0", "1,2", "0, 3", "1.5", "0x1", "one", "1\t", "1 2", "1e1"]
)
def test_a_hop_that_is_no_number_is_refused(header: str, text: str) -> None:
    with pytest.raises(MalformedCallerContext, match=header):
        read((header, text))


@pytest.mark.parametrize("header", HOPS)
def test_a_hop_that_stands_twice_is_refused_also_where_both_say_the_same(header: str) -> None:
    with pytest.raises(MalformedCallerContext, match="more than once"):
        read((header, "1"), (header, "1"))


@pytest.mark.parametrize("header", HOPS)
def test_a_blank_hop_was_not_sent(header: str) -> None:
    assert read((header, "")) == read((header, "  ")) == ()


def test_the_largest_of_all_depths_counts() -> None:
    fields = [(DEPTH, "1"), (A2A_HOP, "3"), (CONTEXTFORGE_HOP, "2")]
    assert merge(read(*fields)).depth == 3
    assert merge(read((DEPTH, "3"), (A2A_HOP, "1"))).depth == 3
    with pytest.raises(DepthExceeded) as refused:
        check_depth(merge(read((DEPTH, "1"), (CONTEXTFORGE_HOP, "4"))))
    assert refused.value.facts == {"observed": 4, "limit": 4, "stamp": "tangle"}


def test_a_hop_that_says_the_chain_begins_here_contradicts_another_that_it_does_not() -> None:
    with pytest.raises(ChainMismatch):
        merge(read((DEPTH, "3"), (A2A_HOP, "0")))


@pytest.mark.parametrize("header", HOPS)
def test_a_hop_must_be_covered_by_a_signature(header: str) -> None:
    beside = Headers([(header.encode(), b"1")])
    for least in (MINIMUM, PROFILE):
        with pytest.raises(HeaderNotSigned):
            check_coverage(least, least, beside, has_query=False, stamps=STAMPS)
        check_coverage((*least, header), least, beside, has_query=False, stamps=STAMPS)


@pytest.mark.parametrize("header", HOPS)
def test_a_look_alike_of_a_hop_is_refused(header: str) -> None:
    with pytest.raises(MalformedCallerContext, match="underscore"):
        read((header.replace("-", "_"), "1"))


def test_a_hop_is_written_toward_a2a_agents_alone_and_reads_the_same() -> None:
    carnet = Carnet(run="r", turn="t", depth=2, last_depth=3)
    assert A2A_HOP not in STAMPS.write(carnet, Leaving()).headers
    written = STAMPS.write(carnet, Leaving(dialect="a2a")).headers
    assert written[A2A_HOP] == "2"
    assert CONTEXTFORGE_HOP not in written
    assert {mark.depth for mark in read(*written.items())} == {2}


def test_hops_are_answered_as_deep_as_any_call() -> None:
    names = [stamp.name for stamp in ROWS if set(HOPS).intersection(stamp.prefixes)]
    assert names == ["a2a_hop", "contextforge_hop"]
    assert {STAMPS.limits.of(name) for name in names} == {STAMPS.limits.default}
