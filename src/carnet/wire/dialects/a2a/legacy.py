"""A2A 0.3: its words for the operations and the objects of A2A 1.0.

Law 1. What comes in the former words becomes the present ones, and is read by the one reader of
       them; what is told is written once, and then put into the former words.
Law 2. What the former version cannot say is left out; what it cannot mean is refused.
"""

from collections.abc import Callable
from typing import Any, Final

from carnet.errors import InvalidRequest
from carnet.wire.dialects.a2a.members import member, read_object
from carnet.wire.dialects.a2a.states import TERMINAL

METHODS: Final = {
    "message/send": "SendMessage",
    "message/stream": "SendStreamingMessage",
    "tasks/get": "GetTask",
    "tasks/cancel": "CancelTask",
    "tasks/resubscribe": "SubscribeToTask",
    "tasks/pushNotificationConfig/set": "CreateTaskPushNotificationConfig",
    "tasks/pushNotificationConfig/get": "GetTaskPushNotificationConfig",
    "tasks/pushNotificationConfig/list": "ListTaskPushNotificationConfigs",
    "tasks/pushNotificationConfig/delete": "DeleteTaskPushNotificationConfig",
    "agent/getAuthenticatedExtendedCard": "GetExtendedAgentCard",
}
_ROLES: Final = {"user": "ROLE_USER", "agent": "ROLE_AGENT"}
_FORMER_ROLES: Final = {new: old for old, new in _ROLES.items()}
_STATE: Final = "TASK_STATE_"
_PUSH: Final = "tasks/pushNotificationConfig/"

Params = dict[str, Any]


def newer(method: str, params: Params) -> tuple[str, Params]:
    """An operation and its parameters in the present words."""
    given = dict(params)
    if method.startswith("message/"):
        if "message" in given:
            given["message"] = _newer_message(given["message"])
        if given.get("configuration") is not None:
            given["configuration"] = _newer_wishes(given["configuration"])
    elif method == f"{_PUSH}set":
        config = read_object(member(given, "pushNotificationConfig"), "pushNotificationConfig")
        given = {**_newer_push(config), "taskId": given.get("taskId")}
    elif method.startswith(_PUSH):
        given = {"taskId": given.get("id"), "id": member(given, "pushNotificationConfigId")}
    return METHODS[method], given


def _newer_message(value: object) -> Params:
    message = dict(read_object(value, "message"))
    message.pop("kind", None)
    role = message.get("role")
    message["role"] = _ROLES.get(role, role) if isinstance(role, str) else role
    parts = message.get("parts")
    if isinstance(parts, list):
        message["parts"] = [_newer_part(part, i) for i, part in enumerate(parts)]
    return message


def _newer_part(value: object, index: int) -> Params:
    place = f"message.parts[{index}]"
    part = dict(read_object(value, place))
    kind = part.pop("kind", None)
    if kind != "file":
        return part
    file = read_object(part.pop("file", None), f"{place}.file")
    names = {"bytes": "raw", "uri": "url", "name": "filename", "mimeType": "mediaType"}
    return part | {new: file[old] for old, new in names.items() if file.get(old) is not None}


def _newer_wishes(value: object) -> Params:
    wishes = dict(read_object(value, "configuration"))
    blocking = wishes.pop("blocking", None)
    if blocking is not None and not isinstance(blocking, bool):
        raise InvalidRequest("configuration.blocking", "must be true or false")
    wishes["returnImmediately"] = blocking is False
    push = wishes.pop("pushNotificationConfig", None)
    if push is not None:
        wishes["taskPushNotificationConfig"] = _newer_push(
            read_object(push, "configuration.pushNotificationConfig")
        )
    return wishes


def _newer_push(config: Params) -> Params:
    """Where to be told; of several schemes that the receiver takes, the first."""
    known = config.get("authentication")
    if not isinstance(known, dict) or "schemes" not in known:
        return config
    schemes = known["schemes"]
    first = schemes[0] if isinstance(schemes, list) and schemes else None
    return {**config, "authentication": {**known, "scheme": first}}


def older(result: Params, kind: str) -> Any:
    """A result in the former words; `kind` is what was asked for."""
    return _OLDER[kind](result)


def _older_sent(result: Params) -> Params:
    if "task" in result:
        return _older_task(result["task"])
    if "message" in result:
        return _older_message(result["message"])
    if "statusUpdate" in result:
        update = result["statusUpdate"]
        state = update["status"]["state"]
        is_final = state in TERMINAL or state.endswith("_REQUIRED")
        more = {"status": _older_status(update["status"]), "final": is_final}
        return {"kind": "status-update", **update, **more}
    update = result["artifactUpdate"]
    return {"kind": "artifact-update", **update, "artifact": _older_artifact(update["artifact"])}


def _older_task(task: Params) -> Params:
    written = {"kind": "task", **task, "status": _older_status(task["status"])}
    if "artifacts" in task:
        written["artifacts"] = [_older_artifact(each) for each in task["artifacts"]]
    if "history" in task:
        written["history"] = [_older_message(each) for each in task["history"]]
    return written


def _older_status(status: Params) -> Params:
    state = str(status["state"]).removeprefix(_STATE).lower().replace("_", "-")
    written = {**status, "state": state}
    if "message" in status:
        written["message"] = _older_message(status["message"])
    return written


def _older_artifact(artifact: Params) -> Params:
    return {**artifact, "parts": [_older_part(part) for part in artifact["parts"]]}


def _older_message(message: Params) -> Params:
    role = _FORMER_ROLES.get(str(message.get("role")), "agent")
    parts = [_older_part(part) for part in message.get("parts", [])]
    return {"kind": "message", **message, "role": role, "parts": parts}


def _older_part(part: Params) -> Params:
    metadata = {"metadata": part["metadata"]} if "metadata" in part else {}
    if "text" in part:
        return {"kind": "text", "text": part["text"], **metadata}
    if "data" in part:
        data = part["data"] if isinstance(part["data"], dict) else {"value": part["data"]}
        return {"kind": "data", "data": data, **metadata}
    names = {"raw": "bytes", "url": "uri", "filename": "name", "mediaType": "mimeType"}
    file = {old: part[new] for new, old in names.items() if new in part}
    return {"kind": "file", "file": file, **metadata}


def _older_push(config: Params) -> Params:
    inner = {name: value for name, value in config.items() if name != "taskId"}
    known = inner.get("authentication")
    if known is not None:
        inner["authentication"] = {"schemes": [known["scheme"]]}
    return {"taskId": config["taskId"], "pushNotificationConfig": inner}


_OLDER: Final[dict[str, Callable[[Params], Any]]] = {
    "send": _older_sent,
    "stream": _older_sent,
    "task": _older_task,
    "push": _older_push,
    "pushes": lambda result: [_older_push(each) for each in result["configs"]],
    "empty": lambda _: None,
    "card": lambda result: result,
}
