"""What a turn waits for, as wires carry it up, and the answer that a request brings down.

    up     objects beside an error       interrupt_object, read_interrupts
           the header `carnet-interrupt` write_header, read_header      the same in base64url
    down   the header `carnet-resolution: STATE;outcome=accepted|rejected[;value=:BASE64:]`
                                         write_resolution, read_resolution

Law 1. The secret state travels unchanged, and so do members that we do not know.
Law 2. What a peer writes is bounded and checked member by member; what is not in its form was not
       said. A kind that we do not know is kept: it is never an answer.
Law 3. A resolution is in its form or the request is refused; who resolves is not told by it.
Law 4. What would be too long for those on the way is shortened: first what is wide, then words,
       then whole interrupts. The states of those that are left stay whole.
"""

import re
from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final

from msgspec.structs import replace

from carnet.core.messages.events import Waiting
from carnet.core.messages.interrupt import (
    MOST_DATA_BYTES,
    Interrupt,
    Outcome,
    Resolution,
    StatedResolution,
    check_together,
)
from carnet.core.money.amount import format_amount, parse_amount
from carnet.core.people.address import asker, check_identity, is_agent_uri, parse_handle
from carnet.errors import (
    AddressInvalid,
    CarnetError,
    InvalidJson,
    InvalidRequest,
    LegalRestriction,
    MalformedCallerContext,
    PolicyForbidden,
)
from carnet.wire.dialects.refusal import BY_PEER
from carnet.wire.grammar import json
from carnet.wire.grammar.headers import Headers
from carnet.wire.grammar.structured import StructuredInvalid, read_base64
from carnet.wire.grammar.times import micros_of

INTERRUPT: Final = "carnet-interrupt"
RESOLUTION: Final = "carnet-resolution"
RESOLUTION_START: Final = b"\n" + RESOLUTION.encode()
RESOLUTION_COVERED: Final = b'"%b"' % RESOLUTION.encode()  # as the text that is signed names it

MOST_INTERRUPTS: Final = 8  # of one answer, that are read
MOST_SHOWN: Final = 32  # of one turn, that are told at a time; the others are asked later
MOST_WORDS: Final = 1000  # characters of a message
MOST_OPTIONS: Final = 32
MOST_LEVELS: Final = 32  # of a schema, and of what we do not know
MOST_HEADER_BYTES: Final = 8 * 1024  # of `carnet-interrupt`, as we write it
MOST_BODY_BYTES: Final = 112 * 1024  # of all interrupts in a body, or a comment of a stream
MOST_READ_BYTES: Final = 256 * 1024  # of a header or a comment
MOST_RESOLUTION_BYTES: Final = 16 * 1024
MOST_SENT_BYTES: Final = 12 * 1024  # of one that we send on: the head has other fields beside it

# The statuses beside which a peer's policy is one.
POLICY_STATUSES: Final = frozenset({401, 402, 403, 429, 451, 503})

_FEW_WORDS: Final = 60  # characters of a message in a header that is too long otherwise
_STATE: Final = r"[!-+\--:<-~]{1,1024}"  # visible, without what separates
_STATED: Final = re.compile(_STATE, re.ASCII)
_VISIBLE: Final = re.compile(r"[!-~]{1,128}", re.ASCII)
_URL: Final = re.compile(r"https?://[!-~]{1,2040}", re.ASCII | re.IGNORECASE)
_RESOLUTION: Final = re.compile(
    rf"({_STATE});[ ]?outcome=(accepted|rejected)(?:;[ ]?value=:([A-Za-z0-9+/]*={{0,2}}):)?",
    re.ASCII,
)
_KNOWN: Final = frozenset(
    {
        *("id", "state", "kind", "message", "amount", "currency", "url"),
        *("retry_after", "expires_at", "origin", "schema", "options", "without"),
    }
)
_WIDE: Final = ("id", "state", "kind", "message", "amount", "currency", "url", "expires_at")
_NARROW: Final = ("id", "state", "kind", "message", "amount", "currency")
_OVER: Final[dict[str, type[CarnetError]]] = {
    "legal": LegalRestriction,
    "forbidden": PolicyForbidden,
}
_SILENT: Final = "The agent waits for an answer before it goes on."


# ------------------------------------------------------------------ up: written


def addressed(waiting: Waiting, agent: str, domain: str) -> Waiting:
    """The same with the address of whoever asks, which is the agent itself where nobody is named.

    `agent` is that of the turn, and `domain` is ours.
    """
    return Waiting(
        tuple(
            [
                replace(asked, origin=asker(asked.origin, agent, domain))
                for asked in waiting.interrupts
            ]
        )
    )


