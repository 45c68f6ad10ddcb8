"""What a message answers that goes on with a task.

    metadata of an extension     ours, or one of kagent, BeeAI, x402 or Mentionable: as that says
    text or data, one question   of kind `input`: that is the value; of any other kind: a word for
                                 yes or no

Law 1. A message that answers nothing is refused, with what would; the task waits on.
Law 2. Which of several questions is meant must be claims.
Law 3. Silence, and words that we do not know, are never a yes. Who speaks in the form of an
       extension and says no answer in it has said none: its words beside it are not looked at.
Law 4. An answer is as long as a person's may be: all of a task's are read whenever it is shown.
"""

from collections.abc import Sequence
from typing import Final

from carnet.core.call import Claim
from carnet.core.messages.events import DataPart, Message
from carnet.core.messages.interrupt import (
    Interrupt,
    InterruptRecord,
    Resolution,
    StatedResolution,
)
from carnet.errors import InvalidRequest, PolicyStateInvalid
from carnet.wire.dialects.a2a.extensions import (
    AnswerClaim,
    InboundClaims,
    read_inbound,
    resolution_of,
)
from carnet.wire.dialects.a2a.members import read_optional
from carnet.wire.grammar import json
from carnet.wire.grammar.headers import Headers

YES: Final = frozenset({"approve", "approved", "accept", "accepted", "yes", "ok", "done"})
NO: Final = frozenset({"deny", "denied", "reject", "rejected", "no"})
MOST_BYTES: Final = 64 * 1024  # of a value, as JSON
_PARTS: Final = "message.parts"


def answer_of(claim: Claim, records: Sequence[InterruptRecord]) -> StatedResolution:
    """What a message answers, of all that its task waits for."""
    asked = [record.interrupt for record in records]
    claims = _claims(claim)
    answer = claims.resolution
    if answer is not None and answer.is_resumption:
        return _resumption(answer, asked)
    if answer is not None:
        return resolution_of(answer, asked)
    if claims.unanswered is not None:
        raise InvalidRequest("message.metadata", claims.unanswered)
    if len(asked) > 1:
        raise InvalidRequest(_PARTS, "must say which of several questions it answers, by its id")
    return StatedResolution(asked[0].state, _in_words(claim.ask.messages[0], asked[0]))


def _resumption(answer: AnswerClaim, asked: Sequence[Interrupt]) -> StatedResolution:
    """The answer to what has this state; any other state is refused alike."""
    if answer.state not in {one.state for one in asked}:
        raise PolicyStateInvalid
    resolution = Resolution(outcome=answer.outcome, value=answer.value)
    return StatedResolution(answer.state or "", resolution)


def _claims(claim: Claim) -> InboundClaims:
    """What its metadata says, which has been read once before: nothing of it is refused now."""
    found = json.read_object(claim.request)
    message, request = read_optional(found, "message", ""), read_optional(found, "metadata", "")
    return read_inbound(message.get("metadata"), request, headers=Headers(()), last_depth=0)


def _in_words(message: Message, asked: Interrupt) -> Resolution:
    """The answer of somebody who knows no extension."""
    word = message.text.strip().lower().rstrip(".!")
    if asked.kind == "input":
        data = [part.value for part in message.parts if isinstance(part, DataPart)]
        value = data[0] if data else message.text
        if len(json.write(value)) > MOST_BYTES:
            raise InvalidRequest(_PARTS, f"must be an answer of at most {MOST_BYTES} bytes")
        return Resolution(outcome="accepted", value=value)
    if word in YES:
        return Resolution(outcome="accepted")
    if word in NO:
        return Resolution(outcome="rejected")
    raise InvalidRequest(_PARTS, "must be 'approve' or 'deny', or name an outcome")
