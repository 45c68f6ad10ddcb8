"""The shapes of this dialect, for the description of the API."""

from typing import Any, Final

from carnet.errors import BY_CODE

_TEXT: Final[dict[str, Any]] = {"type": "string"}

_SKILL: Final[dict[str, Any]] = {
    "type": "object",
    "description": "What is asked for by name",
    "required": ["skill"],
    "properties": {
        "skill": {"type": "string", "minLength": 1, "maxLength": 64},
        "payload": {"type": "object"},
    },
}

_ERROR: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["code", "message", "hint", "docs"],
    "properties": {
        "code": {"type": "string", "enum": sorted(BY_CODE)},
        "message": _TEXT,
        "hint": _TEXT,
        "docs": _TEXT,
    },
}

SCHEMAS: Final[dict[str, Any]] = {
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
    "Model": {"type": "object", "required": ["id", "object", "created", "owned_by"]},
    "Models": {"type": "object", "required": ["object", "data"]},
    "Accepted": {
        "type": "object",
        "required": ["taskId", "status"],
        "properties": {"taskId": _TEXT, "status": {"const": "accepted"}},
    },
    "Page": {"type": "object"},
    "NewApprover": {
        "type": "object",
        "required": ["person", "ceiling"],
        "additionalProperties": False,
        "properties": {"person": _TEXT, "ceiling": _TEXT},
    },
    "Decision": {
        "type": "object",
        "oneOf": [{"required": ["outcome"]}, {"required": ["decision"]}],
        "additionalProperties": False,
        "properties": {
            "outcome": {"enum": ["accepted", "rejected"]},
            "decision": {"enum": ["approved", "denied"], "description": "The same as an outcome"},
            "value": {"description": "An option, a value of the schema, or other arguments"},
            "remember": {
                "type": ["object", "null"],
                "description": "Give the same answer from now on; of payments up to so much",
                "additionalProperties": False,
                "properties": {"ceiling": {"type": ["string", "null"]}},
            },
        },
    },
    "Error": {
        "type": "object",
        "required": ["error", "code", "message"],
        "properties": {"error": _ERROR, "code": _TEXT, "message": _TEXT},
    },
}
