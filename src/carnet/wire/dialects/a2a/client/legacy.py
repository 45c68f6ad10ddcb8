"""A2A 0.3 as 1.0, and back: what is sent to an agent that speaks the former, and what it answers.

    0.3 over JSON-RPC     `kind` beside everything, `parts` of three kinds, states in lower case
    0.3 over HTTP+JSON    no `kind`; parts are `content`, a message is `msg` or `message`

Law 1. Nothing is judged here: what is in no form of 0.3 is given as it came, and refused by the one
       reader that there is.
Law 2. What 0.3 cannot say is left out: a list of tasks, more than one push configuration in REST.
"""

from typing import Any, Final

from carnet.wire.dialects.a2a import legacy

Json = dict[str, Any]

METHODS: Final = {present: former for former, present in legacy.METHODS.items()}

_STATES: Final = {
    "submitted": "TASK_STATE_SUBMITTED",
    "working": "TASK_STATE_WORKING",
    "input-required": "TASK_STATE_INPUT_REQUIRED",
    "auth-required": "TASK_STATE_AUTH_REQUIRED",
    "completed": "TASK_STATE_COMPLETED",
    "failed": "TASK_STATE_FAILED",
    "canceled": "TASK_STATE_CANCELED",
    "rejected": "TASK_STATE_REJECTED",
    "TASK_STATE_CANCELLED": "TASK_STATE_CANCELED",
}
_ROLES: Final = {"user": "ROLE_USER", "agent": "ROLE_AGENT"}
_KINDS: Final = {
    "task": "task",
    "message": "message",
    "status-update": "statusUpdate",
    "artifact-update": "artifactUpdate",
}

# ------------------------------------------------------------------ what they wrote, as 1.0


def as_update(given: object) -> object:
    """The result of sending, or one event of a stream: in 1.0 it stands below its name."""
    if not isinstance(given, dict):
        return given
    name = _KINDS.get(given.get("kind", ""))
    if name is not None:
        return {name: _as(name, given)}
    if "msg" in given and "message" not in given:
        given = {**given, "message": given["msg"]}
    return {each: _as(each, given[each]) for each in _KINDS.values() if each in given}


def as_task(given: object) -> object:
    """A task."""
    if not isinstance(given, dict):
        return given
    artifacts = given.get("artifacts")
    if isinstance(artifacts, list):
        given = {**given, "artifacts": [_as_artifact(each) for each in artifacts]}
    return _with_status(given)


def _as(name: str, given: object) -> object:
    if not isinstance(given, dict):
        return given
    match name:
        case "task":
            return as_task(given)
        case "message":
            return _as_message(given)
        case "artifactUpdate":
            return {**given, "artifact": _as_artifact(given.get("artifact"))}
    return _with_status(given)


def _with_status(given: Json) -> Json:
    status = given.get("status")
    if not isinstance(status, dict):
        return given
    state, message = status.get("state"), status.get("message", status.get("update"))
    status = {**status, "state": _STATES.get(state, state) if isinstance(state, str) else state}
    if message is not None:
        status["message"] = _as_message(message)
    return {**given, "status": status}


def _as_message(given: object) -> object:
    if not isinstance(given, dict):
        return given
    role = given.get("role")
    parts = given.get("parts", given.get("content"))
    return {
        **given,
        "role": _ROLES.get(role, role) if isinstance(role, str) else role,
        "parts": _as_parts(parts),
    }


def _as_artifact(given: object) -> object:
    if not isinstance(given, dict):
        return given
    return {**given, "parts": _as_parts(given.get("parts"))}


def _as_parts(given: object) -> object:
    return [_as_part(each) for each in given] if isinstance(given, list) else given


def _as_part(given: object) -> object:
    if not isinstance(given, dict):
        return given
    metadata = {"metadata": given["metadata"]} if "metadata" in given else {}
    file = given.get("file")
    if isinstance(file, dict):
        return _as_file(file) | metadata
    if "text" in given:
        return {"text": given["text"]} | metadata
    if "data" not in given:
        return given
    data = given["data"]
    is_wrapped = "kind" not in given and isinstance(data, dict) and set(data) == {"data"}
    return {"data": data["data"] if is_wrapped else data} | metadata


