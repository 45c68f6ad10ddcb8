"""The machine's clock and dice."""

import uuid

from carnet.runtime.system import SystemClock, SystemIds


def test_an_ordered_uuid_is_a_uuid_of_version_seven_in_the_order_of_time() -> None:
    ids = [SystemIds().ordered_uuid() for _ in range(500)]
    assert len(set(ids)) == 500
    for text in ids:
        parsed = uuid.UUID(text)
        assert (str(parsed), parsed.version, parsed.variant) == (text, 7, uuid.RFC_4122)
    times = [text[:13] for text in ids]
    assert times == sorted(times)


def test_ids_are_canonical_and_tokens_are_long() -> None:
    ids = SystemIds()
    assert uuid.UUID(ids.uuid()).version == 4
    assert len(ids.token()) >= 43
    assert 0 <= ids.fraction() < 1


def test_the_clock_gives_microseconds_and_never_goes_back() -> None:
    clock = SystemClock()
    assert 1_700_000_000_000_000 < clock.wall_us() < 10_000_000_000_000_000
    first = clock.monotonic()
    assert clock.monotonic() >= first
