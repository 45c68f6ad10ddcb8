"""From a request to a Claim: the body by its dialect, the chain by its stamps.

Law. Malformed in any part is malformed; absent is not malformed.
"""

from msgspec import Struct

from carnet.core.call import Claim
from carnet.core.carnet import DepthLimits, Mark
from carnet.core.secret import Secret
from carnet.wire import caller_context, json, openai, tangle, trace
from carnet.wire.headers import Headers, refuse_lookalikes


class Stamps(Struct, frozen=True):
    """What the headers say about the chain."""

    marks: tuple[Mark, ...]
    forwarded: Secret | None


NO_STAMPS = Stamps((), None)


def read_stamps(headers: Headers, depths: DepthLimits) -> Stamps:
    """Read every stamp that rides on the headers."""
    refuse_lookalikes(headers)
    marks: list[Mark] = []
    forwarded = None
    stamp = tangle.read(headers, last_depth=depths.tangle)
    if stamp is not None:
        marks.append(stamp.mark)
        forwarded = stamp.forwarded
    _, mark = caller_context.read(headers, last_depth=depths.caller_context)
    if mark is not None:
        marks.append(mark)
    return Stamps(tuple(marks), forwarded) if stamp or mark else NO_STAMPS


def read_authorization(headers: Headers) -> Secret | None:
    """The Authorization value, byte for byte."""
    value = headers.get("authorization")
    return None if value is None else Secret(value)


def read_chat(headers: Headers, stamps: Stamps, body: bytes, agent: str | None) -> Claim:
    """Read a chat completion request. `agent` is the one the path names, if it does."""
    parsed = json.read_object(body)
    model, ask = openai.read_ask(parsed)
    request = json.canonical(parsed)
    return Claim(
        dialect="openai",
        agent=agent if agent is not None else model or "",
        ask=ask,
        digest=openai.request_digest(parsed, request),
        request=request,
        marks=stamps.marks,
        authorization=read_authorization(headers),
        forwarded=stamps.forwarded,
        trace=trace.read(headers),
    )
