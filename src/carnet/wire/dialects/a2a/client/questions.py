"""What a task waits for, as interrupts of ours, and the messages that answer them.

    input-required   Interrupt(kind="input")         the next message of the same task
    auth-required    Interrupt(kind="sign_in")       the same, or nothing: credentials go elsewhere

Law 1. An interrupt keeps where it is answered: the task, its context, and which of its questions it
       is. That stands in the record of our turn, so that any replica can bring the answer, later.
Law 2. A question is known by the id of the message that asks it: asked again, it is the same one.
Law 3. Who asks by an extension that we know is answered by it; of everybody else the state says
       what is asked for, and the answer is in words.
Law 4. Who asks by a policy part is called again as before, with what resolves it beside: to the
       same task where that waits, and anew where there is none any more.
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
from carnet.wire.dialects.a2a.extensions.questions.policy_part import (
    FORM,
    authority_of,
    bound,
    part_of,
    read_parts,
)
from carnet.wire.dialects.a2a.extensions.row import PayloadBroken
from carnet.wire.dialects.policy import MOST_WORDS, read_interrupts
from carnet.wire.grammar import json

KEPT: Final = "a2a"  # the member of an interrupt that says where it is answered

_INPUT: Final = "The agent asks for input before it goes on."
_SIGN_IN: Final = "The agent asks to be authorised before it goes on."
_DECLINED: Final = "declined"


class PolicyReading(Struct, frozen=True, kw_only=True):
    """What is known of an agent when its policy parts are read."""

    is_advertised: bool = False  # its card has the extension
    hosts: frozenset[str] = frozenset()  # that its links may lead to
    issuer: str = ""  # the domain whose keys it signs with


NOBODY: Final = PolicyReading()


class TaskPlace(Struct, frozen=True, kw_only=True):
    """Where an answer goes. Without a task the call is made again, with the answer beside it."""

    task: str = ""
    context: str | None = None
    question: str  # the message that asks
    name: str = ""  # what its asker calls the interrupt, where it says so
    form: str = ""  # the extension that it asks by
    issuer: str = ""  # the domain of who asks, where it leads to a page of its own

    @property
    def is_policy(self) -> bool:
        """Whether it is asked by a policy part: the call is made again with what resolves it."""
        return self.form == FORM


def read_questions(
    status: RemoteStatus,
    task: str,
    context: str | None,
    *,
    currency: str,
    metadata: Mapping[str, Any] | None = None,
    reading: PolicyReading = NOBODY,
) -> tuple[Interrupt, ...]:
    """What a task that waits asks for: at least one. `metadata` stands beside its status."""
    place = TaskPlace(task=task, context=context, question=question_of(status))
    message = {} if status.message is None else status.message.metadata
    found = _named({**(metadata or {}), **message}, place, currency, reading)
    parts = () if found or status.message is None else status.message.parts
    asked = found or _of_parts(policy_parts(parts, reading), place, currency, reading)
    return asked or (_plain(status, place),)


def read_policies(
    parts: Sequence[Any],
    metadata: Mapping[str, Any],
    *,
    context: str | None,
    currency: str,
    reading: PolicyReading,
) -> tuple[Interrupt, ...]:
    """What an answer asks for that is none of a task which waits: the call is made again then.

    `parts` are policy parts that were found in it.
    """
    found = read_answer(metadata, currency=currency)
    question = f"p-{_digest(list(parts) or sorted(metadata))}"
    place = TaskPlace(context=context, question=question)
    if found.form == FORM:
        return _placed_policies(found.interrupts, place, reading)
    return _of_parts(parts, place, currency, reading)


def policy_parts(
    parts: Sequence[Part], reading: PolicyReading, *, has_succeeded: bool = False
) -> list[Any]:
    """The policy parts among the parts of a message or an artifact."""
    values = [part.value for part in parts if isinstance(part, DataPart)]
    advertised = reading.is_advertised
    found = [
        part_of(value, is_advertised=advertised, has_succeeded=has_succeeded) for value in values
    ]
    return [part for part in found if part is not None]


def _of_parts(
    parts: Sequence[Any], place: TaskPlace, currency: str, reading: PolicyReading
) -> tuple[Interrupt, ...]:
    try:
        asked = read_parts(parts, currency)
    except PayloadBroken:
        return ()
    return _placed_policies(asked, place, reading)


def _placed_policies(
    asked: Sequence[Interrupt], place: TaskPlace, reading: PolicyReading
) -> tuple[Interrupt, ...]:
    found = [bound(each, reading.hosts) for each in asked]
    return tuple(
        [
            _placed(each, replace(place, name=each.id, form=FORM, issuer=_issuer(each, reading)))
            for each in found
        ]
    )


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
    form = _kept_id(kept, "form") or ""
    if question is None or (task is None and form != FORM):
        return None
    return TaskPlace(
        task=task or "",
        context=_kept_id(kept, "context"),
        question=question,
        name=_kept_id(kept, "name") or "",
        form=form,
        issuer=_kept_id(kept, "issuer") or "",
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


def _named(
    metadata: dict[str, Any], place: TaskPlace, currency: str, reading: PolicyReading
) -> tuple[Interrupt, ...]:
    found = read_answer(metadata, currency=currency)
    if found.form == FORM:
        return _placed_policies(found.interrupts, place, reading)
    return tuple(
        [
            _placed(asked, replace(place, name=asked.id, issuer=_issuer(asked, reading)))
            for asked in found.interrupts
        ]
    )


def _issuer(asked: Interrupt, reading: PolicyReading) -> str:
    """Who may say that it was done at the page that it leads to: whose page it is."""
    is_theirs = asked.url is not None and authority_of(asked.url) in reading.hosts
    return reading.issuer if is_theirs else ""


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
    given = {"task": place.task, "question": place.question, "context": place.context}
    given |= {"name": place.name, "form": place.form, "issuer": place.issuer}
    kept = {name: value for name, value in given.items() if value}
    own = f"int_{_digest([place.task, place.question, place.name])}"
    return replace(asked, id=own, more={**(asked.more or {}), KEPT: kept})


def _words(parts: Sequence[Part]) -> str:
    texts = [part for part in parts if isinstance(part, str)]
    return "\n".join(texts)[: 4 * MOST_WORDS]


def _digest(value: object) -> str:
    return blake2b(json.canonical(value), digest_size=12).hexdigest()


def _digested(part: Part) -> object:
    return part if isinstance(part, str) else json.canonical(part).decode()


def _kept_id(kept: dict[str, Any], name: str) -> str | None:
    value = kept.get(name)
    return value if isinstance(value, str) and 0 < len(value) <= MOST_ID else None
