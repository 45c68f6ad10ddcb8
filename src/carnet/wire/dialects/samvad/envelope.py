"""The envelope: who asks whom for what, when, and within which trace. Read and written here.

It judges the form of what is said and believes none of it: whether the sender is who it says, the
time is near and the nonce is new, the guards find out.

Law 1. A field has its form or the request is refused, by name; a field that we do not know is
       refused as well (R19). `null` is absent where the protocol allows a field to be absent.
Law 2. A refusal never repeats what was sent.
Law 3. A moment has one form: RFC 3339 in UTC, by one pattern. What a calendar does not have (a 24th
       hour, a 60th second) is refused.
Law 4. `read_envelope(write_envelope(x), ...) == x`; what is written has its keys sorted and no
       spaces, as the protocol's own clients send it.
"""

import json as plain_json
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated, Any, Final, get_args

from msgspec import Meta, Struct, ValidationError, convert, field
from msgspec.json import Decoder

from carnet.core.people.address import check_identity
from carnet.core.people.identity import Mode, Secret
from carnet.core.people.proof import SECOND_US
from carnet.errors import (
    AddressInvalid,
    CarnetError,
    InvalidRequest,
    NonceInvalid,
    TimestampInvalid,
)
from carnet.wire.grammar import json

MOST_SKILL_CHARACTERS: Final = 64
MOST_TRACE_CHARACTERS: Final = 128  # as a run id
MOST_SPAN_CHARACTERS: Final = 256  # as a turn id
MOST_URL_CHARACTERS: Final = 2048
MOST_TOKEN_CHARACTERS: Final = 8192

BEARER: Final = "bearer"
SCHEMES: Final = (BEARER, "none")

_MODES: Final[dict[object, Mode]] = {mode: mode for mode in get_args(Mode)}
_FIELDS: Final = frozenset(
    {
        *("from", "to", "skill", "mode", "nonce", "timestamp", "traceId", "spanId"),
        *("parentSpanId", "delegationToken", "auth", "callbackUrl", "payload"),
    }
)

NONCE: Final = re.compile(r"[!-~]{8,64}", re.ASCII)
_TRACE: Final = re.compile(rf"(?=.{{1,{MOST_TRACE_CHARACTERS}}}\Z)[!-~](?:[ -~]*[!-~])?", re.ASCII)
_SPAN: Final = re.compile(rf"(?=.{{1,{MOST_SPAN_CHARACTERS}}}\Z)[!-~](?:[ -~]*[!-~])?", re.ASCII)
_URL: Final = re.compile(rf"[!-~]{{1,{MOST_URL_CHARACTERS}}}", re.ASCII)
_TOKEN: Final = re.compile(rf"[!-~]{{0,{MOST_TOKEN_CHARACTERS}}}", re.ASCII)
_MOMENT: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9])"
    r"(?:\.([0-9]{1,9}))?(?:Z|\+00:00)",
    re.ASCII,
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FRACTION_DIGITS: Final = 6
_NAMES: Final = frozenset({str})
_PLAIN: Final = frozenset({str, bool, type(None)})
_FEW: Final = 128


class Envelope(Struct, frozen=True, kw_only=True):
    """What the body of a request says."""

    sender: str  # an identity in its stored form, as is `recipient`
    recipient: str
    skill: str
    mode: Mode
    nonce: str
    at: int  # microseconds since the epoch
    trace_id: str
    span_id: str
    parent_span_id: str | None = None
    delegation_token: str | None = None
    auth_scheme: str | None = None
    auth: Secret | None = None
    callback_url: str | None = None
    payload: dict[str, Any] = {}


def read_envelope(body: bytes, *, mode: Mode) -> Envelope:
    """Read the body of a request; `mode` is the one that its endpoint serves.

    A refusal carries the trace id, if there was one to be read: the answer to it names it.
    """
    fields = json.read_object(body)
    try:
        return _read_plain(fields, mode) or _read(fields, mode)
    except CarnetError as error:
        trace_id = fields.get("traceId")
        if isinstance(trace_id, str) and _TRACE.fullmatch(trace_id):
            error.run = trace_id
        raise


class _Skimmed(Struct, gc=False):
    """What tells who has signed; the rest is passed over without being built."""

    sender: str = field(name="from")
    recipient: str = field(name="to")
    nonce: Annotated[str, Meta(pattern=rf"\A(?:{NONCE.pattern})\Z")]
    timestamp: str


_skim: Final = Decoder(_Skimmed).decode


def skim(body: bytes) -> Envelope | None:
    """What an envelope says of its sender, and nothing else of it; None if that is not to be told.

    Of a name that stands twice the last is taken: the reader refuses such a body afterwards.
    """
    try:
        skimmed = _skim(body)
        return Envelope(
            sender=check_identity(skimmed.sender),
            recipient=check_identity(skimmed.recipient),
            skill="",
            mode="sync",
            nonce=skimmed.nonce,
            at=read_moment(skimmed.timestamp),
            trace_id="",
            span_id="",
        )
    except (ValueError, RecursionError, AddressInvalid, TimestampInvalid):
        return None


