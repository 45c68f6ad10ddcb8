"""Times and durations as people read them; nothing here asks what time it is."""

import re
from typing import Final

from carnet.errors import UsageInvalid
from carnet.wire.grammar.times import micros_of, when

SECOND: Final = 1_000_000  # the store counts microseconds
DAY: Final = 86_400

_SPAN: Final = re.compile(r"([1-9][0-9]{0,5})([smhd])", re.ASCII)
_RATE: Final = re.compile(r"([1-9][0-9]{0,8})/(s|min|h)", re.ASCII)
_UNITS: Final = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": DAY}


def short(moment: str | None) -> str:
    """A time of a page, without its fraction and zone, for a column."""
    return moment[:19].replace("T", " ") if moment else "-"


def until(moment: str, now: int) -> str:
    """When something ends, and how long that is from now, in microseconds."""
    ends = micros_of(moment)
    seconds = 0 if ends is None else (ends - now) // SECOND
    return f"{short(moment)} ({write_span(seconds)} left)" if seconds > 0 else short(moment)


def read_span(text: str, *, option: str, never: bool = True) -> int | None:
    """`30d`, `12h`, `45m`, `90s` as seconds; `never` is None, where it is allowed."""
    if never and text == "never":
        return None
    match = _SPAN.fullmatch(text)
    if match is None:
        raise UsageInvalid(
            reason=f"{option} {text} is no length of time.",
            fix=f"Write a number and a unit, such as 30d, 12h or 45m{'; or never' * never}.",
        )
    return int(match[1]) * _UNITS[match[2]]


def read_since(text: str, now: int) -> str:
    """`2h` before now, or a moment, as pages write it; `now` is in microseconds."""
    if match := _SPAN.fullmatch(text):
        micros: int | None = max(0, now - int(match[1]) * _UNITS[match[2]] * SECOND)
    else:
        micros = micros_of(text)
    moment = None if micros is None else when(micros)
    if moment is None:
        raise UsageInvalid(
            reason=f"--since {text} is no moment and no length of time.",
            fix="Write how long ago it was, such as 2h or 7d, or when: '2026-11-15 09:00' (UTC).",
        )
    return moment


def read_rate(text: str) -> tuple[int, int]:
    """`60/min` as (calls, seconds)."""
    match = _RATE.fullmatch(text)
    if match is None:
        raise UsageInvalid(
            reason=f"--rate {text} is no rate.",
            fix="Write calls per second, minute or hour: 5/s, 60/min or 1000/h.",
        )
    return int(match[1]), _UNITS[match[2]]


def write_rate(calls: int, seconds: int) -> str:
    """The other way round."""
    unit = {1: "s", 60: "min", 3600: "h"}.get(seconds)
    return f"{calls}/{unit}" if unit else f"{calls} in {seconds} s"


def write_span(seconds: int) -> str:
    """How long it is to wait: `45 s`, `12 min`, `5 h 3 min`; a started minute is a whole one."""
    if seconds < _UNITS["min"]:
        return f"{seconds} s"
    hours, minutes = divmod(-(-seconds // 60), 60)
    parts = [f"{hours} h"] * bool(hours) + [f"{minutes} min"] * bool(minutes)
    return " ".join(parts)
