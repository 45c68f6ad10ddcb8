"""Wrong tokens are counted by the address they came from; a right one is never asked about."""

import pytest

from carnet.errors import TooManyFailures
from carnet.guards.caller.failures import MOST_SOURCES, WINDOW_SECONDS, Failures, source


def fail(failures: Failures, address: str, times: int, *, now: float = 0.0) -> None:
    for _ in range(times):
        failures.note(address, now)


def test_so_many_failures_are_only_counted() -> None:
    failures = Failures(3)
    fail(failures, "192.0.2.1", 2)
    failures.check("192.0.2.1", 0.0)
    assert not failures.any
    fail(failures, "192.0.2.1", 1)
    assert failures.any


def test_the_next_one_is_refused_until_the_minute_is_over() -> None:
    failures = Failures(3)
    fail(failures, "192.0.2.1", 3, now=10.0)
    for act in (failures.check, failures.note):
        with pytest.raises(TooManyFailures) as caught:
            act("192.0.2.1", 15.5)
        assert caught.value.retry_after == 55
        assert caught.value.facts["limit"] == 3
    failures.check("192.0.2.1", 10.0 + WINDOW_SECONDS)
    assert not failures.any
    fail(failures, "192.0.2.1", 3, now=10.0 + WINDOW_SECONDS)
    with pytest.raises(TooManyFailures):
        failures.check("192.0.2.1", 11.0 + WINDOW_SECONDS)


def test_one_address_says_nothing_of_another() -> None:
    failures = Failures(1)
    fail(failures, "192.0.2.1", 1)
    failures.check("192.0.2.2", 0.0)
    assert failures.any  # so that the first is still looked at
    fail(failures, "192.0.2.2", 1)


def test_the_table_is_bounded_and_forgets_the_oldest() -> None:
    failures = Failures(1)
    for number in range(MOST_SOURCES + 5):
        failures.note(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", 0.0)
    assert len(failures) == MOST_SOURCES
    failures.check("10.0.0.4", 0.0)
    with pytest.raises(TooManyFailures):
        failures.check("10.0.0.5", 0.0)


@pytest.mark.parametrize(
    ("address", "counted_as"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("unknown", "unknown"),
        ("2001:db8:1:2:aaaa::1", "2001:db8:1:2::"),
        ("2001:db8:1:2:bbbb::1", "2001:db8:1:2::"),
        ("2001:db8:1:3::1", "2001:db8:1:3::"),
        ("fe80::1%eth0", "fe80::"),
        ("::1", "::"),
    ],
)
def test_who_has_one_ipv6_address_has_its_whole_network(address: str, counted_as: str) -> None:
    assert source(address) == counted_as