def interrupt_object(asked: Interrupt) -> dict[str, Any]:
    """An interrupt as JSON carries it; what there is not, is left out."""
    given = {
        "id": asked.id,
        "state": asked.state or None,
        "kind": asked.kind,
        "message": asked.message,
        "amount": None if asked.amount is None else format_amount(asked.amount),
        "currency": asked.currency,
        "url": asked.url,
        "retry_after": asked.retry_after,
        "expires_at": asked.expires_at,
        "origin": asked.origin,
        "schema": asked.schema,
        "options": list(asked.options) or None,
        "without": asked.without or None,
    }
    known = {name: value for name, value in given.items() if value is not None}
    return known | {name: value for name, value in (asked.more or {}).items() if name not in known}


def interrupt_objects(waiting: Waiting, most_bytes: int = MOST_BODY_BYTES) -> list[dict[str, Any]]:
    """All of them, the oldest first, as short as they must be."""
    whole = [interrupt_object(asked) for asked in waiting.interrupts[:MOST_SHOWN]]
    forms = (
        whole,
        [_cut(each, (*_WIDE, "retry_after", "origin")) for each in whole],
        [_cut(each, (*_NARROW, "origin")) for each in whole],
    )
    fewer = [forms[-1][:count] for count in range(len(whole) - 1, 0, -1)]
    fitting = (objects for objects in (*forms, *fewer) if len(json.write(objects)) <= most_bytes)
    return next(fitting, forms[-1][:1])


def digest_content(waiting: Waiting) -> dict[str, Any]:
    """What the receipt of a turn that waits is about: the same for who asks and for who reads it.

    Words and addresses may have been shortened on the way; these may not.
    """
    asked = [interrupt_object(each) for each in waiting.interrupts[:MOST_INTERRUPTS]]
    names = ("id", "state", "kind", "amount")
    return {"waits": [[each.get(name) for name in names] for each in asked]}


