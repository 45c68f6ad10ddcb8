"""What a peer says when it does not answer: its nine codes as errors of ours.

Law 1. Of what a peer wrote only numbers and the nine words are kept, never its text (A65). The word
       is kept as the fact `peer_code`, so that a caller is told what the protocol said. A Carnet
       may also name one of our codes and the field it is about, which is a path of plain names;
       of a delegation that does not hold it may say why, in one of our own phrases (`REASONS`).
       Anything else that it wrote says nothing.
Law 2. A refusal is the end of it, unless the peer says that the same call may succeed later.
Law 3. What nothing explains is a fault. That an agent failed is what became of the call where a
       Carnet says so; others may mean anything by that word.
"""

import re
from typing import Final

from carnet.core.messages.events import Failed
from carnet.errors import (
    BY_CODE,
    AgentFailed,
    BudgetExceeded,
    CarnetError,
    ChainFinal,
    CircuitOpen,
    DelegationExceeded,
    DelegationInvalid,
    DelegationWidened,
    DepthExceeded,
    Fact,
    InvalidJson,
    PeerBusy,
    PeerRefused,
    PeerResponseInvalid,
    PeerUnreachable,
    ProviderError,
    ProviderTimeout,
    ProviderUnavailable,
)
from carnet.wire.dialects.refusal import (
    BY_CALLEE,
    BY_PEER,
    DEFAULT_WAIT_SECONDS,
    UNRECOGNISED,
    limit_of,
    part_of,
    unexplained,
    waiting,
)
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


# What a Carnet says of a call whose agent failed, or that failed further on: it was dealt with.
_DEALT_WITH: Final = frozenset(
    {
        AgentFailed.code,
        *(ProviderError.code, ProviderUnavailable.code, ProviderTimeout.code, CircuitOpen.code),
        *(PeerBusy.code, PeerRefused.code, PeerUnreachable.code, PeerResponseInvalid.code),
    }
)


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
    reported = _read_error(body)
    code = _read_code(reported)
    if status < 400:  # noqa: PLR2004  neither an answer nor a refusal: a redirect, say
        return ProviderError(f"the answer has the status {status}")
    if code == UNRECOGNISED:
        return unexplained(status, wait)
    if (chain := read_chain(carnet_code, _read_message(reported))) is not None:
        return chain
    error = _explained(status, code, wait)
    if error.facts.get("by") == BY_CALLEE and carnet_code in _DEALT_WITH:
        error.facts["by"] = BY_PEER
    if isinstance(error, PeerRefused) and carnet_code and carnet_code in BY_CODE:  # it says why
        error.facts["peer_reason"] = error.detail = carnet_code
        if (field := read_field(carnet_field)) is not None:
            error.facts["peer_field"] = field
            error.detail += f" about the field '{field}'"
        error.facts |= _part_of(carnet_code, _read_message(reported))
        if (why := read_detail(carnet_code, _read_message(reported))) is not None:
            error.facts["peer_detail"] = why
            error.detail += f", {why}"
    return error


def _part_of(carnet_code: str, message: object) -> dict[str, Fact]:
    """The part that is used up of the budget which we gave, by the sentence of a Carnet."""
    found = _SHORT.match(message) if isinstance(message, str) else None
    is_short = carnet_code == BudgetExceeded.code and found is not None
    return part_of({"budget": "call", "part": found[1]}) if is_short and found else {}


