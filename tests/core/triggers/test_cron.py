"""Cron expressions: read strictly, and refused where they never come."""

from datetime import date

import pytest

from carnet.core.triggers.cron import MOST_CHARACTERS, SHORTCUTS, Cron, read_cron
from carnet.errors import InvalidRequest


def days(cron: Cron, year: int, month: int) -> list[int]:
    """The days of a month that are its dates."""
    return [day for day in range(1, 29) if cron.has(date(year, month, day))]


def test_each_field_takes_numbers_ranges_steps_lists_and_names() -> None:
    cron = read_cron("*/20,7 9-17/4 1,15-16 jan-mar,12 *")
    assert cron.minutes == (0, 7, 20, 40)
    assert cron.hours == (9, 13, 17)
    assert cron.days == {1, 15, 16}
    assert cron.months == {1, 2, 3, 12}
    assert cron.weekdays == set(range(7))
    assert not cron.either
    assert read_cron("50/5 20/2 * * *").minutes == (50, 55)


def test_case_and_blanks_do_not_matter_and_sunday_has_two_numbers() -> None:
    assert read_cron(" 0  0 * * SUN ") == read_cron("0 0 * * 7") == read_cron("0 0 * * 0")
    assert read_cron("0 0 * * 5-7").weekdays == {5, 6, 0}


@pytest.mark.parametrize("name", SHORTCUTS)
def test_the_names_stand_for_what_they_always_did(name: str) -> None:
    assert read_cron(name.upper()) == read_cron(SHORTCUTS[name])


def test_the_two_kinds_of_days_are_joined_as_cron_does() -> None:
    # In June 2026 Mondays are 1, 8, 15, 22.
    assert days(read_cron("0 0 13 * mon"), 2026, 6) == [1, 8, 13, 15, 22]
    assert days(read_cron("0 0 */2 * mon"), 2026, 6) == [1, 15]
    assert days(read_cron("0 0 8 * *"), 2026, 6) == [8]
    assert days(read_cron("0 0 8 7 *"), 2026, 6) == []


def test_whether_it_names_an_hour_is_known() -> None:
    assert read_cron("*/5 * * * *").is_every_hour
    assert read_cron("0 0-23 * * *").is_every_hour
    assert not read_cron("0 0-22 * * *").is_every_hour


@pytest.mark.parametrize("text", ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 30,31 feb */2"])
def test_a_date_that_never_comes_is_refused_at_once(text: str) -> None:
    with pytest.raises(InvalidRequest, match="never comes"):
        read_cron(text)


def test_a_weekday_beside_it_makes_it_come() -> None:
    assert read_cron("0 0 30 2 mon").either


@pytest.mark.parametrize(
    "text",
    [
        *("", "* * * *", "* * * * * *", "@reboot", "@every 5m", "60 * * * *", "* 24 * * *"),
        *("* * 0 * *", "* * 32 * *", "* * * 0 *", "* * * 13 *", "* * * * 8", "*/0 * * * *"),
        *("5-1 * * * *", "1- * * * *", "1,,2 * * * *", "a * * * *", "jan * * * *", "* * * foo *"),
        *("٣ * * * *", "+1 * * * *", "1_0 * * * *", "* * * * L", "*-5 * * * *", "* *\t* * *"),
        *("* * * * *\n", "*/100 * * * *"),
    ],
)
def test_anything_else_is_refused_with_the_field_that_is_wrong(text: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        read_cron(text)
    assert refusal.value.facts["field"] == "cron"


def test_a_text_without_end_is_not_looked_at() -> None:
    with pytest.raises(InvalidRequest, match=str(MOST_CHARACTERS)):
        read_cron("0," * MOST_CHARACTERS + "0 * * * *")