def _as_file(file: Json) -> Json:
    names = {"bytes": "raw", "fileWithBytes": "raw", "uri": "url", "fileWithUri": "url"}
    found = {names[name]: file[name] for name in names if name in file}
    if "name" in file:
        found["filename"] = file["name"]
    if "mimeType" in file:
        found["mediaType"] = file["mimeType"]
    return found


def as_config(given: object) -> object:
    """A push configuration."""
    if not isinstance(given, dict):
        return given
    inner = given.get("pushNotificationConfig")
    if not isinstance(inner, dict):
        return given
    known = {name: inner[name] for name in ("id", "url", "token") if name in inner}
    authentication = inner.get("authentication")
    if isinstance(authentication, dict):
        schemes = authentication.get("schemes") or [""]
        known["authentication"] = {**authentication, "scheme": schemes[0]}
    task = given.get("taskId", str(given.get("name", "")).removeprefix("tasks/").partition("/")[0])
    return {**known, "taskId": task}


# ------------------------------------------------------------------ what we send, as 0.3


def params(operation: str, given: Json) -> Json:
    """The parameters of a call over JSON-RPC."""
    match operation:
        case "SendMessage" | "SendStreamingMessage":
            return _sending(given, {**given["message"], "kind": "message"})
        case "CreateTaskPushNotificationConfig":
            return {"taskId": given["taskId"], "pushNotificationConfig": _config(given)}
        case "GetTaskPushNotificationConfig" | "DeleteTaskPushNotificationConfig":
            return {"id": given["taskId"], "pushNotificationConfigId": given["id"]}
        case "ListTaskPushNotificationConfigs":
            return {"id": given["taskId"]}
    return given


def _sending(given: Json, message: Json) -> Json:
    message["role"] = "user"
    message["parts"] = [_part(each) for each in message["parts"]]
    return {**given, "message": message, "configuration": _configuration(given)}


def rest_body(operation: str, given: Json) -> Json:
    """The body of a request over HTTP+JSON."""
    if operation == "CreateTaskPushNotificationConfig":
        name = f"tasks/{given['taskId']}/pushNotificationConfigs/{given.get('id', '')}"
        config = {"name": name, "pushNotificationConfig": _config(given)}
        parent = f"tasks/{given['taskId']}"
        return {"parent": parent, "configId": given.get("id", ""), "config": config}
    if "message" not in given:
        return {}
    message = dict(given["message"])
    message["content"] = [_rest_part(each) for each in message.pop("parts")]
    return {**given, "message": message, "configuration": _configuration(given)}


def _configuration(given: Json) -> Json:
    """How it is to be answered: 0.3 says whether to wait, 1.0 whether not to."""
    configuration = dict(given.get("configuration") or {})
    configuration["blocking"] = not configuration.pop("returnImmediately", False)
    if (config := configuration.pop("taskPushNotificationConfig", None)) is not None:
        configuration["pushNotificationConfig"] = _config(config)
    return configuration


def _config(given: Json) -> Json:
    written: Json = {name: given[name] for name in ("id", "url", "token") if name in given}
    authentication = given.get("authentication")
    if authentication is not None:
        written["authentication"] = {
            "schemes": [authentication["scheme"]],
            "credentials": authentication.get("credentials"),
        }
    return written


def _part(given: Json) -> Json:
    more = {"metadata": given["metadata"]} if "metadata" in given else {}
    if "text" in given:
        return {"kind": "text", "text": given["text"], **more}
    if "data" in given:
        data = given["data"]  # which is an object there
        return {"kind": "data", "data": data if isinstance(data, dict) else {"value": data}, **more}
    return {"kind": "file", "file": _file(given, "bytes", "uri"), **more}


def _rest_part(given: Json) -> Json:
    if "text" in given:
        return {"text": given["text"]}
    if "data" in given:
        data = given["data"]
        return {"data": {"data": data if isinstance(data, dict) else {"value": data}}}
    return {"file": _file(given, "fileWithBytes", "fileWithUri")}


def _file(given: Json, raw: str, url: str) -> Json:
    written = {raw: given["raw"]} if "raw" in given else {url: given["url"]}
    if "filename" in given:
        written["name"] = given["filename"]
    if "mediaType" in given:
        written["mimeType"] = given["mediaType"]
    return written
