"""The extensions of A2A that this gateway knows, ours and others', each one row; see `row`.

    of a request        activated, canonical, read_inbound, resolution_of, without_secrets
    of an answer        write_status, status_parts, write_task, in_use, echoed
    of a card           declared
    of a call out       write_outbound, write_reply
    of what is answered read_answer, unmet

Law 1. There is one tuple. What is read, written, declared and shown in the docs follows from it.
Law 2. Whatever metadata a caller sends, reading it takes linear time, and ends in a value or in a
       refusal of our closed enum.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.chain.carnet import Mark, Trace
from carnet.core.messages.interrupt import Interrupt, Resolution
from carnet.core.people.delegation import narrower
from carnet.core.people.identity import Secret
from carnet.core.people.proof import Spending
from carnet.errors import InvalidRequest
from carnet.wire.dialects.a2a.extensions.actor_chain import ACTOR_CHAIN
from carnet.wire.dialects.a2a.extensions.ca2a import CA2A
from carnet.wire.dialects.a2a.extensions.datalayer import DATALAYER
from carnet.wire.dialects.a2a.extensions.envoys import ENVOYS
from carnet.wire.dialects.a2a.extensions.identity import IDENTITY, PLATFORM_IDENTITY
from carnet.wire.dialects.a2a.extensions.interrupt import INTERRUPT, resolution_of, words_of
from carnet.wire.dialects.a2a.extensions.own import CHAIN, RECEIPT, TERMS, TERMS_URI, USAGE
from carnet.wire.dialects.a2a.extensions.questions.beeai import BEEAI
from carnet.wire.dialects.a2a.extensions.questions.kagent import KAGENT
from carnet.wire.dialects.a2a.extensions.questions.policy import POLICY
from carnet.wire.dialects.a2a.extensions.questions.policy_part import POLICY_URI, write_part
from carnet.wire.dialects.a2a.extensions.questions.x402 import X402
from carnet.wire.dialects.a2a.extensions.row import (
    AnswerClaim,
    AnswerClaims,
    ExtensionClaim,
    ExtensionRow,
    OutboundFacts,
    PayloadBroken,
    TaskFacts,
    refuse,
)
from carnet.wire.dialects.a2a.extensions.signed_receipts import SIGNED_RECEIPTS
from carnet.wire.dialects.a2a.extensions.skill import SKILL
from carnet.wire.dialects.a2a.extensions.tool_events import TOOL_EVENTS
from carnet.wire.dialects.a2a.extensions.trace_context import TRACE_CONTEXT
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps.stamp import read_trace

__all__ = [
    "EXTENSIONS",
    "HEADER",
    "LEGACY_HEADER",
    "AnswerClaim",
    "AnswerClaims",
    "InboundClaims",
    "OutboundFacts",
    "TaskFacts",
    "activated",
    "activated_by",
    "canonical",
    "declared",
    "echoed",
    "in_use",
    "read_answer",
    "read_inbound",
    "resolution_of",
    "status_parts",
    "unmet",
    "wanted",
    "without_secrets",
    "write_outbound",
    "write_reply",
    "write_status",
    "write_task",
]

# In the order in which answers to one question are looked for: ours first.
EXTENSIONS: Final = (
    CHAIN,
    INTERRUPT,
    USAGE,
    RECEIPT,
    TERMS,
    SKILL,
    KAGENT,
    BEEAI,
    X402,
    POLICY,
    TOOL_EVENTS,
    DATALAYER,
    ACTOR_CHAIN,
    CA2A,
    SIGNED_RECEIPTS,
    TRACE_CONTEXT,
    ENVOYS,
    IDENTITY,
    PLATFORM_IDENTITY,
)

HEADER: Final = "a2a-extensions"
LEGACY_HEADER: Final = "x-a2a-extensions"  # of A2A 0.3
_NAMED: Final = HEADER.encode()  # the name of either version ends so

MOST_URIS: Final = 32

_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,15}:[!-+\--~]{1,240}", re.ASCII)
_SECRETS: Final = tuple([path for row in EXTENSIONS for path in row.secrets])
_OWN_OF_TASK: Final = tuple([row.task for row in EXTENSIONS if row.task and row.is_own])
_OTHERS_OF_TASK: Final = tuple(
    [(row, row.task) for row in EXTENSIONS if row.task and not row.is_own]
)
_BY_URI: Final = {uri: row for row in EXTENSIONS for uri in row.uris}
_ALIASES: Final = {alias: row.uris[0] for row in EXTENSIONS for alias in row.aliases}


class InboundClaims(Struct, frozen=True, kw_only=True):
    """What the metadata of a message says, all extensions together. None of it is proved."""

    marks: tuple[Mark, ...] = ()
    trace: Trace | None = None
    budget: Spending | None = None  # the most that the caller says it is willing to spend
    resolution: AnswerClaim | None = None  # to what its task waits for
    payment: Secret | None = None  # that is to pay for the call
    unanswered: str | None = None  # why what is said of an answer in a foreign form is none
    skill: str | None = None  # that is asked for by name
    payload: dict[str, Any] | None = None  # which goes in
    claimed: dict[str, Any] = {}  # by the names of extensions, for people


NOTHING: Final = InboundClaims()


# ------------------------------------------------------------------ negotiation


def activated(values: Iterable[str]) -> tuple[str, ...]:
    """The URIs that a caller activates, each once, from the lines of the header."""
    found: dict[str, None] = {}
    for value in values:
        parts = value.split(",", MOST_URIS)
        for part in parts:
            uri = part.strip(" \t")
            if uri and _URI.fullmatch(uri) is None:
                raise InvalidRequest(HEADER, "must be a list of URIs with commas between them")
            if uri:
                found[canonical(uri)] = None
        if len(found) > MOST_URIS:
            raise InvalidRequest(HEADER, f"must name at most {MOST_URIS} extensions")
    return tuple(found)


def activated_by(headers: Headers) -> tuple[str, ...]:
    """The same of a request, by the name of the field in either version."""
    if _NAMED not in headers.joined():  # nearly every request
        return ()
    return activated([*headers.get_all(HEADER), *headers.get_all(LEGACY_HEADER)])


def wanted(headers: Headers) -> tuple[str, ...]:
    """The same for a refusal, which a field that is broken must not hide."""
    try:
        return activated_by(headers)
    except InvalidRequest:
        return ()


def canonical(uri: str) -> str:
    """The URI that an extension has here, of whichever it is called by."""
    return _ALIASES.get(uri, uri)


def echoed(uris: Iterable[str]) -> tuple[str, ...]:
    """Those of the activated URIs that an answer says are active: the ones that we declare."""
    return tuple([uri for uri in uris if uri in _BY_URI and _BY_URI[uri].is_declared])


def unmet(declarations: Iterable[object], offered: Iterable[str]) -> tuple[str, ...]:
    """What a card demands (`required`) and is not among the URIs that are offered."""
    known = frozenset(offered)
    demanded = [
        each["uri"]
        for each in declarations
        if isinstance(each, Mapping) and each.get("required") is True and "uri" in each
    ]
    return tuple([uri for uri in demanded if isinstance(uri, str) and uri not in known])


def declared(terms: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """`capabilities.extensions` of a card of ours; `terms` are what callers may know before."""
    listed = []
    for row in EXTENSIONS:
        if not row.is_declared or (row is TERMS and terms is None):
            continue
        for uri in row.uris:
            entry: dict[str, Any] = {"uri": uri, "description": row.description}
            listed.append(entry | ({"params": dict(terms or {})} if uri == TERMS_URI else {}))
    return listed


# ------------------------------------------------------------------ served


def read_inbound(
    message: object, request: object, *, headers: Headers, last_depth: int
) -> InboundClaims:
    """What a message says by extensions, whether it activated them or not: a depth must count.

    Args:
        message: Its metadata, as JSON gave it; None for none.
        request: The metadata of the request beside it.
        headers: Those of the request: the trace that they tell wins.
        last_depth: The last depth that is answered here (inclusive).
    """
    trace = read_trace(headers)
    found: list[dict[str, Any]] = []
    if message or request:  # few messages have any
        found = [each for each in (message, request) if isinstance(each, dict) and each]
    if not found:
        return NOTHING if trace is None else InboundClaims(trace=trace)
    claims: dict[str, ExtensionClaim] = {}
    shown: dict[str, Any] = {}
    for row in EXTENSIONS:
        try:
            claim = None if row.read is None else row.read(found, last_depth)
        except PayloadBroken as broken:
            if row.is_own:
                refuse(row.keys[0], str(broken))
            shown[row.name] = {"broken": str(broken)}
            continue
        if claim is not None:
            claims[row.name] = claim
            shown[row.name] = claim.shown
    return InboundClaims(
        marks=tuple([each.mark for each in claims.values() if each.mark is not None]),
        trace=trace or next((each.trace for each in claims.values() if each.trace), None),
        budget=reduce(narrower, [each.budget for each in claims.values()], None),
        resolution=next((each.answer for each in claims.values() if each.answer), None),
        payment=next((each.payment for each in claims.values() if each.payment), None),
        unanswered=_unanswered(claims, shown),
        skill=next((each.skill for each in claims.values() if each.skill), None),
        payload=next((each.payload for each in claims.values() if each.payload is not None), None),
        claimed=shown,
    )


def without_secrets(metadata: dict[str, Any]) -> dict[str, Any]:
    """Metadata without the credentials in it: what is recorded of it, and told to anybody."""
    for path in _SECRETS:
        if path[0] in metadata:
            metadata = _without(metadata, path)
    return metadata


def _without(given: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    key, *below = path
    if not below:
        return {name: value for name, value in given.items() if name != key}
    inner = given.get(key)
    return given | {key: _without(inner, below)} if isinstance(inner, dict) else given


def _unanswered(claims: Mapping[str, ExtensionClaim], shown: Mapping[str, Any]) -> str | None:
    """Why what a message says in a form of others for answers is none; None where it says none."""
    for row in EXTENSIONS:
        if row.ask is None or row.name not in shown:
            continue
        claim = claims.get(row.name)
        if claim is None or claim.answer is None:
            reason = "is no answer" if claim is not None else str(shown[row.name]["broken"])
            return f"metadata of {row.name}: {reason}"
    return None


def write_status(interrupts: Sequence[Interrupt], uris: Iterable[str] = ()) -> dict[str, Any]:
    """The metadata of the message of a task that waits: ours, and what the caller activated."""
    active = frozenset(uris)
    metadata: dict[str, Any] = {}
    if not interrupts:
        return metadata
    for row in EXTENSIONS:
        if row.ask is not None and (row.is_own or active.intersection(row.uris)):
            metadata |= _allowed(row, row.ask(interrupts), active)
    return metadata


def in_use(metadata: Mapping[str, Any], uris: Iterable[str]) -> list[str]:
    """The URIs of the extensions that metadata of ours is written by."""
    active = frozenset(uris)
    return [
        uri
        for row in EXTENSIONS
        if any(key in metadata for key in row.keys)
        for uri in row.uris
        if row.is_own or uri in active
    ]


def status_parts(interrupts: Sequence[Interrupt], uris: Iterable[str] = ()) -> list[dict[str, Any]]:
    """The parts of that message, for people: one for each thing that is asked for.

    Who activated policy parts is given those as well.
    """
    words = [{"text": words_of(asked)} for asked in interrupts]
    if POLICY_URI not in uris:
        return words
    return [*words, *({"data": write_part(asked)} for asked in interrupts)]


def write_task(facts: TaskFacts, uris: Iterable[str] = ()) -> dict[str, Any]:
    """The metadata of a task: ours, and what the caller activated or asked for by its own."""
    active = frozenset(uris)
    metadata: dict[str, Any] = {}
    for tell in _OWN_OF_TASK:
        metadata |= tell(facts)
    for row, tell in _OTHERS_OF_TASK:
        if not row.uris or (active and active.intersection(row.uris)):
            written = tell(facts)
            metadata |= _allowed(row, written, active) if written else written
    return metadata


def _allowed(row: ExtensionRow, written: dict[str, Any], active: frozenset[str]) -> dict[str, Any]:
    """What was written, without what stands under a URI that was not asked for."""
    if row.is_own:
        return written
    return {key: value for key, value in written.items() if key not in row.uris or key in active}


# ------------------------------------------------------------------ called


def write_outbound(
    sending: OutboundFacts, advertised: Iterable[str]
) -> tuple[dict[str, Any], tuple[str, ...], dict[str, str]]:
    """What goes with a call to an agent: metadata, the URIs in use, and the header that names them.

    Of an extension that its card does not advertise nothing is written; one that has no URI goes
    to those who know our own chain.
    """
    offered = frozenset(advertised)
    metadata: dict[str, Any] = {}
    uris: list[str] = []
    for row in EXTENSIONS:
        known = [uri for uri in row.uris or CHAIN.uris if uri in offered]
        if not known:
            continue
        written = {} if row.send is None else row.send(sending)
        metadata |= written
        is_answered = row.answer is not None or row.is_in_parts
        if row.uris and (written or is_answered):  # which may come with the answer
            uris.append(known[0])
    return metadata, tuple(uris), {HEADER: ",".join(uris)} if uris else {}


def read_answer(metadata: object, *, currency: str) -> AnswerClaims:
    """What the metadata of a task or a message of somebody we called tells."""
    if not isinstance(metadata, dict) or not metadata:
        return AnswerClaims()
    readings: list[AnswerClaims] = []
    for row in EXTENSIONS:
        try:
            reading = None if row.answer is None else row.answer(metadata, currency)
        except PayloadBroken as broken:
            reading = AnswerClaims(claimed={row.name: {"broken": str(broken)}})
        if reading is not None:
            readings.append(replace(reading, form=row.name) if reading.interrupts else reading)
    claimed: dict[str, Any] = {}
    for each in readings:
        claimed |= each.claimed
    return AnswerClaims(
        interrupts=next((each.interrupts for each in readings if each.interrupts), ()),
        usage=next((each.usage for each in readings if each.usage is not None), None),
        claimed=claimed,
        receipt=next((each.receipt for each in readings if each.receipt is not None), None),
        form=next((each.form for each in readings if each.interrupts), None),
    )


def write_reply(state: str, resolution: Resolution) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The answer to what an agent asked for, as `read_answer` gave its state: metadata and URIs.

    It is written in the form that the question came in; an empty state has none, and is answered
    in words.
    """
    foreign = [row for row in EXTENSIONS if row.reply is not None and not row.is_own]
    for row in (*foreign, INTERRUPT):
        written = None if row.reply is None else row.reply(state, resolution)
        if written is not None:
            return written, tuple([uri for uri in row.uris if uri in written] or row.uris[:1])
    return {}, ()
