"""A violated schema in words of ours: which field, which constraint.

Law. The value is never repeated, whatever the schema says about it; a name that the caller chose is
shown only if it is short and plain.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeGuard

from msgspec import Struct

from carnet.wire.grammar import json

ROOT = "payload"
MAX_SHOWN = 200  # characters of what a schema says

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_$-]{1,64}", re.ASCII)
_HIDDEN_NAME = "(unprintable)"
_MOST_SHOWN = 500  # values of a payload that are looked at again, to say what is wrong


class Violation(Struct, frozen=True):
    """The first thing that is wrong: `Field 'FIELD' CONSTRAINT`."""

    field: str
    constraint: str


class ViolationKind(Protocol):
    """What was violated, as the validator tells it."""

    def as_dict(self) -> dict[str, Any]:
        """The limit and whatever else belongs to it."""
        ...


class Failure(Protocol):
    """One error of the validator."""

    @property
    def kind(self) -> ViolationKind:
        """What was violated."""
        ...

    @property
    def schema_path(self) -> Sequence[str | int]:
        """By which part of the schema."""
        ...

    @property
    def instance_path(self) -> Sequence[str | int]:
        """Where, from the outermost value."""
        ...


def describe(failure: Failure, *, is_whole: bool = True) -> Violation:
    """Say what failed. Of a payload that is not whole nothing is said to be missing."""
    failure = _nearest(failure)
    name, facts = _name_and_facts(failure)
    if not is_whole and name in _MISSES:
        return SOMEWHERE
    path = list(failure.instance_path)
    if name in _BLAMES:
        path.append(_blamed(facts))
    elif name == "FalseSchema" and list(failure.schema_path[-1:]) == ["additionalProperties"]:
        return Violation(field_name(path), "may have no properties (additionalProperties)")
    return Violation(field_name(path), _WORDS.get(name, _other)(facts))


def clip(value: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The beginning of a payload, and whether that is all of it."""
    room = _MOST_SHOWN

    def part(of: Any) -> Any:
        nonlocal room
        room -= 1
        if isinstance(of, dict):
            return {name: part(each) for name, each in of.items() if room > 0}
        if isinstance(of, list):
            return [part(each) for each in of if room > 0]
        return of

    return part(value), room > 0


def field_name(path: Sequence[str | int]) -> str:
    """A path within the payload as people write it: `lines[0].sku`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step if _PLAIN_NAME.fullmatch(step) else _HIDDEN_NAME}"
    return text.removeprefix(".") or ROOT


def _name_and_facts(failure: Failure) -> tuple[str, dict[str, Any]]:
    return type(failure.kind).__name__, failure.kind.as_dict()


def _nearest(failure: Failure) -> Failure:
    """Of a choice that nothing fits, the failure of the one form that was plainly meant.

    `None or a text of at most ten characters` is such a choice: a longer text was meant as text.
    """
    while True:
        name, facts = _name_and_facts(failure)
        if name not in {"AnyOf", "OneOfNotValid"}:
            return failure
        meant = [errors[0] for errors in facts["context"] if not _is_other_form(errors, failure)]
        if len(meant) != 1:
            return failure
        failure = meant[0]


def _is_other_form(errors: Sequence[Failure], choice: Failure) -> bool:
    """Whether this form of a choice was not meant: the value is of another type altogether."""
    return not errors or any(
        type(error.kind).__name__ in {"Type", "Constant", "Enum"}
        and list(error.instance_path) == list(choice.instance_path)
        for error in errors
    )


def _blamed(facts: dict[str, Any]) -> str:
    """The property that is missing, or is there and must not be."""
    if "property" in facts:
        return str(facts["property"])
    return str(next(iter(facts["unexpected"]), ""))


def _limited(words: str) -> Callable[[dict[str, Any]], str]:
    return lambda facts: words.format(limit=facts["limit"])


def _message(words: str) -> Callable[[dict[str, Any]], str]:
    return lambda _: words


def _is_short(text: object) -> TypeGuard[str]:
    return isinstance(text, str) and len(text) <= MAX_SHOWN


def _one_of(facts: dict[str, Any]) -> str:
    options = ", ".join(json.write_text(option) for option in facts["options"])
    return f"must be one of {options}" if _is_short(options) else "is not one of the enum's values"


def _constant(facts: dict[str, Any]) -> str:
    expected = json.write_text(facts["expected_value"])
    return f"must be {expected}" if _is_short(expected) else "is not the const that it must be"


def _pattern(facts: dict[str, Any]) -> str:
    pattern = facts.get("pattern")
    return f"does not match pattern {pattern}" if _is_short(pattern) else "does not match pattern"


def _types(facts: dict[str, Any]) -> str:
    return "must be of type " + " or ".join(sorted(facts["types"]))


def _other(_: dict[str, Any]) -> str:
    return "does not fit its schema"


SOMEWHERE: Final = Violation(ROOT, _other({}))

# Those that a part of a payload may violate where the whole does not.
_MISSES: Final = {"Required", "MinItems", "MinProperties", "Contains", "AnyOf", "OneOfNotValid"}

# Those whose field is a property of the place they name.
_BLAMES: Final = {"Required", "AdditionalProperties", "UnevaluatedProperties"}

_WORDS: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "MaxLength": _limited("exceeds maxLength of {limit} characters"),
    "MinLength": _limited("is below minLength of {limit} characters"),
    "Pattern": _pattern,
    "Format": lambda facts: f"is not of format {facts['format']}",
    "Maximum": _limited("exceeds maximum of {limit}"),
    "Minimum": _limited("is below minimum of {limit}"),
    "ExclusiveMaximum": _limited("must be less than exclusiveMaximum of {limit}"),
    "ExclusiveMinimum": _limited("must be more than exclusiveMinimum of {limit}"),
    "MultipleOf": lambda facts: f"is not a multipleOf {facts['multiple_of']}",
    "Type": _types,
    "Enum": _one_of,
    "Constant": _constant,
    "Required": _message("is required"),
    "AdditionalProperties": _message("is not allowed (additionalProperties)"),
    "UnevaluatedProperties": _message("is not allowed (unevaluatedProperties)"),
    "PropertyNames": _message("has a property whose name is not allowed (propertyNames)"),
    "MaxProperties": _limited("exceeds maxProperties of {limit}"),
    "MinProperties": _limited("is below minProperties of {limit}"),
    "MaxItems": _limited("exceeds maxItems of {limit}"),
    "MinItems": _limited("is below minItems of {limit}"),
    "AdditionalItems": _limited("exceeds the {limit} items that are allowed"),
    "UnevaluatedItems": _message("has items that are not allowed (unevaluatedItems)"),
    "UniqueItems": _message("has equal items (uniqueItems)"),
    "Contains": _message("does not contain what it must (contains)"),
    "AnyOf": _message("has none of the forms that are allowed (anyOf)"),
    "OneOfNotValid": _message("has none of the forms that are allowed (oneOf)"),
    "OneOfMultipleValid": _message("has more than one of the forms that are allowed (oneOf)"),
    "Not": _message("has a form that is not allowed (not)"),
    "FalseSchema": _message("is not allowed"),
    "ContentEncoding": lambda facts: f"is not of contentEncoding {facts['content_encoding']}",
    "ContentMediaType": lambda facts: f"is not of contentMediaType {facts['content_media_type']}",
}
