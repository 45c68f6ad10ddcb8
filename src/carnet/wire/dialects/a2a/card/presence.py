"""Which members of a card a signature covers: those that Protocol Buffers would write.

The protocol signs the canonical form of a card (RFC 8785) without its `signatures`, and without
members that have their default value unless they must be there or were set on purpose. Where its
SDKs do otherwise, their form is known too.

Law 1. `proto` keeps the members of the specification alone: a required one as it stands, an
       optional one that was set, any other only where it is not its default. A null was not set.
Law 2. `sdk` also leaves out whatever is empty, however deep, as the SDKs for Python and JavaScript
       do with what they sign and verify.
Law 3. `whole` is the document as it stands: it covers the members of older versions too.
Law 4. A card of ours has nothing empty in it, so that the first two are one text.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from carnet.wire.grammar import jcs, json

Form = Literal["proto", "sdk", "whole"]
Members = dict[str, Any]

_SIGNATURES: Final = "signatures"


class NotCovered(ValueError):
    """No signature can cover the card: a member has not the type that it must have."""


class _Field:
    """How one member is written, and when it is left out."""

    __slots__ = ("is_kept", "write")

    def __init__(self, write: Callable[[Any], Any], *, is_kept: bool = False) -> None:
        """`is_kept` whatever its value: it is required, marked as optional, or a message."""
        self.write = write
        self.is_kept = is_kept


def _scalar(kind: type) -> Callable[[Any], Any]:
    def write(value: Any) -> Any:
        if type(value) is not kind:
            raise NotCovered("a member of the card is of another type than it must be")
        return value

    return write


def _message(fields: Mapping[str, _Field]) -> Callable[[Any], Members]:
    def write(value: Any) -> Members:
        found = _object(value)
        given = {name: found[name] for name in fields if found.get(name) is not None}
        written = {name: fields[name].write(one) for name, one in given.items()}
        return {name: one for name, one in written.items() if one or fields[name].is_kept}

    return write


def _list(each: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    def write(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise NotCovered("a member of the card is no list")
        return [each(one) for one in value]

    return write


def _map(each: Callable[[Any], Any]) -> Callable[[Any], Members]:
    def write(value: Any) -> Members:
        return {key: each(one) for key, one in _object(value).items()}

    return write


def _object(value: Any) -> Members:
    if not isinstance(value, dict):
        raise NotCovered("a member of the card is no object")
    return value


def _one(fields: Mapping[str, _Field]) -> _Field:
    return _Field(_message(fields), is_kept=True)


_text, _flag = _scalar(str), _scalar(bool)
_TEXT, _FLAG = _Field(_text), _Field(_flag)
_MUST, _SET_FLAG = _Field(_text, is_kept=True), _Field(_flag, is_kept=True)
_TEXTS, _MUST_TEXTS = _Field(_list(_text)), _Field(_list(_text), is_kept=True)
_STRUCT = _Field(_object, is_kept=True)
_SCOPES = _Field(_map(_text), is_kept=True)
_NEEDS = _Field(_list(_message({"schemes": _Field(_map(_message({"list": _TEXTS})))})))

_FLOWS: Final = {
    "authorizationCode": {
        "authorizationUrl": _MUST,
        "tokenUrl": _MUST,
        "refreshUrl": _TEXT,
        "scopes": _SCOPES,
        "pkceRequired": _FLAG,
    },
    "clientCredentials": {"tokenUrl": _MUST, "refreshUrl": _TEXT, "scopes": _SCOPES},
    "implicit": {"authorizationUrl": _TEXT, "refreshUrl": _TEXT, "scopes": _Field(_map(_text))},
    "password": {"tokenUrl": _TEXT, "refreshUrl": _TEXT, "scopes": _Field(_map(_text))},
    "deviceCode": {
        "deviceAuthorizationUrl": _MUST,
        "tokenUrl": _MUST,
        "refreshUrl": _TEXT,
        "scopes": _SCOPES,
    },
}
_SCHEMES: Final = {
    "apiKeySecurityScheme": {"description": _TEXT, "location": _MUST, "name": _MUST},
    "httpAuthSecurityScheme": {"description": _TEXT, "scheme": _MUST, "bearerFormat": _TEXT},
    "oauth2SecurityScheme": {
        "description": _TEXT,
        "flows": _one({name: _one(fields) for name, fields in _FLOWS.items()}),
        "oauth2MetadataUrl": _TEXT,
    },
    "openIdConnectSecurityScheme": {"description": _TEXT, "openIdConnectUrl": _MUST},
    "mtlsSecurityScheme": {"description": _TEXT},
}
_SKILL: Final = {
    "id": _MUST,
    "name": _MUST,
    "description": _MUST,
    "tags": _MUST_TEXTS,
    "examples": _TEXTS,
    "inputModes": _TEXTS,
    "outputModes": _TEXTS,
    "securityRequirements": _NEEDS,
}
_EXTENSION: Final = {"uri": _TEXT, "description": _TEXT, "required": _FLAG, "params": _STRUCT}
_CAPABILITIES: Final = {
    "streaming": _SET_FLAG,
    "pushNotifications": _SET_FLAG,
    "extensions": _Field(_list(_message(_EXTENSION))),
    "extendedAgentCard": _SET_FLAG,
}
_INTERFACE: Final = {
    "url": _MUST,
    "protocolBinding": _MUST,
    "tenant": _TEXT,
    "protocolVersion": _MUST,
}
_CARD: Final = _message(
    {
        "name": _MUST,
        "description": _MUST,
        "supportedInterfaces": _Field(_list(_message(_INTERFACE)), is_kept=True),
        "provider": _one({"url": _MUST, "organization": _MUST}),
        "version": _MUST,
        "documentationUrl": _MUST,
        "capabilities": _one(_CAPABILITIES),
        "securitySchemes": _Field(
            _map(_message({name: _one(fields) for name, fields in _SCHEMES.items()}))
        ),
        "securityRequirements": _NEEDS,
        "defaultInputModes": _MUST_TEXTS,
        "defaultOutputModes": _MUST_TEXTS,
        "skills": _Field(_list(_message(_SKILL)), is_kept=True),
        "iconUrl": _MUST,
    }
)


def proto_members(card: Members) -> Members:
    """The members that the specification knows, by its rules of presence."""
    return _CARD(card)


def payload_of(card: Members, form: Form) -> bytes:
    """What a signature of that form covers; NotCovered if there is no such text."""
    try:
        return jcs.canonical(_in_form(card, form), max_levels=json.MAX_LEVELS)
    except jcs.NotCanonical as error:
        raise NotCovered(f"the card has no canonical form: {error}") from None


def _in_form(card: Members, form: Form) -> object:
    if form == "whole":
        return {name: value for name, value in card.items() if name != _SIGNATURES}
    members = proto_members(card)
    return members if form == "proto" else _without_empty(members) or {}


def _without_empty(value: Any) -> Any:
    """The value without what is empty in it; None where nothing is left."""
    if isinstance(value, dict):
        kept = {name: _without_empty(one) for name, one in value.items()}
        return {name: one for name, one in kept.items() if one is not None} or None
    if isinstance(value, list):
        return [one for one in map(_without_empty, value) if one is not None] or None
    return None if value == "" else value