class _Plain(Struct, forbid_unknown_fields=True, gc=False):
    """The envelope as most are, without the fields that few have; the library judges it in C."""

    sender: str = field(name="from")
    recipient: str = field(name="to")
    skill: Annotated[str, Meta(pattern=rf"\A[ -~]{{1,{MOST_SKILL_CHARACTERS}}}\Z")]
    mode: Mode
    nonce: Annotated[str, Meta(pattern=rf"\A(?:{NONCE.pattern})\Z")]
    timestamp: str
    trace_id: Annotated[str, Meta(pattern=rf"\A(?:{_TRACE.pattern})\Z")] = field(name="traceId")
    span_id: Annotated[str, Meta(pattern=rf"\A(?:{_SPAN.pattern})\Z")] = field(name="spanId")
    payload: dict[str, Any]
    parent_span_id: Annotated[str, Meta(pattern=rf"\A(?:{_SPAN.pattern})\Z")] | None = field(
        default=None, name="parentSpanId"
    )
    delegation_token: str | None = field(default=None, name="delegationToken")


def _read_plain(fields: dict[str, Any], mode: Mode) -> Envelope | None:
    """The envelope if nothing is wrong with it; None for all others, right or wrong."""
    try:
        plain = convert(fields, _Plain)
        sender, recipient = check_identity(plain.sender), check_identity(plain.recipient)
    except (ValidationError, AddressInvalid):
        return None
    if plain.mode != mode:
        return None
    return Envelope(
        sender=sender,
        recipient=recipient,
        skill=plain.skill,
        mode=mode,
        nonce=plain.nonce,
        at=read_moment(plain.timestamp),
        trace_id=plain.trace_id,
        span_id=plain.span_id,
        parent_span_id=plain.parent_span_id,
        delegation_token=plain.delegation_token,
        payload=plain.payload,
    )


def _read(fields: dict[str, Any], mode: Mode) -> Envelope:
    if not fields.keys() <= _FIELDS:  # samvad:envelope:unknown-field
        raise InvalidRequest("envelope", "holds a field that the protocol does not have")
    scheme, auth = _read_auth(fields.get("auth"))
    return Envelope(
        sender=_read_identity(fields, "from"),
        recipient=_read_identity(fields, "to"),
        skill=_read_skill(fields.get("skill")),
        mode=_read_mode(fields.get("mode"), mode),
        nonce=_read_nonce(fields.get("nonce")),
        at=read_moment(fields.get("timestamp")),
        trace_id=_read_id(fields, "traceId", _TRACE, MOST_TRACE_CHARACTERS),
        span_id=_read_id(fields, "spanId", _SPAN, MOST_SPAN_CHARACTERS),
        parent_span_id=_read_parent(fields),
        delegation_token=_read_delegation(fields.get("delegationToken")),
        auth_scheme=scheme,
        auth=auth,
        callback_url=_read_callback(fields.get("callbackUrl"), mode),
        payload=_read_payload(fields.get("payload")),
    )


