"""When schedules are due: in their zone, over changes of clocks, and after they were missed."""

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from carnet.core.triggers.cron import read_cron
from carnet.core.triggers.ticks import LATE_SECONDS, MOST_MISSED, Missed, due_ticks, next_tick

BERLIN = ZoneInfo("Europe/Berlin")  # 29 March 2026: 2 to 3; 25 October 2026: 3 to 2
HAVANA = ZoneInfo("America/Havana")  # at midnight: 8 March 2026 0 to 1, 1 November 2026 1 to 0
LORD_HOWE = ZoneInfo("Australia/Lord_Howe")  # by half an hour: 5 April 2026, 2 to 1:30
APIA = ZoneInfo("Pacific/Apia")  # 30 December 2011 was left out


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def ticks(expression: str, zone: tzinfo, after: str, most: int) -> list[str]:
    """The next ticks after a moment, as clocks show them."""
    cron, moment = read_cron(expression), at(after)
    found: list[str] = []
    while len(found) < most:
        following = next_tick(cron, zone, moment)
        assert following is not None
        moment = following
        found.append(datetime.fromtimestamp(moment, zone).isoformat())
    return found


def test_the_next_tick_lies_after_the_moment_never_at_it() -> None:
    assert ticks("30 7 * * mon-fri", UTC, "2026-06-05T07:30:00+00:00", 2) == [
        "2026-06-08T07:30:00+00:00",
        "2026-06-09T07:30:00+00:00",
    ]
    assert ticks("@yearly", UTC, "2026-12-31T23:59:59+00:00", 1) == ["2027-01-01T00:00:00+00:00"]


def test_a_schedule_keeps_to_the_clocks_of_its_owner() -> None:
    assert ticks("0 9 * * *", BERLIN, "2026-03-28T00:00:00+00:00", 2) == [
        "2026-03-28T09:00:00+01:00",
        "2026-03-29T09:00:00+02:00",
    ]


def test_a_time_that_does_not_exist_is_due_once_at_the_next_moment_that_exists() -> None:
    after = "2026-03-29T00:30:00+00:00"
    expected = ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"]
    assert ticks("30 2 * * *", BERLIN, after, 2) == expected
    # Several that fall into the gap are one, and one with what is due at its end.
    assert ticks("*/10 2 * * *", BERLIN, after, 2)[1] == "2026-03-30T02:00:00+02:00"
    assert ticks("0 2,3 * * *", BERLIN, after, 2) == [expected[0], "2026-03-30T02:00:00+02:00"]
    assert ticks("0 0 * * *", HAVANA, "2026-03-08T03:00:00+00:00", 2) == [
        "2026-03-08T01:00:00-04:00",
        "2026-03-09T00:00:00-04:00",
    ]


def test_a_day_that_does_not_exist_is_due_at_the_first_moment_of_the_next() -> None:
    assert ticks("0 9 30 12 *", APIA, "2011-12-29T00:00:00+00:00", 1) == [
        "2011-12-31T00:00:00+14:00"
    ]


def test_a_time_that_comes_twice_is_due_once_the_first_time() -> None:
    assert ticks("30 2 * * *", BERLIN, "2026-10-24T12:00:00+00:00", 2) == [
        "2026-10-25T02:30:00+02:00",
        "2026-10-26T02:30:00+01:00",
    ]
    assert ticks("45 1 * * *", LORD_HOWE, "2026-04-04T12:00:00+00:00", 2) == [
        "2026-04-05T01:45:00+11:00",
        "2026-04-06T01:45:00+10:30",
    ]
    assert ticks("30 0 * * *", HAVANA, "2026-11-01T03:00:00+00:00", 2) == [
        "2026-11-01T00:30:00-04:00",
        "2026-11-02T00:30:00-05:00",
    ]


def test_what_names_no_hour_goes_by_the_time_that_passes() -> None:
    assert ticks("30 * * * *", BERLIN, "2026-03-29T00:00:00+00:00", 3) == [
        "2026-03-29T01:30:00+01:00",
        "2026-03-29T03:30:00+02:00",
        "2026-03-29T04:30:00+02:00",
    ]
    assert ticks("@hourly", BERLIN, "2026-10-24T23:30:00+00:00", 3) == [
        "2026-10-25T02:00:00+02:00",
        "2026-10-25T02:00:00+01:00",
        "2026-10-25T03:00:00+01:00",
    ]


