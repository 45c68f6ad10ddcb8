"""What a signature can cover: the components of a request or an answer (RFC 9421, section 2).

This is the RFC as it stands, with all of its parameters; `signatures` admits a small part of it
and is where a gateway should look.

Law 1. A component has one value or none: `Uncoverable` if it is absent, said in two ways, or not
       defined for this kind of message.
Law 2. No value can end its line. What holds a line break, another control character or anything
       beyond ASCII is refused, so that no header forges a line of the base. Folded lines are
       refused too: the edge lets none through.
"""

import re
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, quote

from msgspec import Struct

from carnet.wire.grammar.headers import Headers
from carnet.wire.grammar.structured import (
    InnerList,
    Item,
    StructuredInvalid,
    read_dictionary,
    read_item,
    read_list,
    write_bytes,
    write_dictionary,
    write_item,
    write_list,
    write_member,
)

Kind = Literal["item", "list", "dictionary"]

# Which fields are structured, and how: `;sf` is for those alone.
KINDS: Final[Mapping[str, Kind]] = {
    "content-digest": "dictionary",
    "repr-digest": "dictionary",
    "signature": "dictionary",
    "signature-input": "dictionary",
    "priority": "dictionary",
    "accept-signature": "dictionary",
    "cache-status": "list",
    "proxy-status": "list",
}

_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}
_OF_FIELDS: Final = frozenset({"sf", "key", "bs", "tr", "req"})
_OF_QUERY_PARAMETERS: Final = frozenset({"name", "req"})
_OF_DERIVED: Final = frozenset({"req"})
_BASE: Final = re.compile(r"[\t\n -~]*")


class Uncoverable(ValueError):
    """The message has no such component, or not one value for it."""


class Request(Struct, frozen=True, kw_only=True):
    """A request as far as a signature can see it."""

    method: str
    authority: str  # the Host header or the pseudo-header, as received
    path: str  # as received: not decoded, without the query
    query: str | None = None  # without its "?"; None if there is no "?" either
    headers: Headers
    scheme: str = "https"
    trailers: Headers | None = None


class Response(Struct, frozen=True, kw_only=True):
    """An answer, and the request that it answers where that is known."""

    status: int
    headers: Headers
    request: Request | None = None
    trailers: Headers | None = None


Message = Request | Response


# ---------------------------------------------------------------------------- derived components


def _authority(request: Request) -> str:
    return request.authority.lower().removesuffix(_DEFAULT_PORTS.get(request.scheme.lower(), ""))


def _request_target(request: Request) -> str:
    path = request.path or "/"
    return path if request.query is None else f"{path}?{request.query}"


def _target_uri(request: Request) -> str:
    # As received: the RFC takes the case and the port of `@authority` alone.
    return f"{request.scheme}://{request.authority}{_request_target(request)}"


DERIVED: Final[Mapping[str, Callable[[Request], str]]] = {
    "@method": attrgetter("method"),
    "@authority": _authority,
    "@path": lambda request: request.path or "/",
    "@query": lambda request: f"?{request.query or ''}",
    "@scheme": lambda request: request.scheme.lower(),
    "@target-uri": _target_uri,
    "@request-target": _request_target,
}


def _query_parameter(request: Request, name: object) -> str:
    """The one parameter of that name, both in the spelling of the RFC: spaces as %20."""
    pairs = parse_qsl(request.query or "", keep_blank_values=True)
    values = [value for key, value in pairs if _percent_encode(key) == name]
    if len(values) != 1:
        raise Uncoverable("has no such query parameter, or several")
    return _percent_encode(values[0])


def _percent_encode(text: str) -> str:
    return quote(text, safe="*").replace("~", "%7E")


# ---------------------------------------------------------------------------------------- fields


def field(headers: Headers, name: str) -> str:
    """The value of a field: its lines without the whitespace around them, joined by commas."""
    match headers.get_all(name):
        case []:
            raise Uncoverable("has no such field")
        case [line]:
            return line
        case lines:
            return ", ".join(lines)


