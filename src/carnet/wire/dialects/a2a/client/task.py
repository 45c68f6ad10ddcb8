"""What an A2A agent answers with: tasks, messages, and the updates of a stream, read strictly.

Law 1. Every id, state and part is in its form, or the whole is no answer (ProviderError). What we
       do not know is left out, as the protocol wants; the history of a task is not read.
Law 2. An answer to a call is bounded: in artifacts, in parts, and in the length of every name.
Law 3. Of what the other side wrote, an error tells no text of its own.
"""

from itertools import chain
from typing import Any, Final, Literal

from msgspec import Struct

from carnet.core.messages.events import Part
from carnet.errors import InvalidRequest, ProviderError
from carnet.wire.dialects.a2a.parts import MOST_PARTS, read_parts

MOST_ID: Final = 512
MOST_ARTIFACTS: Final = 1000
MOST_OF_ARTIFACT: Final = 100_000  # parts
MOST_TASKS: Final = 100  # of a page
MOST_CONFIGS: Final = 1000

State = Literal[
    "submitted",
    "working",
    "input_required",
    "auth_required",
    "completed",
    "failed",
    "canceled",
    "rejected",
]

STATES: Final[dict[str, State]] = {
    "TASK_STATE_SUBMITTED": "submitted",
    "TASK_STATE_WORKING": "working",
    "TASK_STATE_INPUT_REQUIRED": "input_required",
    "TASK_STATE_AUTH_REQUIRED": "auth_required",
    "TASK_STATE_COMPLETED": "completed",
    "TASK_STATE_FAILED": "failed",
    "TASK_STATE_CANCELED": "canceled",
    "TASK_STATE_REJECTED": "rejected",
}
_WAITING: Final = frozenset({"input_required", "auth_required"})
_ENDED: Final = frozenset({"completed", "failed", "canceled", "rejected"})


class RemoteMessage(Struct, frozen=True, kw_only=True):
    """What an agent spoken."""

    id: str
    parts: tuple[Part, ...]
    task: str | None = None
    context: str | None = None
    metadata: dict[str, Any] = {}


class RemoteStatus(Struct, frozen=True, kw_only=True):
    """How a task goes."""

    state: State
    message: RemoteMessage | None = None
    timestamp: str | None = None

    @property
    def is_over(self) -> bool:
        """Whether it has ended, one way or the other."""
        return self.state in _ENDED

    @property
    def is_waiting(self) -> bool:
        """Whether it needs something first."""
        return self.state in _WAITING


class RemoteArtifact(Struct, frozen=True, kw_only=True):
    """A piece of what comes of a task."""

    id: str
    parts: tuple[Part, ...]
    metadata: dict[str, Any] = {}


class RemoteTask(Struct, frozen=True, kw_only=True):
    """A task as it is now."""

    id: str
    context: str | None
    status: RemoteStatus
    artifacts: tuple[RemoteArtifact, ...] = ()
    metadata: dict[str, Any] = {}


class StatusUpdate(Struct, frozen=True, kw_only=True):
    """A task goes on."""

    task: str
    context: str | None
    status: RemoteStatus
    metadata: dict[str, Any] = {}


class ArtifactUpdate(Struct, frozen=True, kw_only=True):
    """A piece came, or more of it."""

    task: str
    artifact: RemoteArtifact
    append: bool = False


Update = RemoteTask | RemoteMessage | StatusUpdate | ArtifactUpdate


class RemoteTaskPage(Struct, frozen=True, kw_only=True):
    """Some tasks."""

    tasks: tuple[RemoteTask, ...]
    following: str = ""


class PushConfig(Struct, frozen=True, kw_only=True):
    """Where the updates of a task are seen. Of its secrets nothing is kept."""

    id: str
    url: str
    task: str


def read_update(given: object) -> Update:
    """The result of sending, or an event of a stream: exactly one of four."""
    page = _object(given, "the answer")
    found = [name for name in _READERS if name in page]
    if len(found) != 1:
        raise ProviderError("the answer is neither a task, a message nor an update")
    update: Update = _READERS[found[0]](page[found[0]])
    return update


def read_task(given: object) -> RemoteTask:
    """A task."""
    page = _object(given, "the task")
    artifacts = page.get("artifacts")
    artifacts = [] if artifacts is None else artifacts
    if not isinstance(artifacts, list) or len(artifacts) > MOST_ARTIFACTS:
        raise ProviderError(f"the task has no list of at most {MOST_ARTIFACTS} artifacts")
    found = tuple([_artifact(each) for each in artifacts])
    if len({each.id for each in found}) < len(found):
        raise ProviderError("two artifacts of the task have one id")
    return RemoteTask(
        id=_id(page, "id"),
        context=_context(page),
        status=_status(page),
        artifacts=found,
        metadata=_metadata(page),
    )


