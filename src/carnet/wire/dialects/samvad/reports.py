"""What a peer says when it does not answer: its nine codes as errors of ours.

Law 1. Of what a peer wrote only numbers and the nine words are kept, never its text (A65). The word
       is kept as the fact `peer_code`, so that a caller is told what the protocol said. A Carnet
       may also name one of our codes and the field it is about, which is a path of plain names;
       of a delegation that does not hold it may say why, in one of our own phrases (`reasons`).
Law 2. A refusal is the end of it, unless the peer says that the same call may succeed later.
Law 3. What nothing explains is a fault, and no reason to send anything again.
"""

from typing import Final

from carnet.errors import (
    BY_CODE,
    CarnetError,
    Fact,
    InvalidJson,
    PeerBusy,
    PeerRefused,
    ProviderError,
)
from carnet.wire.dialects.refusal import (
    BY_PEER,
    UNRECOGNISED,
    UNTOLD_WAIT_SECONDS,
    unexplained,
    waiting,
)
from carnet.wire.dialects.samvad.reasons import read_detail
from carnet.wire.grammar import json
from carnet.wire.grammar.field_name import read_field
from carnet.wire.grammar.retry_after import read_wait

AUTH_FAILED: Final = "AUTH_FAILED"
REPLAY_DETECTED: Final = "REPLAY_DETECTED"
SKILL_NOT_FOUND: Final = "SKILL_NOT_FOUND"
SCHEMA_INVALID: Final = "SCHEMA_INVALID"
INJECTION_DETECTED: Final = "INJECTION_DETECTED"
DELEGATION_EXCEEDED: Final = "DELEGATION_EXCEEDED"
RATE_LIMITED: Final = "RATE_LIMITED"
TOKEN_BUDGET_EXCEEDED: Final = "TOKEN_BUDGET_EXCEEDED"  # noqa: S105  a word of the protocol
AGENT_UNAVAILABLE: Final = "AGENT_UNAVAILABLE"

# The protocol's words, and the status that its text gives each (R12).
STATUSES: Final = {
    AUTH_FAILED: 401,
    REPLAY_DETECTED: 401,
    SKILL_NOT_FOUND: 404,
    SCHEMA_INVALID: 400,
    INJECTION_DETECTED: 400,
    DELEGATION_EXCEEDED: 400,
    RATE_LIMITED: 429,
    TOKEN_BUDGET_EXCEEDED: 429,
    AGENT_UNAVAILABLE: 500,
}

# What each says about a call that we made, and what to do; for people.
MEANINGS: Final = {
    AUTH_FAILED: (
        "The other side does not know our key, or the skill asks for more than a signature.",
        "Give its operator our identity and public key, which 'carnet keys list' shows.",
    ),
    REPLAY_DETECTED: (
        "The other side has seen this nonce before, or its clock and ours are too far apart.",
        "Set the clock of this machine and call again.",
    ),
    SKILL_NOT_FOUND: (
        "There is no such skill, or no such agent.",
        "See what there is: carnet agents inspect ADDRESS",
    ),
    SCHEMA_INVALID: (
        "What was sent does not fit the schema of the skill, or the protocol.",
        "Compare it with the schema: carnet agents inspect ADDRESS --format json",
    ),
    INJECTION_DETECTED: (
        "The payload holds a phrase that is used to take over language models.",
        "Rephrase it; the operator there can switch the scan off.",
    ),
    DELEGATION_EXCEEDED: (
        "The delegation does not cover the call, or the chain of agents is too long or comes back.",
        "Ask its issuer for more --scope or --depth, or answer from what there is; do not repeat.",
    ),
    RATE_LIMITED: (
        "The other side takes no more calls from us for the moment.",
        "Wait as long as Retry-After says and call again.",
    ),
    TOKEN_BUDGET_EXCEEDED: (
        "What we may use up there is used up.",
        "Ask the operator there for more.",
    ),
    AGENT_UNAVAILABLE: (
        "The agent failed, or is not there for the moment.",
        "Call again later; the operator there finds the cause in the log under this run.",
    ),
}


def read_refusal(
    status: int,
    body: bytes,
    *,
    retry_after: str | None = None,
    date: str | None = None,
    carnet_code: str | None = None,
    carnet_field: str | None = None,
) -> CarnetError:
    """The error of ours that a peer's refusal stands for.

    `retry_after`, `date`, `carnet_code` and `carnet_field` are the headers of these names; the body
    may be anything.
    """
    wait = read_wait(retry_after, date)
    told = _read_error(body)
    code = _read_code(told)
    if status < 400:  # noqa: PLR2004  neither an answer nor a refusal: a redirect, say
        return ProviderError(f"the answer has the status {status}")
    if code == UNRECOGNISED:
        return unexplained(status, wait)
    error = _explained(status, code, wait)
    if isinstance(error, PeerRefused) and carnet_code and carnet_code in BY_CODE:  # it says why
        error.facts["peer_reason"] = error.detail = carnet_code
        if (field := read_field(carnet_field)) is not None:
            error.facts["peer_field"] = field
            error.detail += f" about the field '{field}'"
        if (why := read_detail(carnet_code, _read_message(told))) is not None:
            error.facts["peer_detail"] = why
            error.detail += f", {why}"
    return error


def read_failure(error: object) -> CarnetError:
    """The error that stands in an answer of status 200, or at the end of a stream."""
    code = _read_code(error)
    if code == UNRECOGNISED:
        return ProviderError("the answer holds an error of no known code")
    return _explained(STATUSES[code], code, None)


def _read_error(body: bytes) -> object:
    try:
        return json.read_object(body).get("error")
    except InvalidJson:
        return None


def _read_message(error: object) -> object:
    return error.get("message") if isinstance(error, dict) else None


def _read_code(error: object) -> str:
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, str) and code in STATUSES else UNRECOGNISED


def _explained(status: int, code: str, wait: int | None) -> CarnetError:
    told: dict[str, Fact] = {"peer_status": status, "peer_code": code}
    later = waiting(wait)
    if code == RATE_LIMITED:
        return PeerBusy(**({"retry_after": UNTOLD_WAIT_SECONDS} | told | later))
    if code == TOKEN_BUDGET_EXCEEDED and later:
        return PeerBusy(**told, **later)
    if code == AGENT_UNAVAILABLE:
        # 503 with a time is a gateway that has not begun; without one the agent may have failed.
        if status == 503 and later:  # noqa: PLR2004
            return PeerBusy(**told, **later)
        return ProviderError(**told, by=BY_PEER)
    return PeerRefused(**told)