def read_failure(error: object) -> CarnetError:
    """The error that stands in an answer of status 200, or at the end of a stream."""
    code = _read_code(error)
    if code == UNRECOGNISED:
        return ProviderError("the answer holds an error of no known code")
    explained = _explained(STATUSES[code], code, None)
    if explained.facts.get("by") == BY_CALLEE:  # it had begun to answer, which is the end of it
        explained.facts["by"] = BY_PEER
    return explained


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
    facts: dict[str, Fact] = {"peer_status": status, "peer_code": code}
    later = waiting(wait)
    if code == RATE_LIMITED:
        return PeerBusy(**({"retry_after": DEFAULT_WAIT_SECONDS} | facts | later))
    if code == TOKEN_BUDGET_EXCEEDED and later:
        return PeerBusy(**facts, **later)
    if code == AGENT_UNAVAILABLE:
        # 503 with a time is a gateway that has not begun; without one the agent may have failed.
        if status == 503 and later:  # noqa: PLR2004
            return PeerBusy(**facts, **later)
        return ProviderError(**facts, **later, by=BY_CALLEE)
    return PeerRefused(**facts)


# -------------------------------- why a Carnet says that a delegation does not hold, in our phrases

CLAIMS: Final = frozenset(
    {"aud", "scope", "exp", "maxDepth", "once", "bud.money", "bud.calls", "bud.tokens"}
)
REASONS: Final = frozenset(
    {
        "it cannot be read",
        "it has expired",
        "it was issued in the future",
        "it does not hold yet",
        "it is meant to hold for longer than 86400 seconds",
        "it is not three parts of unpadded base64url",
        "it is a token of another kind",
        "it lacks a claim or has one of a wrong kind",
        "it was given to somebody else",
        "it is for another agent",
        "its issuer is not known here",
        "its issuer neither holds nor was addressed by the one before it",
        "its signature does not hold",
        "the key of its issuer is no longer valid",
        "the key of its issuer cannot be fetched now",
        "the skill is not in its scope",
        "no hop is left",
        "it has more than 8 links",
    }
)

_LINK: Final = r"Link ([1-8]) of the delegation"
_INVALID: Final = re.compile(rf"{_LINK} does not hold: ([^.]{{1,100}})\.")
_WIDENED: Final = re.compile(rf"{_LINK} widens '([A-Za-z.]{{1,16}})'")
# In the sentences of our own errors; larger numbers are no depth.
_LIMIT_OF: Final = re.compile(r" The limit belongs to ([a-z_]{1,32})\.", re.ASCII)
_TOO_DEEP: Final = re.compile(r" depth ([0-9]{1,9}); the limit here is ([0-9]{1,9})\.", re.ASCII)
_FINAL: Final = re.compile(r" final hop \(([0-9]{1,9}) of ([0-9]{1,9})\) ", re.ASCII)
_SHORT: Final = re.compile(r"The budget of this call has no ([a-z]{1,16}) left: ", re.ASCII)
_EXCEEDED: Final = re.compile(r"The delegation does not cover this call: ([^.]{1,100})\.")


def read_chain(code: str | None, message: object) -> CarnetError | None:
    """What a Carnet says of a chain that is at its end, which is ours as much as its own.

    It is terminal, whichever hop has said so (R1).
    """
    text = message if isinstance(message, str) else ""
    if code == DepthExceeded.code:
        found, names = _TOO_DEEP.search(text), ("observed", "limit")
    elif code == ChainFinal.code:
        found, names = _FINAL.search(text), ("hop", "hops")
    else:
        return None
    numbers = [int(digits) for digits in found.groups()] if found else []
    facts: dict[str, Fact] = dict(zip(names, numbers, strict=False))
    whose = _LIMIT_OF.search(text)
    facts |= {} if whose is None else limit_of(whose[1])
    return Failed(code, facts).error()


def read_detail(code: str, message: object) -> str | None:
    """What the message of a Carnet says beyond its code, or None."""
    text = message if isinstance(message, str) else ""
    if code == DelegationInvalid.code and (found := _INVALID.match(text)):
        return f"link {found[1]}: {found[2]}" if found[2] in REASONS else f"link {found[1]}"
    if code == DelegationWidened.code and (found := _WIDENED.match(text)):
        return f"link {found[1]} widens {found[2]}" if found[2] in CLAIMS else f"link {found[1]}"
    if code == DelegationExceeded.code and (found := _EXCEEDED.match(text)):
        return found[1] if found[1] in REASONS else None
    return None
