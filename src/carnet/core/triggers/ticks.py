"""The moments at which a schedule is due, in the time zone of its owner.

Moments are whole seconds since 1970 in UTC; a zone is a `tzinfo`, which knows its own history.

Law 1. A time that does not exist, since clocks were put forward over it, is due once: at the first
       moment that exists again. Several that fall into one such gap are one.
Law 2. A time that comes twice, since clocks were put back, is due once: the first time.
Law 3. An expression that names no hour (`*/5 * * * *`, `@hourly`) is about the time that passes: it
       is due whenever clocks show one of its minutes, twice if they do so twice, and never if not.
Law 4. Ticks grow strictly, and asking for the next one costs a bounded amount of work: where none
       comes within `MOST_YEARS` there is none.
Law 5. What was missed is decided by three words: `skip` fires nothing that is late, `last` the
       latest one alone, `all` each of them, the newest `MOST_MISSED` at the most. Of what is older
       than a year the first one alone is known, and only where nothing has come since.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import islice, product
from typing import Final, Literal

from msgspec import Struct

from carnet.core.triggers.cron import Cron

Missed = Literal["skip", "last", "all"]

MISSED: Final[tuple[Missed, ...]] = ("skip", "last", "all")
MOST_YEARS: Final = 60  # 29 February on a Sunday comes every 28 years, and once after 40
MOST_MISSED: Final = 100
LATE_SECONDS: Final = 60  # a tick that is fired within this was not missed

_HOUR: Final = 3600
_DAY: Final = 24 * _HOUR
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST: Final = 250_000_000_000  # in the year 9892: dates end soon after
_PUT_BACK: Final = 3 * _HOUR  # the most that clocks are put back at once; forward it may be a day
_LONGEST_DAYS: Final = 366
_AHEAD: Final = 14 * _HOUR  # the most that clocks are ahead of UTC, or behind it
_SPAN: Final = 6 * _HOUR  # ticks are looked for in spans of UTC, one after the other


class Due(Struct, frozen=True):
    """What a schedule is to do now."""

    ticks: tuple[int, ...] = ()  # to be fired, oldest first
    has_missed: bool = False  # whether there were others, which are not
    following: int | None = None  # the first that is still to come


def next_tick(cron: Cron, zone: tzinfo, after: int) -> int | None:
    """The first tick after a moment; None if none comes."""
    return next(_ticks(cron, zone, after), None)


def due_ticks(cron: Cron, zone: tzinfo, missed: Missed, *, first: int, now: int) -> Due:
    """What is to be done about the ticks from `first`, which is one, until now."""
    if first > now:
        return Due(following=first)
    following = next_tick(cron, zone, now)
    most = MOST_MISSED if missed == "all" else 1
    newest = list(islice(_latest(cron, zone, first, now), most + 1))
    is_late = now - newest[0] > LATE_SECONDS
    kept = [] if missed == "skip" and is_late else newest[:most]
    return Due(tuple(reversed(kept)), len(newest) > len(kept), following)


def _ticks(cron: Cron, zone: tzinfo, after: int) -> Iterator[int]:
    """All ticks after a moment, as they come."""
    at = after // _SPAN
    last = min(after + MOST_YEARS * _LONGEST_DAYS * _DAY, _LAST) // _SPAN
    while at <= last:
        dates = _dates(cron, at)
        found = _within(cron, zone, at, dates)
        yield from found[bisect_right(found, after) :]
        at += 1
        if not dates:
            coming = _next_date(cron, _date(at * _SPAN - _AHEAD))
            if coming is None:
                return
            at = max(at, (_midnight(coming) - _AHEAD) // _SPAN)


def _latest(cron: Cron, zone: tzinfo, first: int, now: int) -> Iterator[int]:
    """The ticks from `first`, which is one, until now, newest first."""
    since = max(first, now - _LONGEST_DAYS * _DAY)
    is_known = False
    for at in range(now // _SPAN, since // _SPAN - 1, -1):
        for tick in reversed(_within(cron, zone, at, _dates(cron, at))):
            if first <= tick <= now:
                is_known = True
                yield tick
    if not is_known:
        yield first


def _next_date(cron: Cron, day: date) -> date | None:
    """The first date of an expression from a day on; months without one are passed over."""
    begin, month = day, day.replace(day=1)
    for _ in range(MOST_YEARS * 12):
        following = (month + timedelta(days=32)).replace(day=1)
        if month.month in cron.months:
            for number in range(begin.toordinal(), following.toordinal()):
                if cron.has(date.fromordinal(number)):
                    return date.fromordinal(number)
        begin = month = following
    return None


def _dates(cron: Cron, at: int) -> list[date]:
    """The dates of an expression that clocks may show within a span, wherever they are."""
    start, end = at * _SPAN, (at + 1) * _SPAN
    days = range((start - _AHEAD) // _DAY, (end + _AHEAD) // _DAY + 1)
    return [day for number in days if cron.has(day := _date(number * _DAY))]


def _within(cron: Cron, zone: tzinfo, at: int, dates: Sequence[date]) -> list[int]:
    """The ticks within a span, sorted."""
    start, end = at * _SPAN, (at + 1) * _SPAN
    around = range(start - _PUT_BACK, end + _PUT_BACK + 1, _HOUR)
    offsets = {_offset(zone, moment) for moment in around} if dates else {0}
    least, most = min(offsets), max(offsets)
    found: set[int] = set()
    for day, hour in product(dates, cron.hours):
        begin = _midnight(day) + hour * _HOUR
        if begin + _HOUR - least <= start or begin - most >= end:
            continue
        for minute in cron.minutes:
            local = begin + minute * 60
            if least == most:
                found.add(local - least)
            else:
                found.update(_moments(zone, local, is_every_hour=cron.is_every_hour))
    return sorted(moment for moment in found if start <= moment < end)


def _moments(zone: tzinfo, local: int, *, is_every_hour: bool) -> tuple[int, ...]:
    """When clocks show a time, counted as if it were UTC; or when they are put over it."""
    shown = (_EPOCH + timedelta(seconds=local)).replace(tzinfo=zone)
    first, second = (local - _seconds(shown.replace(fold=fold)) for fold in (0, 1))
    if first + _offset(zone, first) != local:
        return () if is_every_hour else (_gap_end(zone, second, first),)
    return (first, second) if is_every_hour else (first,)


def _gap_end(zone: tzinfo, before: int, after: int) -> int:
    """The moment at which clocks are put forward, between one before it and one after it."""
    offset = _offset(zone, after)
    while after - before > 1:
        middle = (before + after) // 2
        if _offset(zone, middle) == offset:
            after = middle
        else:
            before = middle
    return after


def _offset(zone: tzinfo, moment: int) -> int:
    """By how many seconds clocks are ahead of UTC at a moment."""
    return _seconds((_EPOCH + timedelta(seconds=moment)).astimezone(zone))


def _seconds(shown: datetime) -> int:
    offset = shown.utcoffset()
    return 0 if offset is None else offset // timedelta(seconds=1)


def _date(moment: int) -> date:
    return _EPOCH.date() + timedelta(days=moment // _DAY)


def _midnight(day: date) -> int:
    return (day - _EPOCH.date()).days * _DAY
