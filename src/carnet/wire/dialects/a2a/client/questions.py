"""What a task waits for, as interrupts of ours, and the messages that answer them.

    input-required   Interrupt(kind="input")         the next message of the same task
    auth-required    Interrupt(kind="sign_in")       the same, or nothing: credentials go elsewhere

Law 1. An interrupt keeps where it is answered: the task, its context, and which of its questions it
       is. That stands in the record of our turn, so that any replica can bring the answer, later.
Law 2. A question is known by the id of the message that asks it: asked again, it is the same one.
Law 3. Who asks by an extension that we know is answered by it; of everybody else the state says
       what is asked for, and the answer is in words.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.messages.events import DataPart, Link, Part
from carnet.core.messages.interrupt import Interrupt, Resolution
from carnet.wire.dialects.a2a.client.task import MOST_ID, RemoteStatus
from carnet.wire.dialects.a2a.extensions import read_answer, write_reply
from carnet.wire.dialects.policy import MOST_WORDS, read_interrupts
from carnet.wire.grammar import json

KEPT: Final = "a2a"  # the member of an interrupt that says where it is answered

_INPUT: Final = "The agent asks for input before it goes on."
_SIGN_IN: Final = "The agent asks to be authorised before it goes on."
_DECLINED: Final = "declined"


class TaskPlace(Struct, frozen=True, kw_only=True):
    """Where an answer goes."""

    task: str
    context: str | None = None
    question: str  # the message that asks
    name: str = ""  # what its asker calls the interrupt, where it says so


def read_questions(
    status: RemoteStatus,
    task: str,
    context: str | None,
    *,
    currency: str,
    metadata: Mapping[str, Any] | None = None,
) -> tuple[Interrupt, ...]:
    """What a task that waits asks for: at least one. `metadata` stands beside its status."""
    place = TaskPlace(task=task, context=context, question=question_of(status))
    message = {} if status.message is None else status.message.metadata
    found = _named({**(metadata or {}), **message}, place, currency)
    return found or (_plain(status, place),)


def question_of(status: RemoteStatus) -> str:
    """The name of what a task waits for: the same as long as it is the same question."""
    spoken = status.message
    if spoken is not None and spoken.id:
        return spoken.id
    words = None if spoken is None else [_digested(part) for part in spoken.parts]
    digest = blake2b(json.canonical([status.state, status.timestamp, words]), digest_size=12)
    return f"q-{digest.hexdigest()}"


def place_of(asked: Interrupt) -> TaskPlace | None:
    """Where an interrupt of our turn is answered; None if no task asks for it."""
    kept = (asked.more or {}).get(KEPT)
    if not isinstance(kept, dict):
        return None
    task, question = _kept_id(kept, "task"), _kept_id(kept, "question")
    if task is None or question is None:
        return None
    return TaskPlace(
        task=task,
        context=_kept_id(kept, "context"),
        question=question,
        name=_kept_id(kept, "name") or "",
    )


def answer_parts(asked: Interrupt, answer: Resolution) -> tuple[Part, ...]:
    """The answer in words, for whoever reads nothing else of it."""
    if not answer.accepted:
        return (_DECLINED,) if asked.kind == "input" else ("rejected",)
    if answer.value is None:
        return ("accepted",)
    return (answer.value,) if isinstance(answer.value, str) else (DataPart(answer.value),)


def answer_metadata(
    asked: Interrupt, place: TaskPlace, answer: Resolution
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The same by the extension that it was asked by, and its URIs; nothing where it was by none.

    Of those the state is our own, which says nothing to whoever asks.
    """
    return write_reply(asked.state, answer) if place.name else ({}, ())


def _named(metadata: dict[str, Any], place: TaskPlace, currency: str) -> tuple[Interrupt, ...]:
    found = read_answer(metadata, currency=currency).interrupts
    return tuple([_placed(asked, replace(place, name=asked.id)) for asked in found])


def _plain(status: RemoteStatus, place: TaskPlace) -> Interrupt:
    parts = () if status.message is None else status.message.parts
    is_sign_in = status.state == "auth_required"
    entry = {
        "kind": "sign_in" if is_sign_in else "input",
        "id": None,
        "message": _words(parts) or (_SIGN_IN if is_sign_in else _INPUT),
        "url": next((part.url for part in parts if isinstance(part, Link)), None),
    }
    found = read_interrupts(entry, currency="")  # which bounds and cleans what is shown
    return _placed(found[0], place)


def _placed(asked: Interrupt, place: TaskPlace) -> Interrupt:
    kept = {"task": place.task, "question": place.question}
    if place.context is not None:
        kept["context"] = place.context
    if place.name:
        kept["name"] = place.name
    name = json.canonical([place.task, place.question, place.name])
    own = f"int_{blake2b(name, digest_size=12).hexdigest()}"
    return replace(asked, id=own, more={**(asked.more or {}), KEPT: kept})


def _words(parts: Sequence[Part]) -> str:
    texts = [part for part in parts if isinstance(part, str)]
    return "\n".join(texts)[: 4 * MOST_WORDS]


def _digested(part: Part) -> object:
    return part if isinstance(part, str) else json.canonical(part).decode()


def _kept_id(kept: dict[str, Any], name: str) -> str | None:
    value = kept.get(name)
    return value if isinstance(value, str) and 0 < len(value) <= MOST_ID else None
