"""The shapes of this dialect, for the description of the API."""

from typing import Any, Final

_TEXT: Final[dict[str, Any]] = {"type": "string"}
_ERROR: Final[dict[str, Any]] = {"type": "object", "required": ["code", "message"]}

SCHEMAS: Final[dict[str, Any]] = {
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
            "traceId": _TEXT,
            "spanId": _TEXT,
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
            "traceId": _TEXT,
            "spanId": _TEXT,
            "status": {"type": "string", "enum": ["ok", "error"]},
            "result": {"type": "object"},
            "error": _ERROR,
        },
    },
    "TaskAccepted": {
        "type": "object",
        "required": ["taskId", "status"],
        "additionalProperties": False,
        "properties": {"taskId": _TEXT, "status": {"const": "accepted"}},
    },
    "TaskRecord": {
        "type": "object",
        "required": ["taskId", "status"],
        "additionalProperties": False,
        "properties": {
            "taskId": _TEXT,
            "status": {"type": "string", "enum": ["pending", "running", "done", "failed"]},
            "progress": {"type": "number", "minimum": 0, "maximum": 1},
            "result": {"type": "object"},
            "error": _ERROR,
        },
    },
    "TaskNotFound": {
        "type": "object",
        "required": ["error"],
        "additionalProperties": False,
        "properties": {"error": _TEXT},
    },
}
