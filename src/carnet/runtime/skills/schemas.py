"""JSON Schemas of skills: compiled once at start, asked at every call.

Law 1. A schema stands for itself: a `$ref` that leads out of it, to the network or to a file, is
       refused at start, and nothing is ever fetched.
Law 2. No payload makes a check slow: every pattern takes linear time. One that cannot, because it
       looks around itself or refers back, is refused at start, and so is one that is too long. What
       is wrong with a large payload is told by its beginning.
Law 3. A refusal names the field and the constraint, never the value.
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import jsonschema_rs

from carnet.core.memo import Memo
from carnet.core.people.identity import Skill
from carnet.errors import AgentFailed, ConfigInvalid, SchemaInvalid
from carnet.runtime.skills.violation import ROOT, SOMEWHERE, Violation, clip, describe

logger = logging.getLogger("carnet.agent")

MAX_PATTERN = 1024  # characters
MAX_COMPILED = 1 << 20  # bytes
MOST_KEPT = 4096  # skills: our own are few, and the names of agents elsewhere have no end

_LINEAR: Final = jsonschema_rs.RegexOptions(size_limit=MAX_COMPILED, dfa_size_limit=MAX_COMPILED)

# ISO 8601, and with a sign: what Python's own negative durations are written as.
_DURATION = re.compile(
    r"[+-]?P(?=[0-9T])(?:[0-9]+W|(?:[0-9]+Y)?(?:[0-9]+M)?(?:[0-9]+D)?"
    r"(?:T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+(?:\.[0-9]+)?S)?)?)",
    re.ASCII,
)


def _is_duration(text: str) -> bool:
    return _DURATION.fullmatch(text) is not None


class _Compiled:
    """The two schemas of a skill."""

    __slots__ = ("given", "returned")

    def __init__(self, key: str, skill: Skill) -> None:
        self.given = _compile(key, skill, "input", skill.input_schema)
        self.returned = _compile(key, skill, "output", skill.output_schema)


class CompiledSchemas:
    """The compiled schemas of every skill that is served here."""

    def __init__(self) -> None:
        """Start with none; each is compiled when its agent is built."""
        self._compiled: Memo[tuple[str, str], tuple[Skill, _Compiled]] = Memo(MOST_KEPT)

    def compile(self, agent: str, skills: Iterable[Skill]) -> None:
        """Compile the schemas of an agent; a bad one is told to the operator by its key."""
        for skill in skills:
            self._of(agent, skill)

    def check_input(self, agent: str, skill: Skill, payload: dict[str, Any]) -> None:
        """Refuse a payload that does not fit: `SchemaInvalid`."""
        violation = _violation(self._of(agent, skill).given, payload)
        if violation is not None:
            raise SchemaInvalid(violation.field, violation.constraint)

    def check_output(self, agent: str, skill: Skill, result: dict[str, Any]) -> None:
        """Refuse what our own agent made; its caller learns only that it failed."""
        violation = _violation(self._of(agent, skill).returned, result)
        if violation is not None:
            logger.error(
                "the result of skill %s does not fit its schema: field '%s' %s",
                skill.id,
                violation.field,
                violation.constraint,
                extra={"agent": agent},
            )
            raise AgentFailed("the result does not fit its schema")

    def __len__(self) -> int:
        """How many skills are kept."""
        return len(self._compiled)

    def _of(self, agent: str, skill: Skill) -> _Compiled:
        known = self._compiled.get((agent, skill.id))
        if known is None or known[0] is not skill:
            found = _Compiled(f"agents.{agent}.target", skill)
            known = self._compiled.keep((agent, skill.id), (skill, found))
        return known[1]


def foreign(schema: dict[str, Any], *, most_bytes: int) -> Callable[[object], bool]:
    """What tells whether a value fits a schema that somebody else wrote: formats are hints.

    `most_bytes` is what a pattern may be compiled to. Raises ValueError for what is no schema.
    """
    linear = jsonschema_rs.RegexOptions(size_limit=most_bytes, dfa_size_limit=16 * most_bytes)
    try:
        checked = jsonschema_rs.validator_for(
            schema, validate_formats=False, pattern_options=linear, offline=True
        )
    except jsonschema_rs.ReferencingError as error:
        raise ValueError(str(error)) from None
    return checked.is_valid


def _compile(key: str, skill: Skill, side: str, schema: dict[str, Any]) -> jsonschema_rs.Validator:
    which = f"the {side} schema of skill '{skill.id}'"
    for pattern in _patterns(schema):
        if len(pattern) > MAX_PATTERN:
            reason = f"{which} has a pattern of more than {MAX_PATTERN} characters"
            raise ConfigInvalid(key=key, reason=reason)
    try:
        return jsonschema_rs.validator_for(
            schema,
            # What we give is written by our own encoder, and a format is a hint to its reader.
            validate_formats=side == "input",
            formats={"duration": _is_duration},
            pattern_options=_LINEAR,
            offline=True,
        )
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        reason = f"{which} is not usable: {getattr(error, 'message', error)}"
        raise ConfigInvalid(key=key, reason=reason) from None


def _patterns(schema: object) -> Iterator[str]:
    """Every regular expression that a schema may hold, wherever it stands."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting.extend(node)
        elif isinstance(node, dict):
            waiting.extend(node.values())
            if isinstance(pattern := node.get("pattern"), str):
                yield pattern
            if isinstance(properties := node.get("patternProperties"), dict):
                yield from properties


def _violation(validator: jsonschema_rs.Validator, value: dict[str, Any]) -> Violation | None:
    try:
        if validator.is_valid(value):
            return None
    except ValueError:  # no JSON at all: only our own agents can bring that about
        return Violation(ROOT, "cannot be checked")
    # To say why takes much longer: of a choice that nothing fits, every failure is told.
    shown, is_whole = clip(value)
    try:
        validator.validate(shown)
    except jsonschema_rs.ValidationError as error:
        return describe(error, is_whole=is_whole)
    return SOMEWHERE
