"""The W3C trace context in metadata: `https://deeparchi.ai/extensions/trace-context/v1`.

Law 1. The headers of a request win: this is for those who cannot set them.
Law 2. A trace is a service to people and never a reason to refuse.
Law 3. Baggage is neither used nor sent on: nobody here can tell what it holds.
"""

from collections.abc import Sequence
from typing import Any, Final

from carnet.wire.dialects.a2a.extensions.row import (
    ExtensionClaim,
    ExtensionRow,
    Metadata,
    OutboundFacts,
    PayloadBroken,
    members,
    needed,
    payload,
    shown,
    word,
)
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps.stamp import TRACEPARENT, TRACESTATE, read_trace

TRACE_URI: Final = "https://deeparchi.ai/extensions/trace-context/v1"

MOST_PARENT: Final = 256
MOST_STATE: Final = 4096


def read(found: Sequence[Metadata], last_depth: int) -> ExtensionClaim | None:
    """The trace that a message belongs to."""
    del last_depth
    value = payload(found, TRACE_URI)
    if value is None:
        return None
    given = members(value)
    fields = [(TRACEPARENT.encode(), needed(given, TRACEPARENT, MOST_PARENT).encode())]
    state = word(given, TRACESTATE, MOST_STATE)
    if state is not None:
        fields.append((TRACESTATE.encode(), state.encode()))
    trace = read_trace(Headers(fields))
    if trace is None:
        raise PayloadBroken("has a traceparent that is none")
    return ExtensionClaim(trace=trace, shown=shown({TRACEPARENT: given[TRACEPARENT]}))


def send(sending: OutboundFacts) -> dict[str, Any]:
    """The trace of a call, as its headers tell it."""
    return {TRACE_URI: dict(sending.trace)} if sending.trace else {}


TRACE_CONTEXT: Final = ExtensionRow(
    name="trace_context",
    uris=(TRACE_URI,),
    keys=(TRACE_URI,),
    is_declared=True,
    description="W3C trace context in the metadata of a message; its headers win.",
    reads="traceparent and tracestate, where the request has no valid header of that name",
    writes="traceparent and tracestate of a call",
    believes="that the call belongs to that trace; nothing is decided by it",
    read=read,
    send=send,
)
