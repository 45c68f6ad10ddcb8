"""The shape of what goes into a skill or comes out of it: a Python type, and its JSON Schema.

Dataclasses, msgspec Structs, TypedDicts, attrs classes and everything that is built of them are
read by msgspec; a class that describes itself the way pydantic's models do is asked itself. A plain
dictionary is a JSON Schema, and what it describes stays a dictionary.

Law 1. What `write` gives is plain JSON, and fits the schema if the value is of the type.
Law 2. What does not convert is told by its place, never by its value.
"""

import dataclasses
import re
import sys
from typing import Any, Final, Protocol

import msgspec

from carnet.errors import SchemaInvalid
from carnet.runtime.skills.violation import field_name
from carnet.wire.grammar.json import MAX_INTEGER

OBJECT: Final[dict[str, Any]] = {"type": "object"}
RESULT = "result"  # where a result that is no object stands

_PLACE = re.compile(r" - at `\$([^`]*)`\Z")
_MISSING = re.compile(r"Object missing required field `([^`]*)`")
# What the type asks for, in words of its own; what was found instead is left out.
_EXPECTED = re.compile(r"Expected ((?:(?!, got | - at ).){1,200})")
_LOOKS_AROUND = re.compile(r"\(\?(?:[=!]|<[=!])")
_STEP = re.compile(r"\[(\d+)\]|\.?([^.\[\]]+)")


class Shape(Protocol):
    """How values of one kind are described, read and written."""

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of an object."""
        ...

    @property
    def is_wrapped(self) -> bool:
        """Whether the type is no object, so that its value stands under `result`."""
        ...

    def read(self, payload: dict[str, Any]) -> Any:
        """The value that a payload spells. Raises SchemaInvalid."""
        ...

    def write(self, value: object) -> dict[str, Any]:
        """The value as a JSON object."""
        ...

    def is_one(self, value: object) -> bool:
        """Whether the value is plainly an instance, so that a generator that yields it is done."""
        ...


def plain(value: object) -> Any:
    """Any value as plain JSON: what the journal keeps and the wire carries."""
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=_dumped))


def as_object(value: object) -> dict[str, Any]:
    """Any value as a JSON object; what is none stands under `result`."""
    given = plain(value)
    if isinstance(given, dict):
        return given
    return {} if given is None else {RESULT: given}


def shape_of(kind: Any, *, returned: bool = False) -> Shape:
    """The shape of a type, a JSON Schema, or None for whatever may come.

    Raises TypeError for a type that cannot be described.
    """
    if kind in (None, type(None), Any, object):
        return Free(OBJECT)
    if isinstance(kind, dict):
        return Free(kind)
    if is_model(kind):
        return Modelled(kind, _linear(kind.model_json_schema(mode=_mode(returned))))
    try:
        return Typed(kind, msgspec.json.schema(kind, schema_hook=_anything))
    except TypeError:
        adapter = _adapter(kind)
        if adapter is None:
            raise
    return Adapted(kind, adapter, _linear(adapter.json_schema(mode=_mode(returned))))


def _anything(kind: type) -> dict[str, Any]:
    """The schema of `object`, which people write for Any; no other type is described for them."""
    if kind is object:
        return {"description": "anything"}  # an empty schema is none to msgspec
    raise NotImplementedError


def is_model(kind: object) -> bool:
    """Whether a class describes, validates and dumps itself, as pydantic's models do."""
    names = ("model_json_schema", "model_validate_json")
    return isinstance(kind, type) and all(hasattr(kind, name) for name in names)


def is_object(schema: dict[str, Any], definitions: dict[str, Any] | None = None) -> bool:
    """Whether whatever fits the schema is an object."""
    definitions = schema.get("$defs", {}) if definitions is None else definitions
    if "$ref" in schema:
        followed: dict[str, Any] = definitions.get(schema["$ref"].removeprefix("#/$defs/"), {})
        return bool(followed.get("type") == "object")
    forms = schema.get("anyOf") or schema.get("oneOf")
    if forms:
        return all(is_object(form, definitions) for form in forms)
    return schema.get("type") == "object"


class Free:
    """Whatever fits a JSON Schema, as a dictionary."""

    is_wrapped = False

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema

    def read(self, payload: dict[str, Any]) -> Any:
        return payload

    def write(self, value: object) -> dict[str, Any]:
        return as_object(value)

    def is_one(self, value: object) -> bool:  # noqa: ARG002  a dictionary may be a chunk as well
        return False


