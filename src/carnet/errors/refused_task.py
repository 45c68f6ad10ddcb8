"""Refusals of what is asked about tasks, and by the agents that run them."""

from carnet.errors.base import Refused


class TaskNotCancelable(Refused, code="task_not_cancelable", status=409):
    """The task has ended: there is nothing left to cancel."""

    template = "The task has ended already."
    hint = "Ask for the task to see how it ended."


class OperationUnsupported(Refused, code="operation_unsupported", status=400, public=("reason",)):
    """The task is in a state in which this cannot be asked of it."""

    template = "This cannot be asked of the task now: {reason}."
    hint = "Ask for the task to see its state; send a message without a task id to begin a new one."

    def __init__(self, detail: str = "", /, *, reason: str = "it has ended") -> None:
        """`reason` is a phrase of ours."""
        super().__init__(detail, reason=reason)


class TaskRejected(Refused, code="rejected", status=422):
    """The agent has decided not to take the task on."""

    template = "The agent does not take this on."
    hint = "Ask for something else, or ask another agent: its card says what it does."