def _read_identity(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise InvalidRequest(name, "must be an agent:// identity")
    try:
        return check_identity(value)
    except AddressInvalid as error:
        raise AddressInvalid(f"in '{name}', {error.facts['reason']}") from None


def _read_skill(value: object) -> str:
    if (
        not isinstance(value, str)
        or not 1 <= len(value) <= MOST_SKILL_CHARACTERS
        or not value.isprintable()
    ):
        raise InvalidRequest("skill", f"must be 1 to {MOST_SKILL_CHARACTERS} printable characters")
    return value


def _read_mode(value: object, served: Mode) -> Mode:
    mode = _MODES.get(value) if isinstance(value, str) else None
    if mode is None:
        raise InvalidRequest("mode", f"must be one of {', '.join(_MODES.values())}")
    if mode != served:  # samvad:envelope:mode-endpoint
        raise InvalidRequest("mode", f"must be {served} at this endpoint")
    return mode


def _read_nonce(value: object) -> str:
    if not isinstance(value, str) or NONCE.fullmatch(value) is None:
        raise NonceInvalid
    return value


def _read_id(fields: dict[str, Any], name: str, form: re.Pattern[str], most: int) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or form.fullmatch(value) is None:
        raise InvalidRequest(name, f"must be 1 to {most} visible ASCII characters")
    return value


def _read_parent(fields: dict[str, Any]) -> str | None:
    if fields.get("parentSpanId") is None:
        return None
    return _read_id(fields, "parentSpanId", _SPAN, MOST_SPAN_CHARACTERS)


def _read_auth(value: object) -> tuple[str | None, Secret | None]:
    """The scheme and the credential. An empty one is none: the skill may not ask for it."""
    if value is None:
        return None, None
    if not isinstance(value, dict):
        raise InvalidRequest("auth", "must be an object")
    scheme = value.get("scheme", BEARER)
    if scheme not in SCHEMES:
        raise InvalidRequest("auth.scheme", f"must be one of {', '.join(SCHEMES)}")
    token = _read_token(value.get("token"), "auth.token")
    return scheme, Secret(token) if token and scheme == BEARER else None


def _read_token(value: object, name: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or _TOKEN.fullmatch(value) is None:
        raise InvalidRequest(
            name, f"must be at most {MOST_TOKEN_CHARACTERS} visible ASCII characters"
        )
    return value


def _read_delegation(value: object) -> str | None:
    """The text of the token, whatever it is: what is wrong with one is told after the signature."""
    if value is not None and not isinstance(value, str):
        raise InvalidRequest("delegationToken", "must be a text")
    return value


def _read_callback(value: object, mode: Mode) -> str | None:
    if value is None:
        return None
    if mode != "async":
        raise InvalidRequest("callbackUrl", "is for the mode async alone")
    if not isinstance(value, str) or _URL.fullmatch(value) is None:
        raise InvalidRequest("callbackUrl", "must be a URL")
    return value


def _read_payload(value: object) -> dict[str, Any]:
    if value is None:  # samvad:envelope:payload
        return {}
    if not isinstance(value, dict):
        raise InvalidRequest("payload", "must be an object")
    return value


def read_moment(value: object) -> int:
    """A timestamp as microseconds since the epoch."""
    found = _MOMENT.fullmatch(value) if type(value) is str else None
    if found is None:
        raise TimestampInvalid
    digits = f"{found[2] or ''}000000"[:_FRACTION_DIGITS]
    return _seconds_at(found[1]) * SECOND_US + int(digits)


@lru_cache(maxsize=16)  # those who call at the same time write the same second
def _seconds_at(second: str) -> int:
    """A whole second of the calendar, already in its form, as seconds since the epoch."""
    try:
        moment = datetime.fromisoformat(second).replace(tzinfo=UTC)
    except ValueError:
        raise TimestampInvalid from None
    return (moment - _EPOCH) // timedelta(seconds=1)


def write_moment(at: int) -> str:
    """A moment as the protocol's own clients write it."""
    return f"{_written(at // SECOND_US)}.{at % SECOND_US:06}Z"


@lru_cache(maxsize=16)
def _written(second: int) -> str:
    """A whole second since the epoch, without its zone."""
    return (_EPOCH + timedelta(seconds=second)).isoformat().removesuffix("+00:00")


def write_envelope(envelope: Envelope) -> bytes:
    """The body of a request, without the fields that have nothing to say."""
    fields: dict[str, Any] = {
        "from": envelope.sender,
        "to": envelope.recipient,
        "skill": envelope.skill,
        "mode": envelope.mode,
        "nonce": envelope.nonce,
        "timestamp": write_moment(envelope.at),
        "traceId": envelope.trace_id,
        "spanId": envelope.span_id,
        "payload": envelope.payload,
    }
    if envelope.parent_span_id is not None:
        fields["parentSpanId"] = envelope.parent_span_id
    if envelope.delegation_token is not None:
        fields["delegationToken"] = envelope.delegation_token
    if envelope.auth_scheme is not None or envelope.auth is not None:
        fields["auth"] = _auth_member(envelope)
    if envelope.callback_url is not None:
        fields["callbackUrl"] = envelope.callback_url
    return _canonical(fields, envelope.payload)


def _auth_member(envelope: Envelope) -> dict[str, str]:
    token = {} if envelope.auth is None else {"token": envelope.auth.reveal()}
    return {"scheme": envelope.auth_scheme or BEARER, **token}


def canonical(value: object) -> bytes:
    """JSON as the protocol's clients write it: keys sorted, no spaces, nothing escaped in vain."""
    return _canonical(value, value)


def _canonical(value: object, doubtful: object) -> bytes:
    """The same for a value of which only this part may hold other than texts."""
    try:
        if _is_plain(doubtful):
            return json.canonical(value)
        return plain_json.dumps(
            value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        ).encode()
    except (TypeError, ValueError, RecursionError):
        raise InvalidRequest("payload", "cannot be written as JSON") from None


def _is_plain(value: object) -> bool:
    """Whether a value is small and of texts, whole numbers and what holds them.

    Every writer of JSON spells such a value alike, and the one in C is the faster one; of numbers
    with a fraction each has its own spelling.
    """
    found: list[Any] = [value]
    for one in found:  # what is found within is looked at in turn
        kind = type(one)
        if kind is dict and _NAMES.issuperset(map(type, one)):
            found += one.values()
        elif kind is list:
            found += one
        elif not (kind in _PLAIN or (kind is int and abs(one) <= json.MAX_INTEGER)):
            return False
        if kind not in _PLAIN and len(found) > _FEW:
            return False
    return True