class Typed:
    """A type that msgspec knows."""

    def __init__(self, kind: Any, schema: dict[str, Any]) -> None:
        self._kind = kind
        described = _inlined(schema)
        self.is_wrapped = not is_object(described)
        self.schema = _wrapped(described) if self.is_wrapped else {"type": "object"} | described

    def read(self, payload: dict[str, Any]) -> Any:
        given = payload.get(RESULT) if self.is_wrapped else payload
        try:
            return self._convert(given)
        except ValueError as error:
            refusal = self._refusal(error)
        try:  # JSON Schema has one kind of number: 3.0 is an integer
            return self._convert(_whole_numbers(given))
        except ValueError:
            raise refusal from None

    def _convert(self, given: object) -> Any:
        return msgspec.convert(given, self._kind, str_keys=True)

    def _refusal(self, error: ValueError) -> SchemaInvalid:
        found = _PLACE.search(str(error))
        steps = _STEP.findall(found[1]) if found else []
        path = [int(number) if number else name for number, name in steps]
        missing = _MISSING.match(str(error))
        if missing:
            return SchemaInvalid(field_name([*path, missing[1]]), "is required")
        expected = _EXPECTED.match(str(error))
        what = f" ({expected[1].replace('`', '')})" if expected else ""
        return SchemaInvalid(field_name(path), f"is not a value of its type{what}")

    def write(self, value: object) -> dict[str, Any]:
        given = self._dump(value)
        is_as_promised = isinstance(given, dict) and not self.is_wrapped
        return given if is_as_promised else {RESULT: given}

    def _dump(self, value: object) -> Any:
        return plain(value)

    def is_one(self, value: object) -> bool:
        kind = self._kind
        return isinstance(kind, type) and _has_fields(kind) and isinstance(value, kind)


class Modelled(Typed):
    """A class that reads and dumps itself, as pydantic's models do."""

    def _convert(self, given: object) -> Any:
        # As JSON, so that one that is strict takes the text of a date for a date.
        return self._kind.model_validate_json(msgspec.json.encode(given))

    def _refusal(self, error: ValueError) -> SchemaInvalid:
        return _schema_error(error)


class Adapted(Typed):
    """A type with such classes inside, for which their library has an adapter."""

    def __init__(self, kind: Any, adapter: Any, schema: dict[str, Any]) -> None:
        super().__init__(kind, schema)
        self._adapter = adapter

    def _convert(self, given: object) -> Any:
        return self._adapter.validate_json(msgspec.json.encode(given))

    def _refusal(self, error: ValueError) -> SchemaInvalid:
        return _schema_error(error)

    def _dump(self, value: object) -> Any:
        return plain(self._adapter.dump_python(value, mode="json", by_alias=True))


def _whole_numbers(value: Any) -> Any:
    """The same with every number that has no fraction as an integer, as far as it is exact."""
    if isinstance(value, dict):
        return {name: _whole_numbers(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(each) for each in value]
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) <= MAX_INTEGER
    return int(value) if is_whole else value


def _schema_error(error: ValueError) -> SchemaInvalid:
    """What a model says about a value: the place and the kind of the mistake, nothing else."""
    try:
        first = error.errors()[0]  # type: ignore[attr-defined]  # pydantic's ValidationError
        path, word = list(first["loc"]), str(first["type"])
    except (AttributeError, LookupError, TypeError):
        path, word = [], "value_error"
    return SchemaInvalid(field_name(path), f"is not a value of its type ({word})")


def _dumped(value: object) -> object:
    """What msgspec does not know: a model, or something without a JSON form."""
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json", by_alias=True)
    raise TypeError(f"a {type(value).__name__} has no JSON form")


def _has_fields(kind: type) -> bool:
    described = dataclasses.is_dataclass(kind) or hasattr(kind, "__attrs_attrs__")
    return described or issubclass(kind, msgspec.Struct) or is_model(kind)


def _adapter(kind: Any) -> Any:
    """Pydantic's adapter, where somebody has imported pydantic; Carnet itself does not need it."""
    library = sys.modules.get("pydantic")
    if library is None:
        return None
    try:
        return library.TypeAdapter(kind)
    except Exception as error:  # noqa: BLE001  its own kinds, none of which we can name
        raise TypeError(f"{kind!r} cannot be described: {error}") from None


def _mode(returned: bool) -> str:  # noqa: FBT001  the one thing it asks
    return "serialization" if returned else "validation"


def _linear(schema: Any) -> Any:
    """A model's own schema without patterns that look around themselves, as those of decimals do.

    They cannot be compared in linear time, and the model judges the value itself.
    """
    if isinstance(schema, list):
        return [_linear(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    pattern = schema.get("pattern")
    looks_around = isinstance(pattern, str) and _LOOKS_AROUND.search(pattern) is not None
    return {
        key: _linear(value)
        for key, value in schema.items()
        if not (looks_around and key == "pattern")
    }


def _inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with its outermost `$ref` followed, so that a card shows an object at once."""
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    definitions: dict[str, Any] = schema.get("$defs", {})
    if name not in definitions:
        return schema
    rest = {key: value for key, value in definitions.items() if key != name}
    outermost = dict(definitions[name])
    if f'"#/$defs/{name}"' in msgspec.json.encode(definitions).decode():
        rest = definitions  # it holds itself
    return outermost | ({"$defs": rest} if rest else {})


def _wrapped(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a value that is no object, under `result`."""
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    outer: dict[str, Any] = {
        "type": "object",
        "properties": {RESULT: inner},
        "required": [RESULT],
    }
    return outer | ({"$defs": schema["$defs"]} if "$defs" in schema else {})
