"""Our own extension for what a turn waits for, and for the answer to it.

    up     urn:carnet:a2a:interrupt:v1   {interrupts: [{id, state, kind, message, ...}]}
    down   urn:carnet:a2a:interrupt:v1   {id or state, outcome, value}

The members of an interrupt are those of every other wire (`wire.dialects.policy`).

Law 1. The secret state travels unchanged. It is in no claim that is shown.
Law 2. An answer is in its form or the message is refused: nobody may guess what was granted.
Law 3. One that names neither an id nor a state answers the only interrupt of its task.
"""

from collections.abc import Sequence
from typing import Any, Final

from carnet.core.messages.events import Waiting
from carnet.core.messages.interrupt import Interrupt, Outcome, Resolution, StatedResolution
from carnet.core.money.amount import format_amount
from carnet.errors import InvalidRequest
from carnet.wire.dialects.a2a.extensions.row import (
    AnswerClaim,
    AnswerClaims,
    ExtensionClaim,
    ExtensionRow,
    Metadata,
    PayloadBroken,
    members,
    payload,
    word,
)
from carnet.wire.dialects.policy import interrupt_objects, read_interrupts
from carnet.wire.grammar import json

INTERRUPT_URI: Final = "urn:carnet:a2a:interrupt:v1"

MOST_ID: Final = 128
MOST_STATE: Final = 1024
MOST_VALUE_BYTES: Final = 16 * 1024

_OUTCOMES: Final[dict[object, Outcome]] = {"accepted": "accepted", "rejected": "rejected"}


def read(found: Sequence[Metadata], last_depth: int) -> ExtensionClaim | None:
    """The answer that a message brings."""
    del last_depth
    try:
        value = payload(found, INTERRUPT_URI)
        answer = None if value is None else _read_answer(members(value))
    except PayloadBroken as broken:
        raise InvalidRequest(f"metadata[{INTERRUPT_URI}]", str(broken)) from None
    if answer is None:
        return None
    return ExtensionClaim(answer=answer, shown={"id": answer.id, "outcome": answer.outcome})


def _read_answer(given: dict[str, Any]) -> AnswerClaim:
    outcome = _OUTCOMES.get(word(given, "outcome", 16))
    if outcome is None:
        raise PayloadBroken("has an outcome that is neither accepted nor rejected")
    value = given.get("value")
    if len(json.write(value)) > MOST_VALUE_BYTES:
        raise PayloadBroken(f"has a value of more than {MOST_VALUE_BYTES} bytes")
    return AnswerClaim(
        outcome=outcome,
        id=word(given, "id", MOST_ID),
        state=word(given, "state", MOST_STATE),
        value=value,
    )


def resolution_of(answer: AnswerClaim, asked: Sequence[Interrupt]) -> StatedResolution:
    """The answer to one of the interrupts that a task waits for; refused where it means none."""
    meant = [
        one
        for one in asked
        if answer.id in {None, one.id}
        and answer.state in {None, one.state}
        and answer.kind in {None, one.kind}
    ]
    if len(meant) != 1:
        raise InvalidRequest(f"metadata[{INTERRUPT_URI}].id", "must name one question of the task")
    resolution = Resolution(outcome=answer.outcome, value=answer.value)
    return StatedResolution(meant[0].state, resolution)


def ask(interrupts: Sequence[Interrupt]) -> dict[str, Any]:
    """What a turn waits for, as short as it must be."""
    return {INTERRUPT_URI: {"interrupts": interrupt_objects(Waiting(tuple(interrupts)))}}


def words_of(asked: Interrupt) -> str:
    """What a person is told of it: the question, what it costs and where to go."""
    price = ""
    if asked.amount is not None:
        price = f"{format_amount(asked.amount)} {asked.currency or ''}".strip()
    elif asked.other_amount is not None:
        price = " ".join(asked.other_amount.values())
    beside = "".join([f" ({price})" if price else "", f" {asked.url}" if asked.url else ""])
    return f"{asked.message}{beside}"


def answer(metadata: Metadata, currency: str) -> AnswerClaims | None:
    """What whoever we called waits for."""
    value = metadata.get(INTERRUPT_URI)
    if value is None:
        return None
    asked = read_interrupts(members(value).get("interrupts"), currency=currency)
    kinds = [{"id": each.id, "kind": each.kind} for each in asked]
    return AnswerClaims(interrupts=asked, claimed={"interrupt": kinds})


def reply(state: str, resolution: Resolution) -> dict[str, Any] | None:
    """The answer to what has this state; None where there is no state to name it by."""
    if not state:
        return None
    given = {"state": state, "outcome": resolution.outcome, "value": resolution.value}
    return {INTERRUPT_URI: {name: value for name, value in given.items() if value is not None}}


INTERRUPT: Final = ExtensionRow(
    secrets=((INTERRUPT_URI, "state"),),
    name="interrupt",
    uris=(INTERRUPT_URI,),
    keys=(INTERRUPT_URI,),
    is_own=True,
    is_declared=True,
    description="What a task waits for (approval, payment, sign-in, input), and the answer to it.",
    reads="the answer to an interrupt by its id or state; what an agent that we called waits for",
    writes="every interrupt of a task that waits; the answer toward agents that asked so",
    believes="an answer as much as its sender may answer, and once; a question is passed on",
    read=read,
    ask=ask,
    answer=answer,
    reply=reply,
)
