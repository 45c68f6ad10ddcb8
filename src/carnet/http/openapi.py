"""The description of the HTTP API (OpenAPI 3.1), made of the rows that are served.

Law. What is served is described, and nothing else: there is no second list.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from carnet import __version__
from carnet.wire.route import Route

Schema = dict[str, Any]

_NAME: Final = re.compile(r"\{([a-z]+)\}")
_SIGNATURE: Final = ("content-digest", "signature-input", "signature")


def describe(
    routes: Sequence[Route], schemas: Mapping[str, Any], chain: Mapping[str, str] | None = None
) -> Schema:
    """The document.

    Args:
        routes: What is served.
        schemas: The shapes that the routes name.
        chain: The header fields of the stamps, and what each says.
    """
    paths: dict[str, Schema] = {}
    for route in routes:
        item = paths.setdefault(route.path, _item(route))
        item[route.method.lower()] = _operation(route, chain or {})
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
    text = {"type": "string"}
    return {
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": text} for name in names
        ]
    }


def _operation(route: Route, chain: Mapping[str, str]) -> Schema:
    content: Schema = {}
    if route.answer is not None:
        content["application/json"] = {"schema": _reference(route.answer)}
    if route.streams:
        content["text/event-stream"] = {"schema": {"type": "string"}}
    failed = {"application/json": {"schema": _reference(route.failure)}}
    operation: Schema = {
        "summary": route.summary,
        "responses": {
            str(route.status): {"description": "The answer", "content": content},
            "default": {"description": "An error", "content": failed},
        },
    }
    if route.body is not None:
        schema = {"schema": _reference(route.body)}
        operation["requestBody"] = {"required": True, "content": {"application/json": schema}}
    parameters = _headers(route, chain)
    if parameters:
        operation["parameters"] = parameters
    if route.auth not in {"token", "gate"}:
        operation["security"] = []
    if route.permission is not None:
        operation["description"] = f"With the permission `{route.permission}`."
    return operation


def _headers(route: Route, chain: Mapping[str, str]) -> list[Schema]:
    text = {"type": "string"}
    if route.auth == "signature":
        return [
            {"name": name, "in": "header", "required": True, "schema": text} for name in _SIGNATURE
        ]
    if not route.chain:
        return []
    return [
        {"name": name, "in": "header", "description": told, "schema": text}
        for name, told in chain.items()
    ]


def _reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}
