"""The shapes of this dialect, for the description of the API; the specification says the rest."""

from typing import Any, Final

SCHEMAS: Final[dict[str, Any]] = {
    "A2AObject": {
        "type": "object",
        "description": "An object of A2A 1.0, as ProtoJSON writes it",
    },
    "A2ARequest": {
        "type": "object",
        "required": ["jsonrpc", "method"],
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": {"type": ["string", "integer", "null"]},
            "method": {"type": "string", "description": "SendMessage, GetTask, ..."},
            "params": {"type": "object"},
        },
    },
    "A2AResponse": {
        "type": "object",
        "required": ["jsonrpc"],
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": {"type": ["string", "integer", "null"]},
            "result": {},
            "error": {
                "type": "object",
                "required": ["code", "message"],
                "properties": {
                    "code": {"type": "integer"},
                    "message": {"type": "string"},
                    "data": {"type": "array", "items": {"type": "object"}},
                },
            },
        },
    },
    "A2AStatus": {
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["code", "status", "message"],
                "properties": {
                    "code": {"type": "integer"},
                    "status": {"type": "string"},
                    "message": {"type": "string"},
                    "details": {"type": "array", "items": {"type": "object"}},
                },
            }
        },
    },
}
