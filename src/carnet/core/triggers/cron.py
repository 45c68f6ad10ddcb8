"""When a schedule is due: five fields of cron, read strictly.

    minute hour day-of-month month day-of-week        30 7 * * mon-fri
    @hourly @daily @midnight @weekly @monthly @yearly @annually

A field is `*`, a number, a range `a-b`, each with a step `/n`, or a list of these with commas.
Months and days of the week may be named by their first three letters; 0 and 7 are both Sunday.

Law 1. Where both a day of the month and a day of the week are named, either of them is enough; if
       one of the two begins with `*`, both must hold. That is what cron has always done.
Law 2. A date that never comes (30 February) is refused when it is read, not waited for.
Law 3. What is read costs a bounded amount of work, whoever wrote it.
"""

import re
from collections.abc import Mapping
from datetime import date
from typing import Final

from msgspec import Struct

from carnet.errors import InvalidRequest

FIELD: Final = "cron"
MOST_CHARACTERS: Final = 200

SHORTCUTS: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}
_DAYS: Final = {
    name: number for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))
}
_SUNDAY: Final = 7  # its other number
_PART: Final = re.compile(
    r"(?:(?P<all>\*)|(?P<low>[0-9]{1,2}|[a-z]{3})(?:-(?P<high>[0-9]{1,2}|[a-z]{3}))?)"
    r"(?:/(?P<step>[0-9]{1,2}))?",
    re.ASCII,
)
_LENGTHS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)  # the longest that each can be


class _Field(Struct, frozen=True):
    """What one of the five may be."""

    word: str
    low: int
    high: int
    names: Mapping[str, int]


_FIELDS: Final = (
    _Field("minute", 0, 59, {}),
    _Field("hour", 0, 23, {}),
    _Field("day of the month", 1, 31, {}),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of the week", 0, _SUNDAY, _DAYS),
)


class Cron(Struct, frozen=True, kw_only=True):
    """An expression that was read; every set of it is sorted and holds something."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # 0 is Sunday
    either: bool  # whether one of the two kinds of days is enough

    @property
    def is_every_hour(self) -> bool:
        """Whether it names no hour: then it is about what has passed, not about a clock's hands."""
        return len(self.hours) == 24  # noqa: PLR2004  of a day

    def has(self, day: date) -> bool:
        """Whether a date is one of its dates."""
        if day.month not in self.months:
            return False
        by_day, by_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return (by_day or by_week) if self.either else (by_day and by_week)


def read_cron(text: str) -> Cron:
    """The expression that a text is, else a refusal that says which field is wrong."""
    if len(text) > MOST_CHARACTERS:
        raise InvalidRequest(FIELD, f"must have at most {MOST_CHARACTERS} characters")
    words = SHORTCUTS.get(text.strip(" ").lower(), text).lower().split(" ")
    fields = [word for word in words if word]
    if len(fields) != len(_FIELDS):
        names = ", ".join(SHORTCUTS)
        raise InvalidRequest(
            FIELD, f"must have five fields, as in '30 7 * * mon-fri', or be {names}"
        )
    minutes, hours, days, months, weekdays = map(_read, fields, _FIELDS)
    cron = Cron(
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        days=days,
        months=months,
        weekdays=frozenset(day % _SUNDAY for day in weekdays),
        either=not fields[2].startswith("*") and not fields[4].startswith("*"),
    )
    if not cron.either and not any(min(days) <= _LENGTHS[month - 1] for month in months):
        raise InvalidRequest(FIELD, "names a date that never comes")
    return cron


def _read(text: str, field: _Field) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise _wrong(field)
        found.update(_numbers(match, field))
    return frozenset(found)


def _numbers(match: re.Match[str], field: _Field) -> range:
    """What one part of a field stands for."""
    low, high, step = match["low"], match["high"], match["step"]
    if match["all"]:
        first, last = field.low, field.high
        if field.high == _SUNDAY:  # once a week is enough
            last = _SUNDAY - 1
    else:
        first = _number(low, field)
        # `a/n` goes on to the end of the field, as in every cron.
        last = _number(high, field) if high else field.high if step else first
    stride = int(step or 1)
    if first > last or not stride:
        raise _wrong(field)
    return range(first, last + 1, stride)


def _number(text: str, field: _Field) -> int:
    number = int(text) if text.isdigit() else field.names.get(text, -1)
    if not field.low <= number <= field.high:
        raise _wrong(field)
    return number


def _wrong(field: _Field) -> InvalidRequest:
    named = f", or {next(iter(field.names))}..." if field.names else ""
    return InvalidRequest(
        FIELD,
        f"has a {field.word} that is no list of *, {field.low}-{field.high}{named}, each perhaps"
        " with a step such as /5",
    )
