"""A stamp: what a request says about its chain beside its body, as one row; and a set of them.

A request has one body dialect and any number of stamps on it. The rows are listed in `stamps`.

Beside the stamps a request has two headers that nothing is decided by: the W3C trace context, which
trace a request belongs to, so that ours joins it, and `x-correlation-id`, the caller's own name for
it (R49). A third, `idempotency-key`, names the request for who repeats it and knows no turns.

Here is also what the signature of a request must cover, in each of the two forms that are accepted.

Law 1. A stamp that is there and not in its form is refused by its reader; absent is not malformed.
Law 2. A stamp rides in header fields of its own prefixes, or in the metadata that a body dialect
       hands over. A row without a reader is protected and read elsewhere, or by nobody.
Law 3. What a signature must cover (R9), what is refused as a look-alike, what the edge leaves to a
       reader and what is read and written are derived from the same rows: a stamp that is added
       cannot be forgotten in one of these places.
Law 4. A trace is a service to people and never a reason to refuse: what is not valid is ignored.
Law 5. Without a valid `traceparent` there is no trace, whatever `tracestate` says; without a valid
       `tracestate` the trace still holds.
Law 6. `read_trace(write_trace(trace, span)) == trace` with that span.
Law 7. The caller's own name is a service to people and never a reason to refuse: what is not one
       visible word of at most 128 characters was not told.
Law 8. Whatever tells the chain, the payer or an identity is covered, or the request is refused: a
       middlebox could have written it.
Law 9. What is covered beyond that is nobody's harm.
"""

import re
from base64 import b64decode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.chain.capabilities import Capabilities
from carnet.core.chain.carnet import Carnet, DepthLimits, Mark, Trace
from carnet.core.people.identity import Secret, StatedContext
from carnet.errors import (
    ChainMismatch,
    HeaderNotSigned,
    InsufficientCoverage,
    MalformedCallerContext,
)
from carnet.wire.grammar.headers import Headers, refuse_lookalikes

CLIENT_CERT: Final = "client-cert"  # RFC 9440: the certificate itself, in base64 between colons
MAX_CERTIFICATE_BYTES: Final = 16_384
_HASHED: Final = re.compile(r"[0-9A-Fa-f]{64}|(?:[0-9A-Fa-f]{2}:){31}[0-9A-Fa-f]{2}", re.ASCII)

Metadata = tuple[object, ...]  # objects as JSON gave them: of the message, of the request


class Reading(Struct, frozen=True, kw_only=True):
    """What one stamp says."""

    mark: Mark | None = None  # about the chain
    forwarded: Secret | None = None  # the credential of whoever pays, scheme included
    context: StatedContext | None = None  # who claims to call


class Leaving(Struct, frozen=True, kw_only=True):
    """What a stamp is told about a call out, beside its travel document."""

    forwarded: Secret | None = None  # the payer's credential, if it may leave to this callee
    agent: str = ""  # the agent that calls
    host: str = ""  # the absolute URL of this gateway
    user: int = 0  # the caller's user on this host
    dialect: str = ""  # that the callee is called in, where a stamp is for one alone
    capabilities: Capabilities | None = None  # of whoever reads the answer, where that is known


class Written(Struct, frozen=True, kw_only=True):
    """What is sent of a stamp."""

    headers: dict[str, str] = {}
    secrets: dict[str, Secret] = {}  # fields whose values must not be logged
    metadata: dict[str, Any] = {}


class StampReader(Protocol):
    """Reads a stamp."""

    def __call__(
        self, headers: Headers, metadata: Metadata, /, *, last_depth: int
    ) -> Reading | None:
        """What it says; None where it says nothing. `last_depth` is answered here, no deeper."""


class StampWriter(Protocol):
    """Writes a stamp."""

    def __call__(self, carnet: Carnet, leaving: Leaving, /) -> Written:
        """The stamp of a call out; `carnet` is the document that the callee receives."""


class Stamp(Struct, frozen=True, kw_only=True, eq=False):
    """One stamp."""

    name: str
    prefixes: tuple[str, ...] = ()  # of its header fields, in lower case
    in_metadata: bool = False  # it rides in what a body dialect hands over
    last_depth: int | None = None  # the last depth answered by default; None: as of any call
    read: StampReader | None = None
    write: StampWriter | None = None  # None: it is not written toward peers
    toward: str | None = None  # the dialect of those whom it is written to; None: everybody


# Of proxies, which write and sign nothing for us. A look-alike of theirs is one all the same.
_OF_PROXIES: Final = "x-forwarded-"


class Stamped(Struct, frozen=True):
    """What all stamps of a request say together."""

    marks: tuple[Mark, ...] = ()
    forwarded: Secret | None = None
    context: StatedContext | None = None

    @property
    def run(self) -> str | None:
        """The run that a stamp names."""
        for mark in self.marks:
            if mark.run:
                return mark.run
        return None


