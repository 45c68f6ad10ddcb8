"""What a signature must cover."""

import pytest

from carnet.errors import HeaderNotSigned, InsufficientCoverage
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps import STAMPS
from carnet.wire.stamps.stamp import MINIMUM, PROFILE, check_coverage, protected_names

NONE = Headers([])
CHAIN = Headers([(b"x-tangle-runid", b"r"), (b"carnet", b"d"), (b"accept", b"*/*")])


def test_the_fields_that_tell_the_chain_or_an_identity_are_found() -> None:
    assert protected_names(CHAIN, STAMPS) == ["x-tangle-runid", "carnet"]
    assert protected_names(NONE, STAMPS) == []


def test_the_least_is_enough_where_there_is_nothing_more() -> None:
    check_coverage(MINIMUM, MINIMUM, NONE, has_query=False, stamps=STAMPS)
    check_coverage(PROFILE, MINIMUM, NONE, has_query=False, stamps=STAMPS)
    with pytest.raises(InsufficientCoverage):
        check_coverage(MINIMUM, PROFILE, NONE, has_query=False, stamps=STAMPS)


def test_what_tells_the_chain_is_covered_field_by_field() -> None:
    with pytest.raises(HeaderNotSigned):
        check_coverage((*MINIMUM, "carnet"), MINIMUM, CHAIN, has_query=False, stamps=STAMPS)
    check_coverage(
        (*MINIMUM, "carnet", "x-tangle-runid"), MINIMUM, CHAIN, has_query=False, stamps=STAMPS
    )


def test_a_query_is_covered() -> None:
    with pytest.raises(HeaderNotSigned):
        check_coverage(MINIMUM, MINIMUM, NONE, has_query=True, stamps=STAMPS)
    check_coverage((*MINIMUM, "@query"), MINIMUM, NONE, has_query=True, stamps=STAMPS)
