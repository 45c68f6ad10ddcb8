"""The waterfall: a bar for each hop, as long as it took, on one scale of time.

Law. Places and lengths are thousandths of the whole, so that a page can be drawn at any width.
"""

from collections.abc import Sequence
from typing import Any, Final

from carnet.console.runs.hops import DrawnHop

Page = dict[str, Any]

WIDE: Final = 1000
_LEAST: Final = 4  # thousandths: what took no time is seen as well
MOST_LEVELS: Final = 12  # by which a name is set in


def waterfall(hops: Sequence[DrawnHop], now: int) -> list[Page]:
    """The rows of the picture; `now` ends what has not ended."""
    if not hops:
        return []
    began = min(hop.began for hop in hops)
    ended = max(now if hop.ended is None else hop.ended for hop in hops)
    whole = max(ended - began, 1)

    def place(at: int) -> float:
        return round(max(0, min(at - began, whole)) * WIDE / whole, 1)

    critical = _critical(hops, now)
    return [
        {
            "key": hop.key,
            "turn": hop.turn,
            "agent": hop.agent,
            "organisation": hop.organisation,
            "number": hop.number,
            "level": min(hop.level, MOST_LEVELS),
            "depth": hop.depth,
            "state": hop.state,
            "code": hop.code,
            "cost": hop.cost,
            "attempt": hop.attempt,
            "is_shared": hop.is_shared,
            "is_critical": hop.key in critical,
            "x": min(place(hop.began), WIDE - _LEAST),
            "width": max(place(_end(hop, now)) - place(hop.began), _LEAST),
            "took": _end(hop, now) - hop.began,
            "waits": [
                {"x": place(since), "width": max(place(until or now) - place(since), _LEAST)}
                for since, until in hop.waits
            ],
        }
        for hop in hops
    ]


def _end(hop: DrawnHop, now: int) -> int:
    return max(hop.began, now if hop.ended is None else hop.ended)


def _critical(hops: Sequence[DrawnHop], now: int) -> set[int]:
    """The hops that the end of the run waited for: of each, the one below it that ended last."""
    below: dict[int | None, list[DrawnHop]] = {}
    for hop in hops:
        below.setdefault(hop.above, []).append(hop)
    found: set[int] = set()
    above: int | None = None
    while below.get(above):
        last = max(below[above], key=lambda hop: (_end(hop, now), hop.key))
        found.add(last.key)
        above = last.key
    return found
