"""The history of a task: what it was asked, what it asked for, and what it was answered.

Law. The last messages are told where fewer are wanted than there are.
"""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import json as plain_json

from carnet.core.messages.interrupt import InterruptRecord
from carnet.wire.dialects.a2a.form import Form
from carnet.wire.dialects.a2a.message import USER, write_message

_WORDS: Final = {"accepted": "approved", "rejected": "denied"}

Messages = list[dict[str, Any]]


def history_of(
    asked: dict[str, Any] | None,
    *,
    task: str,
    context: str,
    form: Form,
    answered: Sequence[InterruptRecord] = (),
) -> Messages:
    """The messages of a task, the first of them what it was asked, as far as they are wanted."""
    ids = {"taskId": task, "contextId": context}
    found: Messages = [] if asked is None else [{"role": USER, **asked, **ids}]
    for record in answered:
        found += _exchange(record, ids)
    if form.reply is not None and not answered:
        found.append({"role": USER, **form.reply, **ids})
    return found if form.history is None else found[max(0, len(found) - form.history) :]


def _exchange(record: InterruptRecord, ids: dict[str, str]) -> Messages:
    """A question and its answer, each as a message."""
    asked, name = record.interrupt, f"{ids['taskId']}.{record.interrupt.id}"
    question = write_message(name, [{"text": asked.message}], **ids)
    if record.outcome is None:
        return [question]
    value = None if record.value is None else plain_json.decode(record.value)
    part: dict[str, Any] = {"data": value}
    if value is None or isinstance(value, str):
        part = {"text": _WORDS[record.outcome] if value is None else value}
    return [question, write_message(f"{name}.answer", [part], role=USER, **ids)]
