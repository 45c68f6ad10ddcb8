"""W3C trace context: which trace a request belongs to, so that ours joins it.

Law 1. A trace is a service to people and never a reason to refuse: what is not valid is ignored.
Law 2. Without a valid `traceparent` there is no trace, whatever `tracestate` says; without a valid
       `tracestate` the trace still holds.
Law 3. `read(write(trace, span)) == trace` with that span.
"""

import re
from typing import Final

from carnet.core.chain.carnet import Trace
from carnet.wire.grammar.headers import Headers

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"

_START: Final = b"\n" + TRACEPARENT.encode()

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


def read(headers: Headers) -> Trace | None:
    """Read the trace a request belongs to, or None where it names none or not properly."""
    if _START not in headers.joined():
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


def write(trace: Trace, span_id: str) -> dict[str, str]:
    """Write the headers of a call out; `span_id` is that of the call itself."""
    fields = {TRACEPARENT: f"00-{trace.trace_id}-{span_id}-{trace.flags}"}
    if trace.state:
        fields[TRACESTATE] = trace.state
    return fields
