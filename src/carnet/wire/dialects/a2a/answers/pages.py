"""What is told when somebody asks about what exists: tasks, where they are told of, the card."""

from typing import Any

from msgspec import convert

from carnet.errors import RouteNotFound
from carnet.wire.dialects.a2a.answers.task import task_of
from carnet.wire.dialects.a2a.answers.writer import write_reply
from carnet.wire.dialects.a2a.form import PLAIN, Form
from carnet.wire.dialects.a2a.request import write_page
from carnet.wire.dialects.dialect import (
    CallbackList,
    CallbackView,
    CardView,
    Question,
    QuestionResult,
    Removed,
    Reply,
    TaskPage,
    TaskQuestion,
    TaskView,
)


def tell(result: QuestionResult, question: Question) -> Reply:
    """Write the result of a question in the form that it was asked in."""
    form = form_of(question)
    members, kind = _members(result, form)
    return write_reply(form, members, kind)


def _members(result: QuestionResult, form: Form) -> tuple[dict[str, Any], str]:
    """What is told, and which of the answers it is."""
    match result:
        case TaskView():
            return task_of(result, form), "task"
        case TaskPage():
            return _page(result, form), "task"
        case CallbackView():
            return _callback(result), "push"
        case CallbackList():
            configs = [_callback(one) for one in result.callbacks]
            more = {} if result.after is None else {"nextPageToken": write_page(result.after, 0)}
            return {"configs": configs, **more}, "pushes"
        case CardView() | Removed():
            return (result.members, "card") if isinstance(result, CardView) else ({}, "empty")
    raise RouteNotFound


def form_of(question: Question) -> Form:
    """How a question was written."""
    return convert(question.form, Form) if isinstance(question, TaskQuestion) else PLAIN


def _page(page: TaskPage, form: Form) -> dict[str, Any]:
    following = "" if page.following is None else write_page(*page.following)
    none: dict[str, Any] = {"artifacts": []} if form.artifacts else {}
    return {
        "tasks": [none | task_of(each, form) for each in page.tasks],
        "nextPageToken": following,
        "pageSize": page.size,
        "totalSize": page.total,
    }


def _callback(view: CallbackView) -> dict[str, Any]:
    """Where a task is told of, without the secret that is shown there."""
    written = {"id": view.name, "taskId": view.task, "url": view.url}
    if view.token is not None:
        written["token"] = view.token
    known = {} if view.scheme is None else {"authentication": {"scheme": view.scheme}}
    return written | known
