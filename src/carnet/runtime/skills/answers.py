"""Whether an answer is one that was asked for: one of the options, and of the shape of the schema.

The schema was written by whoever asks, perhaps an agent elsewhere, and a check holds everybody up
while it lasts. So its work is bounded before it begins.

Law 1. What a schema makes of one place of a value is counted first, with all that its references
       lead to. One that leads back to itself, or to more than `MOST_WEIGHT` places, is not compared
       with: whoever asked looks at the answer itself, as at any input.
Law 2. The longer a value, the less a schema may make of each of its places: `MOST_WORK`. What is
       longer is refused.
Law 3. Nothing is fetched, and every pattern takes linear time.
"""

from typing import Any, Final

import msgspec

from carnet.core.messages.interrupt import PAYMENT, Interrupt, Resolution
from carnet.errors import InvalidRequest
from carnet.runtime.skills.schemas import foreign

MOST_WEIGHT: Final = 2000  # places of a schema, each as often as a reference leads there
MOST_WORK: Final = 2_000_000  # those, times the bytes of a value
MOST_PATTERN: Final = 1024  # characters
MOST_COMPILED: Final = 1 << 16  # bytes of a pattern
PATTERN_WEIGHT: Final = 64  # places

# Words by which a schema means another place than it seems to, or looks at a place repeatedly.
_NAMES: Final = frozenset(
    {"$id", "id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$recursiveAnchor"}
)
_REPEATED: Final = frozenset({"unevaluatedItems", "unevaluatedProperties"})


def check_answer(asked: Interrupt, resolution: Resolution) -> None:
    """Refuse a value that is not among what was asked for: `InvalidRequest`."""
    if not resolution.accepted:
        return
    _check_kind(asked, resolution.value)
    if asked.options and resolution.value not in asked.options:
        raise InvalidRequest("value", "must be one of the options")
    if asked.schema is not None and not _fits(asked.schema, resolution.value):
        raise InvalidRequest("value", "does not fit the schema of what is asked for")


def _check_kind(asked: Interrupt, value: object) -> None:
    """Refuse a value where none is asked for, and arguments that are none."""
    if value is None or asked.options or asked.schema is not None:
        return
    if asked.kind == PAYMENT and (asked.amount is not None or not isinstance(value, dict)):
        raise InvalidRequest("value", "is not asked for: a payment is agreed to as it stands")
    if "arguments" in (asked.more or {}) and not isinstance(value, dict):
        raise InvalidRequest("value", "must be the arguments, as an object")


def _fits(schema: dict[str, Any], value: object) -> bool:
    """Whether a value is what a schema of somebody else's asks for; also if nobody can tell."""
    try:
        weight = _Scale(schema).weigh(schema)
        fits = foreign(schema, most_bytes=MOST_COMPILED)
    except (_Unbounded, RecursionError, ValueError):
        return True  # nobody can answer by it
    if weight * len(msgspec.json.encode(value)) > MOST_WORK:
        raise InvalidRequest("value", "is too long for what is asked for")
    return fits(value)


class _Unbounded(Exception):
    """Nobody knows how much work a schema makes, or it is too much."""


class _Scale:
    """Counts the places of one schema."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._known: dict[str, int] = {}  # by the reference that leads there
        self._open: set[str] = set()  # those that are being followed

    def weigh(self, node: object) -> int:
        """How many places there are from this one on."""
        if isinstance(node, list):
            weight = 1 + sum(map(self.weigh, node))
        elif isinstance(node, dict):
            weight = 1 + sum(self._weigh_member(name, value) for name, value in node.items())
        else:
            weight = 1
        if weight > MOST_WEIGHT:
            raise _Unbounded
        return weight

    def _weigh_member(self, name: str, value: object) -> int:
        if name in _REPEATED or (name in _NAMES and isinstance(value, str)):
            raise _Unbounded
        if name == "patternProperties" and isinstance(value, dict):
            return self.weigh(value) + sum(map(_of_pattern, value))
        if not isinstance(value, str):
            return self.weigh(value)
        if name == "$ref":
            return self._follow(value)
        return _of_pattern(value) if name == "pattern" else 1

    def _follow(self, reference: str) -> int:
        if reference in self._open:  # it leads back to itself
            raise _Unbounded
        if reference not in self._known:
            self._open.add(reference)
            self._known[reference] = self.weigh(self._find(reference))
            self._open.discard(reference)
        return self._known[reference]

    def _find(self, reference: str) -> object:
        if reference == "#":
            return self._schema
        place: object = self._schema
        start, *steps = reference.split("/")
        if start != "#" or "%" in reference:
            raise _Unbounded
        for step in steps:
            name = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(place, dict) or name not in place:
                raise _Unbounded
            place = place[name]
        return place


def _of_pattern(pattern: str) -> int:
    if len(pattern) > MOST_PATTERN:
        raise _Unbounded
    return PATTERN_WEIGHT
