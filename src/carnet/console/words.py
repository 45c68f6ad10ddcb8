"""How values are written in pages: durations, moments, ids, links."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from carnet.console.api import segment

MOST_TEXT: Final = 20_000  # characters of one text that a page shows; the whole is in its twin
_TWIN: Final = ".json"
_SHORT: Final = 24  # characters of an id that are shown where there is little room


_SECOND: Final = 1_000_000


def seconds(micros: int | None) -> str:
    """How long something took."""
    if micros is None:
        return "–"
    if micros < _SECOND:
        return f"{micros / 1000:.0f} ms"
    if micros < 60 * _SECOND:
        return f"{micros / _SECOND:.2f} s"
    minutes, rest = divmod(micros // _SECOND, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def moment(text: str | None) -> str:
    """A moment, to the second, in UTC; the page's script writes how long ago that is."""
    return "–" if text is None else f"{text[:10]} {text[11:19]}"


def short(text: str) -> str:
    """An id by its two ends."""
    return text if len(text) <= _SHORT else f"{text[:12]}…{text[-10:]}"


def run_link(run: str) -> str:
    """Where the page of a run is; one whose id ends like a twin is not taken for one."""
    path = segment(run)
    if path.endswith(_TWIN):
        path = path.removesuffix(_TWIN) + "%2Ejson"
    return f"/console/runs/{path}"


def cut(text: str) -> str:
    """As much of a text as a page shows."""
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]} …"


def whole(value: Any) -> str:
    """A value as indented JSON, all of it."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def pretty(value: Any) -> str:
    """A value as indented JSON, as much of it as a page shows."""
    return cut(whole(value))


def line(value: Any) -> str:
    """A value in one line, as JSON."""
    return cut(msgspec.json.encode(value).decode())


FILTERS: Final[dict[str, Callable[..., str]]] = {
    "seconds": seconds,
    "moment": moment,
    "short": short,
    "run_link": run_link,
    "cut": cut,
    "whole": whole,
    "pretty": pretty,
    "line": line,
    "segment": segment,
}