def write_header(waiting: Waiting) -> str:
    """The value of `carnet-interrupt`."""
    return _encode(interrupt_objects(waiting, MOST_HEADER_BYTES * 3 // 4))


def write_comment(waiting: Waiting) -> str:
    """The same for a comment of a stream, which has more room."""
    return f"{INTERRUPT} {_encode(interrupt_objects(waiting))}"


def _cut(written: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    cut = {name: written[name] for name in names if name in written}
    return cut | {"message": written["message"][:_FEW_WORDS]}


def _encode(objects: list[dict[str, Any]]) -> str:
    return urlsafe_b64encode(json.write(objects)).rstrip(b"=").decode()


# ------------------------------------------------------------------ up: read


def read_interrupts(value: object, *, currency: str) -> tuple[Interrupt, ...]:
    """What a peer asks for, one object or a list of them; nothing where it is no policy."""
    entries = value if isinstance(value, list) else [value]
    found: dict[str, Interrupt] = {}
    for place, entry in enumerate(entries[:MOST_INTERRUPTS]):
        asked = _read_one(entry, place, currency) if isinstance(entry, dict) else None
        if asked is not None:
            found.setdefault(asked.id, asked)
    return tuple(found.values())


def read_header(text: str | None, *, currency: str) -> tuple[Interrupt, ...]:
    """What a peer asks for by `carnet-interrupt`."""
    if text is None or len(text) > MOST_READ_BYTES or not text.isascii():
        return ()
    try:
        value = json.read(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, InvalidJson):
        return ()
    return read_interrupts(value, currency=currency)


def read_comment(comment: str, *, currency: str) -> tuple[Interrupt, ...]:
    """What a peer asks for in a comment of a stream, if it is this one."""
    name, _, value = comment.partition(" ")
    return read_header(value, currency=currency) if name == INTERRUPT else ()


def over_of(interrupts: Sequence[Interrupt]) -> CarnetError | None:
    """The failure that a turn ends in for what nobody can answer (R43), with the words for it."""
    for asked in interrupts:
        if asked.kind in _OVER:
            error = _OVER[asked.kind](by=BY_PEER)
            error.words = error.detail = asked.message
            error.facts["said"] = asked.message
            return error
    return None


def passed_on(waiting: Waiting, *, key: bytes, callee: str, domain: str) -> Waiting:
    """What an agent elsewhere waits for, as our own turn does.

    It has a name of ours: people answer by it, and nobody elsewhere can choose the name of another
    question. Who asks is told by an address that is not ours.

    Args:
        waiting: What it waits for.
        key: Of our turn.
        callee: The address of whom we called, empty where it has none.
        domain: Ours.
    """
    return Waiting(
        tuple(
            [
                replace(
                    asked,
                    id=own_id(key, asked.id),
                    origin=_origin(asked.origin, domain) or callee or None,
                )
                for asked in waiting.interrupts
            ]
        )
    )


def own_id(key: bytes, name: str) -> str:
    """Our name for what somebody elsewhere asks for, in the turn that has this key."""
    return f"int_{blake2b(name.encode(), key=key, digest_size=12).hexdigest()}"


def _origin(named: str | None, domain: str) -> str | None:
    """The address that a peer says is asking, if it is one and none of ours."""
    if named is None:
        return None
    try:
        if is_agent_uri(named):
            host = check_identity(named).partition("://")[2]
        else:
            handle = parse_handle(named)
            named, host = str(handle), handle.domain
    except AddressInvalid:
        return None
    return None if host == domain or host.endswith(f".{domain}") else named


def _read_one(entry: dict[str, Any], place: int, currency: str) -> Interrupt | None:
    kind = _text(entry.get("kind"), _VISIBLE)
    if kind is None:
        return None
    amount, more = _read_amount(entry, currency)
    schema = entry.get("schema")
    asked = Interrupt(
        kind=kind,
        message=_words(entry.get("message")),
        id=_text(entry.get("id"), _VISIBLE) or _name(entry, place),
        state=_text(entry.get("state"), _STATED) or "",
        url=_text(entry.get("url"), _URL),
        amount=amount,
        currency=currency if amount is not None else None,
        retry_after=_count(entry.get("retry_after")),
        expires_at=_moment(entry.get("expires_at")),
        origin=_text(entry.get("origin"), _VISIBLE),
        schema=schema if isinstance(schema, dict) else None,
        options=_read_options(entry.get("options")),
        without=entry.get("without") is True,
        more={name: entry[name] for name in entry if name not in _KNOWN} | more or None,
    )
    return kept(asked)


def kept(asked: Interrupt) -> Interrupt | None:
    """The same as far as a store can hold it: what is too wide is left out."""
    for slimmer in (asked, replace(asked, more=None), replace(asked, more=None, schema=None)):
        wide = json.write([slimmer.schema, slimmer.more])
        if len(wide) > MOST_DATA_BYTES:
            continue
        try:
            json.refuse_depth([slimmer.schema, slimmer.more], MOST_LEVELS)
            check_together([slimmer])
        except (ValueError, InvalidJson):
            continue
        return slimmer
    return None


def _read_amount(entry: dict[str, Any], currency: str) -> tuple[int | None, dict[str, Any]]:
    """The amount in our currency; one in another is nobody's to convert, and shown as it came."""
    amount, in_what = entry.get("amount"), entry.get("currency")
    if amount is None:
        return None, {}
    if in_what != currency or not isinstance(amount, str):
        return None, {"amount": _shown(amount), "currency": _shown(in_what)}
    try:
        return parse_amount(amount), {}
    except InvalidRequest:
        return None, {}


def _shown(value: object) -> str:
    """A few characters of what somebody wrote, on one line."""
    return "".join([sign if sign.isprintable() else " " for sign in str(value)[:64]])


def _read_options(value: object) -> tuple[str, ...]:
    """The options that a person can be shown, and send back as they are."""
    options = value if isinstance(value, list) else []
    return tuple([each for each in options[:MOST_OPTIONS] if _is_readable(each)])


def _is_readable(option: object) -> bool:
    return isinstance(option, str) and 0 < len(option) <= MOST_WORDS and option.isprintable()


def _words(value: object) -> str:
    text = value[: 4 * MOST_WORDS] if isinstance(value, str) else ""
    plain = "".join([sign if sign.isprintable() else " " for sign in text])
    return " ".join(plain.split())[:MOST_WORDS] or _SILENT


def _name(entry: dict[str, Any], place: int) -> str:
    """A name for what its asker has not named: the same whenever the same is asked."""
    return f"int_{blake2b(json.canonical([place, entry]), digest_size=12).hexdigest()}"


def _text(value: object, form: re.Pattern[str]) -> str | None:
    return value if isinstance(value, str) and form.fullmatch(value) else None


def _moment(value: object) -> str | None:
    text = _text(value, _VISIBLE)
    return None if text is None or micros_of(text) is None else text


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= json.MAX_INTEGER else None


# ------------------------------------------------------------------ down


def read_resolution(headers: Headers) -> StatedResolution | None:
    """The answer that a request brings; refused where it is not in its form."""
    text = headers.visible(RESOLUTION, max_bytes=MOST_RESOLUTION_BYTES)
    if text is None:
        return None
    match = _RESOLUTION.fullmatch(text)
    if match is None:
        raise MalformedCallerContext(RESOLUTION, "must be STATE;outcome=accepted or rejected")
    state, word, value = match.groups()
    outcome: Outcome = "accepted" if word == "accepted" else "rejected"
    return StatedResolution(state, Resolution(outcome=outcome, value=_read_value(value)))


def _read_value(text: str | None) -> object:
    if text is None:
        return None
    try:
        return json.read(read_base64(text), max_levels=MOST_LEVELS)
    except (StructuredInvalid, InvalidJson):
        raise MalformedCallerContext(RESOLUTION, "has a value that is not JSON") from None


def write_resolution(stated: StatedResolution) -> str:
    """The header that brings an answer to whoever waits for it."""
    answer = stated.resolution
    written = f"{stated.state};outcome={answer.outcome}"
    if answer.value is None:
        return written
    return f"{written};value=:{b64encode(json.write(answer.value)).decode()}:"
