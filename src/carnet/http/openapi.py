"""The description of the HTTP API (OpenAPI 3.1), made of the rows that are served.

Law 1. What is served is described, and nothing else: there is no second list. Pages for people are
       no part of the API and are left out.
Law 2. It is described as this gateway serves it: what its operator wants signed needs a signature.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from carnet.version import __version__
from carnet.wire.dialects.route import Route
from carnet.wire.grammar.query import MOST_LINES, USUAL_LINES

Schema = dict[str, Any]

_NAME: Final = re.compile(r"\{([a-z]+)\}")
_TEXT: Final[Schema] = {"type": "string"}
_NUMBER: Final[Schema] = {"type": "integer", "minimum": 0}
_FLAG: Final[Schema] = {"type": "boolean", "default": False}
# What a query says beside words.
_QUERY: Final[dict[str, Schema]] = {
    "limit": {"type": "integer", "minimum": 1, "maximum": MOST_LINES, "default": USUAL_LINES},
    "before": _NUMBER,
    "full": _FLAG,
    "all": _FLAG,
    "since": {"type": "string", "format": "date-time"},
}
_SIGNATURE: Final = ("content-digest", "signature-input", "signature")


def describe(
    routes: Sequence[Route],
    schemas: Mapping[str, Any],
    chain: Mapping[str, str] | None = None,
    *,
    polling: str = "open",
) -> Schema:
    """The document.

    Args:
        routes: What is served.
        schemas: The shapes that the routes name.
        chain: The header fields of the stamps, and what each says.
        polling: "open", or "signed" where whoever asks for a task must have asked for it.
    """
    signed = {"signature"} if polling == "open" else {"signature", "polling"}
    paths: dict[str, Schema] = {}
    for route in routes:
        if route.is_page:
            continue
        item = paths.setdefault(route.path, _item(route))
        item[route.method.lower()] = _operation(
            route, _signature() if route.auth in signed else _stamps(route, chain or {})
        )
    return {
        "openapi": "3.1.0",
        "info": {"title": "Carnet gateway", "version": __version__},
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": dict(schemas),
        },
    }


def _item(route: Route) -> Schema:
    names = _NAME.findall(route.path)
    if not names:
        return {}
    return {
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": _TEXT} for name in names
        ]
    }


def _operation(route: Route, headers: list[Schema]) -> Schema:
    failed = [*[(str(status), name) for status, name in route.also], ("default", route.failure)]
    operation: Schema = {
        "summary": route.summary,
        "responses": {
            str(route.status): {"description": "The answer", "content": _content(route)},
            **{
                status: {"description": "An error", "content": _json(name)}
                for status, name in failed
            },
        },
    }
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": _json(route.body)}
    if headers or route.query:
        operation["parameters"] = headers + list(map(_asked, route.query))
    if route.auth not in {"token", "gate"}:
        operation["security"] = []
    if route.permission is not None:
        operation["description"] = f"With the permission `{route.permission}`."
    return operation


def _asked(name: str) -> Schema:
    """A name that may stand in the query."""
    return {"name": name, "in": "query", "required": False, "schema": _QUERY.get(name, _TEXT)}


def _content(route: Route) -> Schema:
    """What an answer that is no error may be."""
    text = {"schema": {"type": "string"}}
    content: Schema = {} if route.answer is None else _json(route.answer)
    if route.streams:
        content["text/event-stream"] = text
    if route.media is not None:
        content[route.media] = text
    return content


def _signature() -> list[Schema]:
    """The header fields of a request that must be signed."""
    return [
        {"name": name, "in": "header", "required": True, "schema": {"type": "string"}}
        for name in _SIGNATURE
    ]


def _stamps(route: Route, chain: Mapping[str, str]) -> list[Schema]:
    """The header fields that are read beside a call."""
    return [
        {"name": name, "in": "header", "description": description, "schema": {"type": "string"}}
        for name, description in chain.items()
        if route.chain
    ]


def _json(name: str) -> Schema:
    return {"application/json": {"schema": _reference(name)}}


def _reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}