NOTHING: Final = Stamped()


class Stamps:
    """The stamps that a gateway knows."""

    __slots__ = (
        *("_in_headers", "_in_metadata", "_last_depths", "limits", "lookalikes", "protected"),
        *("certificate", "rows", "tolerated"),
    )

    def __init__(
        self,
        rows: Iterable[Stamp],
        *,
        configured: Mapping[str, int] | None = None,
        default: int = DepthLimits().default,
        hard: int | None = None,
        certificate: str | None = None,
    ) -> None:
        """The stamps, in the order in which they are read and written.

        Args:
            rows: One for each.
            configured: The last depths that the operator set, by the names of stamps; the others
                have their own.
            default: The last depth of a call whose chain no stamp bounds.
            hard: Bounds all of these.
            certificate: The header by which trusted proxies tell the certificate of a caller.
        """
        self.certificate = certificate
        self.rows = tuple(rows)
        if len({row.name for row in self.rows}) != len(self.rows):
            raise ValueError("two stamps have one name")
        depths = {row.name: row.last_depth for row in self.rows if row.last_depth is not None}
        limits = DepthLimits(by_stamp=depths | dict(configured or {}), default=default)
        self.limits = limits if hard is None else limits.clamped(hard)
        self._last_depths = {row.name: self.limits.of(row.name) for row in self.rows}
        # What must not stand outside a signature.
        prefixes = [prefix for row in self.rows for prefix in row.prefixes]
        self.protected = tuple([prefix.encode() for prefix in prefixes])
        self.lookalikes = (*prefixes, _OF_PROXIES)
        # A bad value in one of these is refused by the reader of the stamp, which names the header.
        self.tolerated = tuple(
            [prefix.encode() for row in self.rows if row.read for prefix in row.prefixes]
        )
        self._in_headers = tuple(
            [
                (b"\n" + prefix.encode(), row.name, row.read)
                for row in self.rows
                if row.read
                for prefix in row.prefixes
            ]
        )
        self._in_metadata = tuple(
            [(row.name, row.read) for row in self.rows if row.read and row.in_metadata]
        )

    def read(self, headers: Headers) -> Stamped:
        """Read every stamp that rides on the headers."""
        names = headers.joined()
        if b"_" in names:
            refuse_lookalikes(headers, self.lookalikes)
        found: dict[str, Reading | None] = {}
        for start, name, read in self._in_headers:
            if start in names and name not in found:
                found[name] = read(headers, (), last_depth=self._last_depths[name])
        return _together(found) if found else NOTHING

    def certified(self, stamped: Stamped, headers: Headers) -> Stamped:
        """What was read, with the certificate of the caller in the form that is written down (R33).

        For what came through a trusted proxy alone: anybody can write the header.
        """
        shown = self.certificate_of(headers)
        if stamped.context is None or shown is None:
            return stamped
        return replace(stamped, context=replace(stamped.context, certificate=shown))

    def certificate_of(self, headers: Headers) -> str | None:
        """The certificate that a proxy tells, in the form that is written down.

        For what came through a trusted proxy alone, as above.
        """
        if self.certificate is None:
            return None
        shown = headers.visible(self.certificate, max_bytes=MAX_CERTIFICATE_BYTES)
        if shown is None:
            return None
        if self.certificate != CLIENT_CERT:
            hashed = _HASHED.fullmatch(shown)  # or it is the subject
            return shown if hashed is None else f"sha256:{hashed[0].replace(':', '').lower()}"
        try:
            der = b64decode(shown.removeprefix(":").removesuffix(":"), validate=True)
        except ValueError:
            raise MalformedCallerContext(self.certificate, "holds no certificate") from None
        if not der:  # what proxies write of who shows none
            return None
        return f"sha256:{sha256(der).hexdigest()}"

    def read_metadata(self, *metadata: object) -> Stamped:
        """Read every stamp that rides in the metadata of a body."""
        found = {
            name: read(Headers(()), metadata, last_depth=self._last_depths[name])
            for name, read in self._in_metadata
        }
        return _together(found)

    def write(self, carnet: Carnet, leaving: Leaving) -> Written:
        """Write every stamp that is written toward peers."""
        headers: dict[str, str] = {}
        secrets: dict[str, Secret] = {}
        metadata: dict[str, object] = {}
        for row in self.rows:
            if row.write is not None and row.toward in {None, leaving.dialect}:
                written = row.write(carnet, leaving)
                headers |= written.headers
                secrets |= written.secrets
                metadata |= written.metadata
        return Written(headers=headers, secrets=secrets, metadata=metadata)


def _together(found: Mapping[str, Reading | None]) -> Stamped:
    readings = [reading for reading in found.values() if reading is not None]
    if len(readings) == 1:
        (only,) = readings
        return Stamped(() if only.mark is None else (only.mark,), only.forwarded, only.context)
    forwarded = [each.forwarded for each in readings if each.forwarded is not None]
    if len(forwarded) > 1:  # nobody may choose which of two payers is meant
        raise ChainMismatch("two stamps forward a credential")
    return Stamped(
        tuple([each.mark for each in readings if each.mark is not None]),
        forwarded[0] if forwarded else None,
        next((each.context for each in readings if each.context is not None), None),
    )


TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"

_TRACE_START: Final = b"\n" + TRACEPARENT.encode()

MAX_MEMBERS: Final = 32
MAX_STATE_BYTES: Final = 512
LONG_MEMBER_BYTES: Final = 128  # the first to go when there is too much state

_KNOWN_FLAGS: Final = 0x03  # sampled, and random trace id; a bit we do not know is not passed on

_PARENT: Final = re.compile(
    r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[\x21-\x7e]*)?", re.ASCII
)
_MEMBER: Final = re.compile(
    r"([a-z0-9][a-z0-9_*/@-]{0,255})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]",
    re.ASCII,
)


def read_trace(headers: Headers) -> Trace | None:
    """Read the trace a request belongs to, or None where it names none or not properly."""
    if _TRACE_START not in headers.joined():
        return None
    parents = headers.get_all(TRACEPARENT)
    match = _PARENT.fullmatch(parents[0]) if len(parents) == 1 else None
    if match is None:
        return None
    version, trace_id, span_id, flags, more = match.groups()
    if version == "ff" or (version == "00" and more is not None):
        return None  # later versions may say more; ours may not
    if not (trace_id.strip("0") and span_id.strip("0")):
        return None
    return Trace(
        trace_id,
        span_id,
        f"{int(flags, 16) & _KNOWN_FLAGS:02x}",
        _read_state(",".join(headers.get_all(TRACESTATE))),
    )


def _read_state(text: str) -> str | None:
    members = [member for part in text.split(",") if (member := part.strip(" \t"))]
    if len(members) > MAX_MEMBERS:
        return None
    keys = set()
    for member in members:
        match = _MEMBER.fullmatch(member)
        if match is None or match[1] in keys:
            return None
        keys.add(match[1])
    return _shorten(members) or None


def _shorten(members: list[str]) -> str:
    state = ",".join(members)
    if len(state) <= MAX_STATE_BYTES:
        return state
    kept = [member for member in members if len(member) <= LONG_MEMBER_BYTES]
    while len(state := ",".join(kept)) > MAX_STATE_BYTES:
        kept.pop()  # the rightmost is the oldest
    return state


def write_trace(trace: Trace, span_id: str) -> dict[str, str]:
    """Write the headers of a call out; `span_id` is that of the call itself."""
    fields = {TRACEPARENT: f"00-{trace.trace_id}-{span_id}-{trace.flags}"}
    if trace.state:
        fields[TRACESTATE] = trace.state
    return fields


CORRELATION: Final = "x-correlation-id"

_CORRELATION_START: Final = b"\n" + CORRELATION.encode()
_WORD: Final = re.compile(r"[!-~]{1,128}", re.ASCII)


def read_correlation(headers: Headers) -> str | None:
    """The name, or None where there is none."""
    if _CORRELATION_START not in headers.joined():  # nearly every request
        return None
    values = headers.get_all(CORRELATION)
    return values[0] if len(values) == 1 and _WORD.fullmatch(values[0]) else None


IDEMPOTENCY_KEY: Final = "idempotency-key"
MOST_KEY_BYTES: Final = 255

KEY_START: Final = b"\n" + IDEMPOTENCY_KEY.encode()


def read_key(headers: Headers) -> str | None:
    """The key; refused where it cannot be one: who relies on it must not be billed twice."""
    return headers.visible(IDEMPOTENCY_KEY, max_bytes=MOST_KEY_BYTES)


MINIMUM: Final = ("@method", "@path", "content-digest")
PROFILE: Final = ("@method", "@authority", "@path", "content-digest", "content-type")
QUERY: Final = "@query"


def protected_names(headers: Headers, stamps: Stamps) -> list[str]:
    """The fields of a request that must not stand outside its signature: those of all stamps.

    R9. A traceparent is not among them: proxies write it, and nothing is decided by it.
    """
    return headers.names(*stamps.protected)


def check_coverage(
    components: Iterable[str],
    least: Iterable[str],
    headers: Headers,
    *,
    has_query: bool,
    stamps: Stamps,
) -> None:
    """Refuse a signature that leaves out what it must cover.

    Args:
        components: What the signature covers.
        least: Those that it must have whatever the request holds: `MINIMUM` or `PROFILE`.
        headers: The fields of the request.
        has_query: Whether its target has a query.
        stamps: Whose fields are protected.
    """
    covered = frozenset(components)
    if not covered.issuperset(least):
        raise InsufficientCoverage
    if has_query and QUERY not in covered:
        raise HeaderNotSigned
    if not covered.issuperset(protected_names(headers, stamps)):
        raise HeaderNotSigned
