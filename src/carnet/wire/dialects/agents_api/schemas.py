"""What the routes of agents-api take and give, for the description of the API."""

from typing import Any, Final

_TEXT: Final = {"type": "string"}
_OBJECT: Final = {"type": "object"}

SCHEMAS: Final[dict[str, Any]] = {
    "AgentsApiRequest": {
        "type": "object",
        "required": ["jsonrpc", "method", "params"],
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": {"type": ["string", "integer", "null"]},
            "method": {
                "type": "string",
                "description": "message/send, message/stream (or tasks/send, tasks/sendSubscribe), "
                "agents/resolve-pending-action, agents/get-pending-action.",
            },
            "params": {
                "type": "object",
                "description": "Of a message: id (the run, which is run once), sessionId, message "
                "with parts of the types text, data and file, metadata.",
            },
            "tokenStreaming": {"type": "boolean"},
        },
    },
    "AgentsApiResponse": {
        "type": "object",
        "description": "A task in `result`, or an error of JSON-RPC; also with the status 200.",
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": {"type": ["string", "integer", "null"]},
            "result": _OBJECT,
            "error": _OBJECT,
        },
    },
    "AgentsApiChat": {
        "type": "object",
        "required": ["agent", "message"],
        "properties": {
            "agent": _TEXT,
            "message": _TEXT,
            "session_id": {"type": ["string", "null"]},
            "attachments": {"type": "array", "items": _OBJECT},
            "client_context": _OBJECT,
            "workspace_id": {"type": ["string", "null"]},
            "client_id": {"type": ["string", "null"]},
        },
    },
    "AgentsApiOutput": {
        "type": "object",
        "properties": {
            "session_id": _TEXT,
            "run_id": _TEXT,
            "reply": _TEXT,
            "completed": {"type": "boolean"},
            "status": _TEXT,
            "run_outcome": _OBJECT,
            "messages": {"type": "array", "items": _OBJECT},
        },
    },
    "AgentsApiDecision": {
        "type": "object",
        "required": ["decision", "resolver"],
        "properties": {
            "decision": {"enum": ["accepted", "rejected"]},
            "resolver": _TEXT,
            "payload": _OBJECT,
        },
    },
    "AgentsApiDecided": {
        "type": "object",
        "properties": {"action_id": _TEXT, "decision": _TEXT, "result": _OBJECT},
    },
    "AgentsApiAction": {"type": "object", "properties": {"action": {"type": ["object", "null"]}}},
    "AgentsApiError": {
        "type": "object",
        "properties": {"code": _TEXT, "message": _TEXT, "data": _OBJECT},
    },
}
