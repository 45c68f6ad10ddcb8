"""What a peer says when it does not answer: its refusals and failures as errors of ours.

It does not decide who may retry or how often; it says what happened, and who said so (`by`).

Law 1. Of what a peer wrote only numbers and words that we know ourselves are kept, never its text
       (A65); of a field that it names, a path of plain names.
Law 2. What a peer says of its own callers (who, money, load) is about us, not about ours: it is
       told as `PeerRefused`, or as `PeerBusy` where the same call may succeed later.
Law 3. An outcome that the peer reports in a word of ours keeps its meaning. That of its agent, or
       of a call further on, has been dealt with there, and is marked `by="peer"`: the hop next to a
       fault repeats, the hops above do not. A fault of the gateway is marked `by="callee"`: nobody
       has repeated that yet.
Law 4. A status that nothing explains is a fault. It is marked `by="status"`.
Law 5. What a failed call has cost is told beside its error, in our currency or not at all.
Law 6. A policy beside a refusal is what the peer waits for, and no failure; a chain that is too
       deep stays one. What nobody can answer is a failure with a code of its own (R43).
Law 7. A model's refusal keeps its meaning (R51), inside a stream as well: each has a code of ours,
       and the provider's own words are for the operator alone, cut at a bound.
"""

import re
from typing import Final

import msgspec

from carnet import errors
from carnet.core.messages.events import Failed, Usage
from carnet.core.messages.interrupt import Interrupt
from carnet.errors import (
    BY_CODE,
    CarnetError,
    ChainFinal,
    DepthExceeded,
    Fact,
    InvalidJson,
    PeerBusy,
    PeerRefused,
    ProviderError,
    ProviderTimeout,
    ProviderUnavailable,
)
from carnet.wire.dialects.openai.answer import ReportedUsage, read_usage
from carnet.wire.dialects.openai.refusals import REFUSALS
from carnet.wire.dialects.outbound import Refusal
from carnet.wire.dialects.policy import POLICY_STATUSES, over_of, read_interrupts
from carnet.wire.dialects.refusal import (
    ASKED_AGAIN,
    BY_CALLEE,
    BY_PEER,
    BY_STATUS,
    DEFAULT_WAIT_SECONDS,
    STAMP,
    UNRECOGNISED,
    limit_of,
    part_of,
    unexplained,
    waiting,
)
from carnet.wire.grammar import json
from carnet.wire.grammar.field_name import read_field
from carnet.wire.grammar.retry_after import read_wait

# Not begun, and welcome later. Nothing else that a peer says is a reason to send a call again.
_BUSY: Final = frozenset(
    {
        errors.RateLimited,
        errors.TooManyCalls,
        errors.TooManyStreams,
        errors.Overloaded,
        errors.ShuttingDown,
        errors.InProgress,
    }
)

# Begun, and this is what came of it.
_OUTCOMES: Final[dict[type[CarnetError], type[CarnetError]]] = {
    errors.AgentFailed: ProviderError,
    errors.ProviderError: ProviderError,
    errors.Internal: ProviderError,
    errors.OutcomeUnknown: ProviderError,
    errors.ProviderUnavailable: ProviderUnavailable,
    errors.CircuitOpen: ProviderUnavailable,
    errors.StorageUnavailable: ProviderUnavailable,
    errors.ProviderTimeout: ProviderTimeout,
    errors.HeaderTimeout: ProviderTimeout,
    errors.BodyTimeout: ProviderTimeout,
    errors.PeerBusy: PeerBusy,
    errors.ModelRateLimited: PeerBusy,
    errors.ModelQuotaExceeded: PeerBusy,
}

# Of those, faults of the gateway itself.
_ITS_OWN: Final[tuple[type[CarnetError], ...]] = (
    errors.Internal,
    errors.OutcomeUnknown,
    errors.StorageUnavailable,
    errors.HeaderTimeout,
    errors.BodyTimeout,
)

# About the chain, which is ours as much as the peer's.
_CHAIN: Final[dict[type[CarnetError], tuple[str, str]]] = {
    DepthExceeded: ("observed", "limit"),
    ChainFinal: ("hop", "hops"),
}

_Places = list[dict[str, object]]


