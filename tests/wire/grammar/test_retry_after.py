"""How long a peer asks us to wait."""

import pytest

from carnet.wire.grammar.retry_after import read_wait

NOW = "Sun, 15 Nov 2026 06:46:52 GMT"


@pytest.mark.parametrize(
    ("text", "date", "seconds"),
    [
        ("0", None, 0),
        ("120", None, 120),
        ("999999", None, 999_999),
        ("Sun, 15 Nov 2026 06:47:52 GMT", NOW, 60),
        ("Sun, 15 Nov 2026 06:46:00 GMT", NOW, 0),
    ],
)
def test_seconds_and_dates_are_read(text: str, date: str | None, seconds: int) -> None:
    assert read_wait(text, date) == seconds


@pytest.mark.parametrize(
    ("text", "date"),
    [
        (None, None),
        ("", None),
        ("-1", None),
        ("1.5", None),
        ("1000000", None),
        ("\u0663", None),
        ("Sun, 15 Nov 2026 06:47:52 GMT", None),
        ("Sun, 15 Nov 2026 06:47:52 GMT", "yesterday"),
        ("Tue, 31 Feb 2026 06:47:52 GMT", NOW),
        ("Sun, 15 Nov 2028 06:47:52 GMT", NOW),
    ],
)
def test_anything_else_says_nothing(text: str | None, date: str | None) -> None:
    assert read_wait(text, date) is None
