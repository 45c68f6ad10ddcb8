"""The shape of the HTTP API, for tools and people."""

from typing import Any

from carnet import __version__
from carnet.errors import BY_CODE

Schema = dict[str, Any]

_TANGLE = (
    ("x-tangle-forwarded-depth", "Agent-to-agent edges crossed so far; absent is 0."),
    ("x-tangle-runid", "The run this call belongs to; absent starts one."),
    ("x-tangle-turnid", "Names this logical call; a repeat is answered from the record."),
    ("x-tangle-parent-turnid", "The turn this call was made in."),
    ("x-tangle-speaker", "The name of the called participant."),
    ("x-tangle-forwarded-authorization", "Who pays; honoured from listed callers alone."),
)


def describe() -> Schema:
    """The OpenAPI document."""
    chat = _operation("Ask an agent", body="ChatRequest", answer="ChatCompletion", chain=True)
    run = [_path_parameter("run")]
    return {
        "openapi": "3.1.0",
        "info": {"title": "Carnet gateway", "version": __version__},
        "security": [{"bearer": []}],
        "paths": {
            "/v1/chat/completions": {"post": chat},
            "/agents/{name}/v1/chat/completions": {
                "parameters": [_path_parameter("name")],
                "post": chat,
            },
            "/v1/models": {"get": _operation("List the agents", answer="Models")},
            "/runs": {"get": _operation("List runs", answer="Page")},
            "/runs/{run}": {
                "parameters": run,
                "get": _operation("One run as a tree of turns", answer="Page"),
            },
            "/runs/{run}/events": {
                "parameters": run,
                "get": _operation("The journal of a run (SSE, Last-Event-ID)", stream=True),
            },
            "/runs/{run}/cancel": {
                "parameters": run,
                "post": _operation("Cancel what runs", answer="Page"),
            },
            "/healthz": {"get": _operation("The process answers", answer="Page", is_open=True)},
            "/readyz": {"get": _operation("It can take work", answer="Page", is_open=True)},
            "/metrics": {"get": _operation("Prometheus metrics")},
            "/-/errors/{code}": {
                "parameters": [_path_parameter("code")],
                "get": _operation("What an error code means", answer="Page", is_open=True),
            },
        },
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": _schemas(),
        },
    }


def _path_parameter(name: str) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _operation(
    summary: str,
    *,
    body: str | None = None,
    answer: str | None = None,
    stream: bool = False,
    chain: bool = False,
    is_open: bool = False,
) -> Schema:
    content: Schema = {}
    if answer:
        content["application/json"] = {"schema": _reference(answer)}
    if stream or chain:
        content["text/event-stream"] = {"schema": {"type": "string"}}
    operation: Schema = {
        "summary": summary,
        "responses": {
            "200": {"description": "The answer", "content": content},
            "default": {
                "description": "An error",
                "content": {"application/json": {"schema": _reference("Error")}},
            },
        },
    }
    if body:
        schema = {"schema": _reference(body)}
        operation["requestBody"] = {"required": True, "content": {"application/json": schema}}
    if chain:
        operation["parameters"] = [
            {"name": name, "in": "header", "description": text, "schema": {"type": "string"}}
            for name, text in _TANGLE
        ]
    if is_open:
        operation["security"] = []
    return operation


def _reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _schemas() -> Schema:
    text = {"type": "string"}
    error = {
        "type": "object",
        "required": ["code", "message", "hint", "docs"],
        "properties": {
            "code": {"type": "string", "enum": sorted(BY_CODE)},
            "message": text,
            "hint": text,
            "docs": text,
        },
    }
    return {
        "ChatRequest": {
            "type": "object",
            "required": ["messages"],
            "properties": {
                "model": {"type": "string", "description": "An agent's name or address"},
                "messages": {"type": "array", "minItems": 1, "items": {"type": "object"}},
                "stream": {"type": "boolean"},
                "stream_options": {
                    "type": "object",
                    "properties": {"include_usage": {"type": "boolean"}},
                },
            },
        },
        "ChatCompletion": {
            "type": "object",
            "required": ["id", "object", "created", "model", "choices", "usage"],
        },
        "Models": {"type": "object", "required": ["object", "data"]},
        "Page": {"type": "object"},
        "Error": {
            "type": "object",
            "required": ["error", "code", "message"],
            "properties": {"error": error, "code": text, "message": text},
        },
    }
