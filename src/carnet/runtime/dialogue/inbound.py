"""What a driver was itself called with, and hands on to those whom it calls.

    @app.post("/review")
    async def review(request):
        return await carnet.run_conversation([...], **carnet.inbound(request.headers))

Law 1. A request is read as strictly as a gateway reads it: a malformed depth is never 0.
Law 2. What is given beside the headers can only say more: the deeper of two depths counts, and two
       runs or two parents that differ are refused.
Law 3. Of the headers the chain, the payer's credential and the trace are handed on, nothing else.
Law 4. Who calls is told by what it has shown, and never by what it names: as a digest of the
       credentials, from which nobody gets them back.
Law 5. Within a request behind `carnet.Middleware`, and within the turn of an agent, a driver goes
       on with the chain of that. A run of its own it names only where the request has none.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Final, TypedDict

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.chain.carnet import Trace, merge
from carnet.core.people.identity import Secret
from carnet.errors import ChainMismatch, MalformedCallerContext
from carnet.runtime.chain.call_chain import CallChain
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps import STAMPS
from carnet.wire.stamps.stamp import TRACEPARENT, TRACESTATE, read_trace
from carnet.wire.stamps.tangle import (
    FORWARDED_AUTHORIZATION,
    FORWARDED_DEPTH,
    MAX_RUN_BYTES,
    MAX_TURN_BYTES,
    PARENT_TURN_ID,
    RUN_ID,
)

AUTHORIZATION: Final = "authorization"
SHOWN: Final = frozenset({AUTHORIZATION, "x-api-key", "cookie"})  # what tells callers apart
_Text = str | bytes
RequestHeaders = Mapping[str, str] | Mapping[str, Sequence[str]] | Iterable[tuple[_Text, _Text]]


class InboundOptions(TypedDict, total=False):
    """What `carnet.inbound` gives, and a conversation takes."""

    run_id: str | None
    inbound_depth: int
    parent_turn_id: str | None
    propagated_headers: Mapping[str, str]
    caller: str | None  # who calls: a run in a journal is that of its caller


class Inbound(Struct, frozen=True, kw_only=True):
    """Where in a chain a driver stands."""

    run_id: str | None = None
    depth: int = 0
    parent_turn_id: str | None = None
    credential: Secret | None = None  # of whoever pays
    trace: Trace | None = None
    last_depth: int | None = None  # that is still answered; None: nobody has said
    deadline: float | None = None  # seconds of the steady clock
    ordinal: int = 0  # which of the conversations at this place it is


def inbound(headers: RequestHeaders) -> InboundOptions:
    """What a conversation is given by the headers of the request that it is run for."""
    read = _lines(headers)
    here = _read(read)
    handed_on = {
        name: value
        for name, value in read
        if name in {FORWARDED_AUTHORIZATION, TRACEPARENT, TRACESTATE}
    }
    return InboundOptions(
        run_id=here.run_id,
        inbound_depth=here.depth,
        parent_turn_id=here.parent_turn_id,
        propagated_headers=handed_on,
        caller=caller_of(read, here.credential),
    )


def owner_of(run: str, caller: str | None, credential: Secret | None) -> str:
    """Whose run it is, as a journal keeps it: nobody's where nobody is known."""
    if caller is not None:
        return _digest(run, f"caller {caller}")
    return "" if credential is None else _digest(run, f"payer {credential.reveal()}")


def caller_of(lines: Sequence[tuple[str, str]], credential: Secret | None) -> str | None:
    """Who sends a request, by the credentials in it; None if there is none."""
    shown = sorted(f"{name}: {value}" for name, value in lines if name in SHOWN)
    if credential is not None:
        shown.append(credential.reveal())
    return _digest(AUTHORIZATION, "\0".join(shown)) if shown else None


def _digest(use: str, text: str) -> str:
    """Told apart by what it is for: two runs of one caller are not seen to be of one."""
    key = blake2b(_raw(use), digest_size=32).digest()
    return blake2b(_raw(text), key=key, digest_size=16).hexdigest()


def place(options: InboundOptions) -> Inbound:
    """Where a driver stands, by all that it was given."""
    depth = options.get("inbound_depth", 0)
    if depth < 0:
        raise MalformedCallerContext(FORWARDED_DEPTH, "would be reset")
    here = _read(_lines(options.get("propagated_headers") or {}))
    run = _one(options.get("run_id"), here.run_id, "run")
    parent = _one(options.get("parent_turn_id"), here.parent_turn_id, "parent turn")
    return Inbound(
        run_id=_checked(RUN_ID, run, MAX_RUN_BYTES),
        depth=max(depth, here.depth),
        parent_turn_id=_checked(PARENT_TURN_ID, parent, MAX_TURN_BYTES),
        credential=here.credential,
        trace=here.trace,
    )


def continued(read: Inbound, chain: CallChain | None) -> Inbound:
    """The same within a chain that is under way; refused where that may go no further."""
    if chain is None:
        return read
    carnet, ordinal = chain.carnet, chain.take_conversation()
    carnet.refuse_if_final(chain.last_depth)
    chain.seconds_left()
    here = replace(
        read,
        depth=max(read.depth, carnet.depth),
        last_depth=carnet.bound(chain.last_depth),
        deadline=carnet.deadline,
        credential=_payer(read.credential, chain.credential),
        trace=read.trace or carnet.trace,
    )
    if read.run_id is not None and not chain.is_named:
        return here
    return replace(
        here,
        run_id=_one(read.run_id, carnet.run, "run"),
        parent_turn_id=_one(read.parent_turn_id, carnet.turn, "parent turn"),
        ordinal=ordinal,
    )


def _payer(given: Secret | None, inherited: Secret | None) -> Secret | None:
    if given is not None and inherited is not None and given.reveal() != inherited.reveal():
        raise ChainMismatch("two different payers")
    return given or inherited


def _checked(name: str, value: str | None, most: int) -> str | None:
    """An id that arrives as it leaves."""
    return Headers([(name.encode(), _raw(value or ""))]).visible(name, max_bytes=most)


def _one(given: str | None, read: str | None, what: str) -> str | None:
    if given and read and given != read:
        raise ChainMismatch(f"two different {what}s")
    return given or read


def _read(lines: Sequence[tuple[str, str]]) -> Inbound:
    headers = Headers([(_raw(name), _raw(value)) for name, value in lines])
    stamped = STAMPS.read(headers)
    position = merge(stamped.marks)
    return Inbound(
        run_id=position.run,
        depth=position.depth,
        parent_turn_id=position.turn,  # the turn that we are is the parent of those we call
        credential=stamped.forwarded,
        trace=read_trace(headers),
    )


def _lines(headers: RequestHeaders) -> list[tuple[str, str]]:
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [
        (_text(name).lower(), _text(value))
        for name, given in pairs
        for value in ([given] if isinstance(given, str | bytes) else given)
    ]


def _text(value: _Text) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _raw(text: str) -> bytes:
    return text.encode(errors="surrogatepass")
