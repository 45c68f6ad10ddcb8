"""The caller's own name for its request."""

import pytest

from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps.stamp import read_correlation


@pytest.mark.parametrize("value", ["a", "order-17/4:x", "~" * 128])
def test_a_visible_word_is_read(value: str) -> None:
    assert read_correlation(Headers([(b"x-correlation-id", value.encode())])) == value


@pytest.mark.parametrize("value", [b"", b"two words", b"~" * 129, "ö".encode(), b"a\tb"])
def test_what_is_none_was_not_told(value: bytes) -> None:
    assert read_correlation(Headers([(b"x-correlation-id", value)])) is None
    assert (
        read_correlation(Headers([(b"x-correlation-id", b"a"), (b"x-correlation-id", b"a")]))
        is None
    )
    assert read_correlation(Headers([(b"x-correlation-idea", b"a")])) is None


def test_a_request_without_the_field_names_nothing() -> None:
    assert read_correlation(Headers([(b"accept", b"x-correlation-id")])) is None