def test_far_dates_are_found_and_the_end_of_time_is_not_passed() -> None:
    assert ticks("0 0 29 2 */7", UTC, "2072-03-01T00:00:00+00:00", 1) == [
        "2088-02-29T00:00:00+00:00"
    ]
    for late in ("9892-03-06T00:00:00+00:00", "9990-01-01T00:00:00+00:00"):
        assert next_tick(read_cron("0 0 29 2 *"), UTC, at(late)) is None
    # Read as text it would be refused; as it is, it is not looked for without end.
    never = structs.replace(read_cron("0 0 29 2 *"), days=frozenset({30}))
    assert next_tick(never, UTC, 0) is None


def test_a_zone_without_an_offset_counts_as_utc() -> None:
    class Nowhere(tzinfo):
        def utcoffset(self, _: datetime | None, /) -> timedelta | None:
            return None

        dst = utcoffset

        def tzname(self, _: datetime | None, /) -> str | None:
            return None

        def fromutc(self, moment: datetime, /) -> datetime:
            return moment

    assert next_tick(read_cron("0 9 * * *"), Nowhere(), 0) == 9 * 3600


@pytest.mark.parametrize(
    ("missed", "late", "kept", "others"),
    [
        ("skip", LATE_SECONDS, 1, True),
        ("skip", LATE_SECONDS + 1, 0, True),
        ("last", LATE_SECONDS + 1, 1, True),
        ("all", LATE_SECONDS + 1, 5, False),
    ],
)
def test_three_words_decide_about_what_was_missed(
    missed: Missed, late: int, kept: int, *, others: bool
) -> None:
    cron, first = read_cron("@hourly"), at("2026-06-01T00:00:00+00:00")
    now = first + 4 * 3600 + late
    due = due_ticks(cron, UTC, missed, first=first, now=now)
    expected = [first + hour * 3600 for hour in range(5)]
    assert list(due.ticks) == (expected[-kept:] if kept else [])
    assert due.has_missed is others
    assert due.following == first + 5 * 3600


def test_what_is_due_now_and_alone_misses_nothing_and_what_is_to_come_waits() -> None:
    cron, first = read_cron("@daily"), at("2026-06-02T00:00:00+00:00")
    due = due_ticks(cron, UTC, "skip", first=first, now=first)
    assert (due.ticks, due.has_missed) == ((first,), False)
    due = due_ticks(cron, UTC, "skip", first=first, now=first - 1)
    assert (due.ticks, due.has_missed, due.following) == ((), False, first)


def test_of_all_that_were_missed_the_newest_are_made_up_for_and_no_more() -> None:
    cron, first = read_cron("* * * * *"), at("2026-06-01T00:00:00+00:00")
    now = first + 1000 * 60
    due = due_ticks(cron, UTC, "all", first=first, now=now)
    assert len(due.ticks) == MOST_MISSED
    assert due.ticks[-1] == now
    assert all(later - earlier == 60 for earlier, later in pairwise(due.ticks))
    assert due.has_missed


def test_what_was_missed_years_ago_is_known_still() -> None:
    first = at("2024-02-29T00:00:00+00:00")
    now = at("2027-06-01T00:00:00+00:00")
    due = due_ticks(read_cron("0 0 29 2 *"), UTC, "last", first=first, now=now)
    assert due.ticks == (first,)


EXPRESSIONS = ("*/7 * * * *", "30 2 * * *", "15 0-3 * * sun", "0 0,1,23 1 * *", "59 23 * * *")
ZONES = (BERLIN, HAVANA, LORD_HOWE, APIA, timezone(timedelta(hours=-9, minutes=-30)))


@given(st.sampled_from(EXPRESSIONS), st.sampled_from(ZONES), st.integers(0, 4_000_000_000))
def test_ticks_grow_and_going_back_over_them_finds_the_same(
    expression: str, zone: tzinfo, after: int
) -> None:
    cron = read_cron(expression)
    first = next_tick(cron, zone, after)
    assert first is not None
    found = [first]
    for _ in range(4):
        following = next_tick(cron, zone, found[-1])
        assert following is not None
        assert following > found[-1]
        found.append(following)
    assert due_ticks(cron, zone, "all", first=first, now=found[-1]).ticks == tuple(found)
    assert next_tick(cron, zone, found[2] - 1) == found[2]