def read_refusal(
    status: int,
    body: bytes,
    *,
    currency: str,
    retry_after: str | None = None,
    date: str | None = None,
) -> Refusal:
    """The error of ours that a peer's refusal stands for, and what it charges.

    `retry_after` and `date` are the headers of these names; the body may be anything.
    """
    places = _read_places(body)
    code = _known_code(places)
    wait = read_wait(retry_after, date)
    if status < 400:  # noqa: PLR2004  neither an answer nor a refusal: a redirect, say
        error: CarnetError = ProviderError(f"the answer has the status {status}")
    elif code == UNRECOGNISED:
        error = unexplained(status, wait)
    else:
        error = _explained(status, code, places, wait)
    asked = read_policy(places[0], currency) if places and status in POLICY_STATUSES else ()
    over = over_of(asked)
    return Refusal(
        error=over or error,
        interrupts=() if over else asked,
        usage=_read_charge(places, currency),
    )


def read_policy(error: object, currency: str) -> tuple[Interrupt, ...]:
    """What the error of a peer asks for, if it is a policy and the chain is not too deep."""
    if not isinstance(error, dict) or BY_CODE.get(str(error.get("code"))) in _CHAIN:
        return ()
    listed = error.get("interrupts")
    asked = read_interrupts(listed, currency=currency) if listed else ()
    return asked or read_interrupts(error.get("interrupt"), currency=currency)


def read_failure(error: object) -> Failed:
    """The terminal event that an error inside a peer's stream stands for."""
    places = [error] if isinstance(error, dict) else []
    code = _known_code(places)
    if code == UNRECOGNISED:
        return Failed(ProviderError.code)
    explained = _explained(REFUSALS[BY_CODE[code]][0], code, places, None)
    if explained.facts.get("by") == BY_CALLEE:  # it had begun to answer, which is the end of it
        explained.facts["by"] = BY_PEER
    return Failed.of(explained)


def _explained(status: int, code: str, places: _Places, wait: int | None) -> CarnetError:
    kind = BY_CODE[code]
    if kind in _CHAIN and status in {413, 429}:  # R1: the code first, then the status
        facts = {name: _number(places, name) for name in _CHAIN[kind]}
        known: dict[str, Fact] = {name: facts[name] for name in facts if facts[name] is not None}
        for place in places:
            known |= limit_of(place.get(STAMP))
        return Failed(code, known).error()
    if kind in _BUSY:
        seconds = DEFAULT_WAIT_SECONDS if wait is None else wait
        return PeerBusy(peer_status=status, peer_code=code, retry_after=seconds)
    if kind in _OUTCOMES:
        further: dict[str, Fact] = {}
        if _OUTCOMES[kind] is PeerBusy:
            own: dict[str, Fact] = {"peer_status": status, "peer_code": code}
            further = _further(places) if kind is PeerBusy else own
        by = BY_CALLEE if kind in _ITS_OWN else BY_PEER
        return _OUTCOMES[kind](**further, by=by, **waiting(wait))
    if kind is PeerRefused:
        return PeerRefused(**_further(places))
    return PeerRefused(peer_status=status, peer_code=code, **_field(kind, places))


def _field(kind: type[CarnetError], places: _Places) -> dict[str, Fact]:
    """The field of a skill's input that the peer's schema refuses, if it names one plainly.

    Of the budget that we gave it, the part that is used up.
    """
    if kind is errors.BudgetExceeded:
        return part_of(places[0])
    if kind is not errors.SchemaInvalid:
        return {}
    field = read_field(places[0].get("field"))
    return {} if field is None else {"peer_field": field}


def _further(places: _Places) -> dict[str, Fact]:
    """What the peer's own peer has said."""
    code = _known_code(places, "peer_code")
    return {"peer_status": _number(places, "peer_status") or 0, "peer_code": code}


# ------------------------------------------------------------------ of a model

MOST_WORDS: Final = 1000  # characters of what a provider says

_TOO_LONG: Final = re.compile(
    r"context[ _]?(?:length|window)|maximum context|prompt is too long|too many (?:input )?tokens",
    re.ASCII | re.IGNORECASE,
)
_QUOTA: Final = re.compile(
    r"insufficient[_ ](?:quota|balance|credit|fund)|quota[_ ]exceeded|exceeded your current quota"
    r"|billing",
    re.ASCII | re.IGNORECASE,
)