def read_tasks(given: object) -> RemoteTaskPage:
    """A page of tasks."""
    page = _object(given, "the list")
    tasks, following = page.get("tasks", []), page.get("nextPageToken", "")
    if not isinstance(tasks, list) or len(tasks) > MOST_TASKS:
        raise ProviderError(f"the answer has no list of at most {MOST_TASKS} tasks")
    if not isinstance(following, str) or len(following) > MOST_ID:
        raise ProviderError("the answer has no text as the token of its next page")
    return RemoteTaskPage(tasks=tuple([read_task(each) for each in tasks]), following=following)


def read_config(given: object) -> PushConfig:
    """A push configuration."""
    page = _object(given, "the configuration")
    url = page.get("url")
    if not isinstance(url, str) or not url.startswith(("https://", "http://")):
        raise ProviderError("the configuration has no URL")
    return PushConfig(id=_id(page, "id"), url=url, task=_id(page, "taskId"))


def read_configs(given: object) -> tuple[PushConfig, ...]:
    """All push configurations of a task."""
    listed = given if isinstance(given, list) else _object(given, "the list").get("configs", [])
    if not isinstance(listed, list) or len(listed) > MOST_CONFIGS:
        raise ProviderError(f"the answer has no list of at most {MOST_CONFIGS} configurations")
    return tuple([read_config(each) for each in listed])


def _message(given: object) -> RemoteMessage:
    page = _object(given, "the message")
    if page.get("role") not in {"ROLE_AGENT", "ROLE_UNSPECIFIED", None}:
        raise ProviderError("the message is not one of the agent")
    return RemoteMessage(
        id=_optional_id(page, "messageId") or "",
        parts=_parts(page),
        task=_optional_id(page, "taskId"),
        context=_context(page),
        metadata=_metadata(page),
    )


def _status_update(given: object) -> StatusUpdate:
    page = _object(given, "the update")
    return StatusUpdate(
        task=_id(page, "taskId"),
        context=_context(page),
        status=_status(page),
        metadata=_metadata(page),
    )


def _artifact_update(given: object) -> ArtifactUpdate:
    page = _object(given, "the update")
    return ArtifactUpdate(
        task=_id(page, "taskId"),
        artifact=_artifact(page.get("artifact")),
        append=page.get("append") is True,
    )


def _artifact(given: object) -> RemoteArtifact:
    page = _object(given, "the artifact")
    return RemoteArtifact(id=_id(page, "artifactId"), parts=_parts(page), metadata=_metadata(page))


def _status(page: dict[str, Any]) -> RemoteStatus:
    status = _object(page.get("status"), "the status")
    name = status.get("state")
    state = STATES.get(name) if isinstance(name, str) else None
    if state is None:
        raise ProviderError("the task is in no state that is known")
    message, timestamp = status.get("message"), status.get("timestamp")
    return RemoteStatus(
        state=state,
        message=None if message is None else _spoken(message),
        timestamp=timestamp if isinstance(timestamp, str) and len(timestamp) <= MOST_ID else None,
    )


def _spoken(given: object) -> RemoteMessage | None:
    """What is spoken beside a state; a message without a part says nothing."""
    page = _object(given, "the message")
    return _message(page) if page.get("parts") else None


def _parts(page: dict[str, Any]) -> tuple[Part, ...]:
    given = page.get("parts")
    if not isinstance(given, list) or len(given) > MOST_OF_ARTIFACT:
        raise ProviderError(f"there is no list of at most {MOST_OF_ARTIFACT} parts")
    try:
        # Each piece of a stream becomes a part of it: there may be more than of a message.
        pieces = [given[at : at + MOST_PARTS] for at in range(0, len(given) or 1, MOST_PARTS)]
        return tuple(chain.from_iterable([read_parts(each, "parts") for each in pieces]))
    except InvalidRequest as error:
        raise ProviderError(f"{error.facts['field']} {error.facts['reason']}") from None


def _metadata(page: dict[str, Any]) -> dict[str, Any]:
    value = page.get("metadata")
    return value if isinstance(value, dict) else {}


def _context(page: dict[str, Any]) -> str | None:
    return _optional_id(page, "contextId")


def _optional_id(page: dict[str, Any], name: str) -> str | None:
    return _id(page, name) if page.get(name) not in (None, "") else None


def _id(page: dict[str, Any], name: str) -> str:
    value = page.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= MOST_ID or not value.isprintable():
        raise ProviderError(f"'{name}' is no id")
    return value


def _object(given: object, what: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ProviderError(f"{what} is no object")
    return given


_READERS: Final[dict[str, Any]] = {
    "task": read_task,
    "message": _message,
    "statusUpdate": _status_update,
    "artifactUpdate": _artifact_update,
}