def _field_with(
    headers: Headers, name: str, parameters: Mapping[str, object], kind: Kind | None
) -> str:
    wrapped, key = "bs" in parameters, parameters.get("key")
    if wrapped and ("sf" in parameters or key is not None):
        raise Uncoverable("is asked for as bytes and as a structure at once")
    if wrapped:
        field(headers, name)  # refused if it is absent
        return ", ".join(write_bytes(line.encode("latin-1")) for line in headers.get_all(name))
    value = field(headers, name)
    try:
        if key is not None:
            return _member(value, key)
        return _rewrite(value, kind) if "sf" in parameters else value
    except StructuredInvalid:
        raise Uncoverable("is not the structured field that it is covered as") from None


def _member(value: str, key: object) -> str:
    member = read_dictionary(value).get(str(key))
    if member is None:
        raise Uncoverable("has no such member")
    return write_member(member)


def _rewrite(value: str, kind: Kind | None) -> str:
    """The strict spelling of a structured field."""
    if kind == "dictionary":
        return write_dictionary(read_dictionary(value))
    if kind == "list":
        return write_list(read_list(value))
    if kind == "item":
        return write_item(read_item(value))
    raise Uncoverable("is not known to be a structured field")


# ------------------------------------------------------------------------------------ components


def resolve(component: Item, message: Message, kinds: Mapping[str, Kind] = KINDS) -> str:
    """The value of one component, not yet checked for what it may hold."""
    name = component.value
    if not isinstance(name, str) or name != name.lower() or name == "@signature-params":
        raise Uncoverable("is not a component")
    parameters = component.parameters
    _check_parameters(name, parameters)
    if "req" in parameters:
        message = _related(message)
    if not name.startswith("@"):
        source = message.trailers if "tr" in parameters else message.headers
        return _field_with(source or Headers(()), name, parameters, kinds.get(name))
    return _derive(name, parameters, message)


def _derive(name: str, parameters: Mapping[str, object], message: Message) -> str:
    if isinstance(message, Response):
        if name != "@status":
            raise Uncoverable("is not a component of an answer")
        return str(message.status)
    if name == "@query-param":
        return _query_parameter(message, parameters["name"])
    derive = DERIVED.get(name)
    if derive is None:
        raise Uncoverable("is not a component of a request")
    return derive(message)


def _check_parameters(name: str, parameters: Mapping[str, object]) -> None:
    """Flags are flags, and `name` and `key` are strings; nothing else is defined."""
    allowed = _OF_FIELDS
    if name == "@query-param":
        allowed = _OF_QUERY_PARAMETERS
        if "name" not in parameters:
            raise Uncoverable("does not name its query parameter")
    elif name.startswith("@"):
        allowed = _OF_DERIVED
    for key, value in parameters.items():
        wanted = isinstance(value, str) if key in ("key", "name") else value is True
        if key not in allowed or not wanted:
            raise Uncoverable("has a parameter that is not defined for it")


def _related(message: Message) -> Request:
    if isinstance(message, Request) or message.request is None:
        raise Uncoverable("is of a request that is not related")
    return message.request


def base(
    covered: InnerList, text: str, message: Message, kinds: Mapping[str, Kind] = KINDS
) -> bytes:
    """The bytes that a signature is made for.

    Args:
        covered: The components and the parameters of the signature.
        text: How the signature's own input spells them.
        message: What is signed.
        kinds: Which fields are structured, for `;sf`.
    """
    seen: set[Any] = set()
    lines = []
    for component in covered.items:
        identity = (component.value, frozenset(component.parameters.items()))
        if identity in seen:
            raise Uncoverable("is covered twice")
        seen.add(identity)
        lines.append(f"{write_item(component)}: {resolve(component, message, kinds)}")
    return join(lines, text)


def join(lines: list[str], text: str) -> bytes:
    """The lines of a base and the last one, `text`, as bytes that cannot be read differently."""
    whole = [*lines, f'"@signature-params": {text}']
    joined = "\n".join(whole)
    if _BASE.fullmatch(joined) is None or joined.split("\n") != whole:
        raise Uncoverable("holds a character that may not stand in a base")
    return joined.encode()