def read_model_refusal(
    status: int,
    body: bytes,
    *,
    currency: str,
    retry_after: str | None = None,
    date: str | None = None,
) -> Refusal:
    """What the refusal of a model stands for, with the provider's words."""
    del currency  # what a model costs is ours to say
    words = _words(body)
    wait = waiting(read_wait(retry_after, date))
    kind = _kind_of(status, words)
    if kind is None and status < 400:  # noqa: PLR2004  neither an answer nor a refusal
        error: CarnetError = ProviderError(f"the answer has the status {status}")
    elif kind is None:
        error = unexplained(status, read_wait(retry_after, date))
    else:
        error = kind(by=BY_STATUS, peer_status=status, **wait)
    error.words = f"{status} {words}".strip()
    error.detail = error.detail or error.words
    return Refusal(error=error)


# What the errors inside a stream are called, where no status comes with them.
_NAMES: Final[tuple[tuple[re.Pattern[str], int], ...]] = tuple(
    (re.compile(named, re.ASCII | re.IGNORECASE), status)
    for named, status in (
        (r"insufficient|quota|billing|rate_?limit|too_?many", 429),
        (r"api_?key|authentication|unauthorized", 401),
        (r"permission|forbidden", 403),
        (r"not_?found", 404),
        (r"context_?length|content|invalid_?|bad_?request|unsupported", 400),
        (r"overloaded|unavailable", 503),
        (r"time_?d?_?out", 504),
        (r"server|internal|api_?error", 500),
    )
)


def read_model_failure(error: object) -> CarnetError:
    """What an error inside the stream of a model stands for, with the provider's words."""
    body = msgspec.json.encode({"error": error})
    status = _status_in(error) if isinstance(error, dict) else None
    if status is not None:
        return read_model_refusal(status, body, currency="").error
    failure = ProviderError(_words(body))
    failure.words = failure.detail
    return failure


def _status_in(error: dict[str, object]) -> int | None:
    """The status that an error would have had: it says so, or its name does."""
    named = [str(error.get(name) or "") for name in ("status", "code", "type")]
    for name in named:
        if re.fullmatch("[45][0-9]{2}", name, re.ASCII):
            return int(name)
    for name in named:
        for pattern, status in _NAMES:
            if pattern.search(name[:MOST_WORDS]):
                return status
    return None


def _kind_of(status: int, words: str) -> type[CarnetError] | None:
    by_status: dict[int, type[CarnetError]] = {
        401: errors.ModelKeyRefused,
        402: errors.ModelQuotaExceeded,
        403: errors.ModelKeyRefused,
        404: errors.ModelNotFound,
        429: errors.ModelQuotaExceeded if _QUOTA.search(words) else errors.ModelRateLimited,
    }
    if status in by_status:
        return by_status[status]
    if not 400 <= status < 500 or status in ASKED_AGAIN:  # noqa: PLR2004  the class of refusals
        return None
    return errors.ContextTooLong if _TOO_LONG.search(words) else errors.ModelRefused


def _words(body: bytes) -> str:
    """What a provider says, on one line: its error, or whatever it sent."""
    places = _read_places(body)
    parts = (
        [str(places[0].get(name) or "") for name in ("type", "code", "message")] if places else []
    )
    text = " ".join(filter(None, parts)) or body[: 4 * MOST_WORDS].decode(errors="replace")
    plain = "".join(sign if sign.isprintable() else " " for sign in text[:MOST_WORDS])
    return " ".join(plain.split())


# ------------------------------------------------------------------ parts of what came


def _read_places(body: bytes) -> _Places:
    """Where a code may stand: in the object under `error`, then at the top."""
    try:
        top = json.read_object(body)
    except InvalidJson:
        return []
    inner = top.get("error")
    return [inner, top] if isinstance(inner, dict) else [top]


def _known_code(places: _Places, name: str = "code") -> str:
    for place in places:
        code = place.get(name)
        if isinstance(code, str) and code in BY_CODE:
            return code
    return UNRECOGNISED


def _number(places: _Places, name: str) -> int | None:
    """A number that the peer tells; None where it does not, which is not 0."""
    for place in places:
        value = place.get(name)
        if type(value) is int and 0 <= value <= json.MAX_INTEGER:
            return value
    return None


def _read_charge(places: _Places, currency: str) -> Usage | None:
    top = places[-1] if places else {}
    try:
        reported = msgspec.convert(top.get("usage"), ReportedUsage)
    except msgspec.ValidationError:
        return None  # the refusal itself has been understood
    usage = read_usage(reported, currency)
    return usage if usage.cost else None
