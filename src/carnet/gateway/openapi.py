"""The shape of the HTTP API, for tools and people."""

from typing import Any, Final

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
            **_samvad(),
            "/.well-known/carnet.json": {
                "get": _operation("The keys of this gateway", answer="Page", is_open=True)
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
            **_tasks(),
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


def _samvad() -> Schema:
    """The SAMVAD endpoints: of the default agent at the root, of each at its prefix."""
    paths: Schema = {
        "/agent/message": {"post": _signed("Ask for a skill")},
        "/agent/stream": {"post": _signed("Ask for a skill and read the answer as it grows")},
        "/agent/task": {"post": _signed("Ask for a skill as a task", answer="Accepted", ok="202")},
        "/agent/task/{task}": {
            "parameters": [_path_parameter("task")],
            "get": _operation("How a task goes", answer="TaskRecord", is_open=True),
        },
        "/agent/task/{task}/cancel": {
            "parameters": [_path_parameter("task")],
            "post": _signed("Ask for the end of a task", body=None, answer="TaskRecord", ok="202"),
        },
        "/agent/intro": {"get": _operation("What the agent is, for people", is_open=True)},
        "/agent/health": {"get": _operation("It answers", answer="Page", is_open=True)},
        "/.well-known/agent.json": {
            "get": _operation("The card of the agent", answer="Page", is_open=True)
        },
    }
    return {**paths, **{f"/agents/{{name}}{path}": _below(item) for path, item in paths.items()}}


def _below(item: Schema) -> Schema:
    """The same below the prefix of an agent."""
    return {**item, "parameters": [_path_parameter("name"), *item.get("parameters", ())]}


def _tasks() -> Schema:
    """Tasks for tokens."""
    task = [_path_parameter("task")]
    create = _operation("Ask an agent as a task", body="ChatRequest", answer="Accepted", ok="202")
    cancel = _operation("Ask for the end of a task", answer="Page", ok="202")
    return {
        "/tasks": {"get": _operation("List tasks", answer="Page"), "post": create},
        "/tasks/{task}": {
            "parameters": task,
            "get": _operation("One task, with its result or error", answer="Page"),
        },
        "/tasks/{task}/cancel": {"parameters": task, "post": cancel},
    }


def _signed(
    summary: str, *, body: str | None = "Envelope", answer: str = "Response", ok: str = "200"
) -> Schema:
    """An operation whose requests are signed (RFC 9421) in place of a token."""
    operation = _operation(summary, body=body, answer=answer, is_open=True, ok=ok)
    operation["parameters"] = [
        {"name": name, "in": "header", "required": True, "schema": {"type": "string"}}
        for name in ("content-digest", "signature-input", "signature")
    ]
    failed = {"application/json": {"schema": _reference("Response")}}
    operation["responses"]["default"]["content"] = failed
    return operation


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
    ok: str = "200",
) -> Schema:
    content: Schema = {}
    if answer:
        content["application/json"] = {"schema": _reference(answer)}
    if stream or chain:
        content["text/event-stream"] = {"schema": {"type": "string"}}
    operation: Schema = {
        "summary": summary,
        "responses": {
            ok: {"description": "The answer", "content": content},
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


_SKILL: Final[dict[str, Any]] = {
    "type": "object",
    "description": "What is asked for by name",
    "required": ["skill"],
    "properties": {
        "skill": {"type": "string", "minLength": 1, "maxLength": 64},
        "payload": {"type": "object"},
    },
}


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
                "carnet": _SKILL,
            },
        },
        "ChatCompletion": {
            "type": "object",
            "required": ["id", "object", "created", "model", "choices", "usage"],
        },
        "Models": {"type": "object", "required": ["object", "data"]},
        **_samvad_schemas(),
        **_task_schemas(),
        "Page": {"type": "object"},
        "Error": {
            "type": "object",
            "required": ["error", "code", "message"],
            "properties": {"error": error, "code": text, "message": text},
        },
    }


def _samvad_schemas() -> Schema:
    text = {"type": "string"}
    return {
        "Envelope": {
            "type": "object",
            "required": [
                *("from", "to", "skill", "mode", "nonce", "timestamp", "traceId", "spanId"),
            ],
            "additionalProperties": False,
            "properties": {
                "from": {"type": "string", "pattern": "^agent://"},
                "to": {"type": "string", "pattern": "^agent://"},
                "skill": {"type": "string", "maxLength": 64},
                "mode": {"type": "string", "enum": ["sync", "async", "stream"]},
                "nonce": {"type": "string", "minLength": 8, "maxLength": 64},
                "timestamp": {"type": "string", "format": "date-time"},
                "traceId": text,
                "spanId": text,
                "parentSpanId": {"type": ["string", "null"]},
                "delegationToken": {"type": ["string", "null"]},
                "auth": {"type": ["object", "null"]},
                "callbackUrl": {"type": ["string", "null"]},
                "payload": {"type": ["object", "null"]},
            },
        },
        "Response": {
            "type": "object",
            "required": ["traceId", "spanId", "status"],
            "properties": {
                "traceId": text,
                "spanId": text,
                "status": {"type": "string", "enum": ["ok", "error"]},
                "result": {"type": "object"},
                "error": {"type": "object", "required": ["code", "message"]},
            },
        },
    }


def _task_schemas() -> Schema:
    text = {"type": "string"}
    return {
        "Accepted": {
            "type": "object",
            "required": ["taskId", "status"],
            "properties": {"taskId": text, "status": {"const": "accepted"}},
        },
        "TaskRecord": {
            "type": "object",
            "required": ["taskId", "status"],
            "additionalProperties": False,
            "properties": {
                "taskId": text,
                "status": {"type": "string", "enum": ["pending", "running", "done", "failed"]},
                "progress": {"type": "number", "minimum": 0, "maximum": 1},
                "result": {"type": "object"},
                "error": {"type": "object", "required": ["code", "message"]},
            },
        },
    }
