"""The outbound half of A2A: what is sent to an agent elsewhere, and what it answers.

It is pure: it writes requests and reads answers. Sending them, following a task and being known are
`runtime.peers.a2a`'s.

    interfaces_of, wanted       where and how it is called   interface.py, credentials.py
    write_request               the eleven operations        request.py, legacy.py
    read_result                 an answer, out of its form   answer.py, reports.py
    read_update, read_task      what it says                 task.py
    UpdateReader                the same of a stream         stream.py
    AnswerEvents                        what of it is new, as events seen.py
    read_questions, place_of    what it waits for            questions.py
"""

from carnet.wire.dialects.a2a.client.answer import read_result
from carnet.wire.dialects.a2a.client.credentials import AUTHORIZATION, schemes_of, wanted
from carnet.wire.dialects.a2a.client.events import AnswerEvents
from carnet.wire.dialects.a2a.client.interface import HTTP_JSON, JSON_RPC, Interface, interfaces_of
from carnet.wire.dialects.a2a.client.questions import (
    NOBODY,
    PolicyReading,
    TaskPlace,
    answer_metadata,
    answer_parts,
    place_of,
    policy_parts,
    question_of,
    read_policies,
    read_questions,
)
from carnet.wire.dialects.a2a.client.reports import (
    ERROR,
    METHOD_NOT_FOUND,
    UNSUPPORTED,
    read_error,
    read_failure,
    read_refusal,
)
from carnet.wire.dialects.a2a.client.request import (
    ROUTES,
    A2aRequest,
    sending,
    write_message,
    write_request,
)
from carnet.wire.dialects.a2a.client.stream import UpdateReader
from carnet.wire.dialects.a2a.client.task import (
    ArtifactUpdate,
    PushConfig,
    RemoteArtifact,
    RemoteMessage,
    RemoteStatus,
    RemoteTask,
    RemoteTaskPage,
    StatusUpdate,
    Update,
    read_config,
    read_configs,
    read_task,
    read_tasks,
    read_update,
)

__all__ = [
    "AUTHORIZATION",
    "ERROR",
    "HTTP_JSON",
    "JSON_RPC",
    "METHOD_NOT_FOUND",
    "NOBODY",
    "ROUTES",
    "UNSUPPORTED",
    "A2aRequest",
    "AnswerEvents",
    "ArtifactUpdate",
    "Interface",
    "PolicyReading",
    "PushConfig",
    "RemoteArtifact",
    "RemoteMessage",
    "RemoteStatus",
    "RemoteTask",
    "RemoteTaskPage",
    "StatusUpdate",
    "TaskPlace",
    "Update",
    "UpdateReader",
    "answer_metadata",
    "answer_parts",
    "interfaces_of",
    "place_of",
    "policy_parts",
    "question_of",
    "read_config",
    "read_configs",
    "read_error",
    "read_failure",
    "read_policies",
    "read_questions",
    "read_refusal",
    "read_result",
    "read_task",
    "read_tasks",
    "read_update",
    "schemes_of",
    "sending",
    "wanted",
    "write_message",
    "write_request",
]
