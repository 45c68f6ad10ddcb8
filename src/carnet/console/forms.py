"""What a form of a page sends, and forms that are made from a JSON Schema.

Law 1. A form is read whole and bounded; a name that stands once may not stand twice.
Law 2. What a form is made from a schema for is judged by whoever takes it. Here a text only becomes
       what the schema says that it is: a number, a mark, a list, or the text itself.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from carnet.errors import InvalidRequest
from carnet.http.exchange import Exchange
from carnet.wire.grammar import json
from carnet.wire.grammar.query import Query, read_query

MOST_BYTES: Final = 512 * 1024  # of a form: a file of a memory, with its signs written out
MOST_FIELDS: Final = 64  # of a schema that are asked for one by one
_LINES: Final = 200  # characters from which a text has room for several lines
_NUMBERS: Final = frozenset({"integer", "number"})

Page = dict[str, Any]


class SentForm:
    """The fields that were sent."""

    def __init__(self, fields: Query) -> None:
        self._fields = fields

    def text(self, name: str) -> str:
        """A field, without the spaces around it; empty where there is none."""
        return self.whole(name).strip()

    def whole(self, name: str) -> str:
        """A field as it was sent, its lines ended as ours are."""
        values = self._fields.get(name, [""])
        if len(values) > 1:
            raise InvalidRequest(name, "must stand once")
        return values[0].replace("\r\n", "\n")

    def all(self, name: str) -> list[str]:
        """The values of a field that may stand several times."""
        return self._fields.get(name, [])

    def page(self, name: str) -> Page | None:
        """A field that holds an object as JSON; None where it is empty."""
        text = self.text(name)
        if not text:
            return None
        try:
            return json.read_object(text.encode())
        except msgspec.DecodeError:
            raise InvalidRequest(name, "must be an object, as JSON") from None


async def read_form(exchange: Exchange) -> SentForm:
    """The form of a request."""
    return SentForm(read_query((await exchange.read(MOST_BYTES)).decode("latin-1")))


# ------------------------------------------------------------------ from a schema


def fields_of(schema: Any) -> list[Page] | None:
    """The fields of a form; None where a schema is none of an object, or has too many."""
    if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict):
        return None
    properties: Page = schema["properties"]
    required = schema.get("required")
    needed = set(required) if isinstance(required, list) else set()
    if len(properties) > MOST_FIELDS:
        return None
    return [_field(name, of, is_needed=name in needed) for name, of in properties.items()]


def _field(name: str, of: Any, *, is_needed: bool) -> Page:
    facts: Page = of if isinstance(of, dict) else {}
    choices, kind = facts.get("enum"), facts.get("type")
    if isinstance(choices, list):
        shape = "choice"
    elif kind == "boolean":
        shape = "mark"
    elif kind in _NUMBERS:
        shape = str(kind)
    elif kind == "string":
        most = facts.get("maxLength", _LINES)
        shape = "line" if isinstance(most, int) and most < _LINES else "text"
    else:
        shape = "json"
    default = facts.get("default")
    return {
        "name": name,
        "title": _words(facts.get("title")) or name,
        "note": _words(facts.get("description")),
        "shape": shape,
        "choices": [_shown(each) for each in choices] if isinstance(choices, list) else [],
        "default": "" if default is None else _shown(default),
        "is_needed": is_needed,
    }


def _words(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def read_fields(form: SentForm, schema: Mapping[str, Any], prefix: str = "field.") -> Page:
    """What a form that was made from a schema says; what was left empty is not there."""
    found: Page = {}
    for field in fields_of(schema) or []:
        name = field["name"]
        text = form.whole(prefix + name)
        if field["shape"] == "mark":
            if text or field["is_needed"]:
                found[name] = bool(text)
        elif text.strip():
            of = schema["properties"][name]
            choices = of.get("enum") if isinstance(of, dict) else None
            found[name] = _value(name, text, field["shape"], choices)
    return found


def _value(name: str, text: str, shape: str, choices: Any) -> Any:
    if shape == "choice":
        return next((each for each in choices if _shown(each) == text), text)
    if shape in {"line", "text"}:
        return text
    try:
        return msgspec.json.decode(text.encode())
    except msgspec.DecodeError:
        what = "a number" if shape in _NUMBERS else "JSON"
        raise InvalidRequest(name, f"must be {what}") from None
