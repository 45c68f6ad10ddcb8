"""The Tangle stamp: six headers that tell the chain of a call, over any body.

It reads what a request says about itself and writes what a callee is told. Whether a caller may
forward a credential, and whether a depth is too deep, the guards decide.

Law 1. Reading never subtracts and writing only adds: a callee is told one more than we were.
Law 2. Blank is absent and absent is not malformed; anything else that is not in its form is
       refused. A depth is never guessed at: read as 0 it would lift the bound for all behind us.
Law 3. A forwarded credential is opaque: kept and sent on byte for byte, in a `Secret`, and checked
       only for being one bearer value.
Law 4. `read(write(carnet))` tells the same chain.
Law 5. The speaker is a label for people. It is not decoded, and nothing is decided by it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import quote

from carnet.core.chain.carnet import Carnet, Mark
from carnet.core.people.identity import Secret
from carnet.errors import MalformedCallerContext, UnsupportedProtocolVersion
from carnet.wire.grammar.headers import Headers, write_headers
from carnet.wire.stamps.stamp import Leaving, Metadata, Reading, Stamp, Written

FORWARDED_AUTHORIZATION: Final = "x-tangle-forwarded-authorization"
FORWARDED_DEPTH: Final = "x-tangle-forwarded-depth"
RUN_ID: Final = "x-tangle-runid"
TURN_ID: Final = "x-tangle-turnid"
PARENT_TURN_ID: Final = "x-tangle-parent-turnid"
SPEAKER: Final = "x-tangle-speaker"
PROTOCOL_VERSION: Final = "x-tangle-protocol-version"  # of no version so far; see R24

HEADERS: Final = {  # what each says, for the description of the API
    FORWARDED_DEPTH: "Agent-to-agent edges crossed so far; absent is 0.",
    RUN_ID: "The run this call belongs to; absent starts one.",
    TURN_ID: "Names this logical call; a repeat is answered from the record.",
    PARENT_TURN_ID: "The turn this call was made in.",
    SPEAKER: "The name of the called participant.",
    FORWARDED_AUTHORIZATION: "Who pays; honoured from listed callers alone.",
}

DEFAULT_MAX_DEPTH: Final = 4  # tangle:depth:default (exclusive: the first depth refused)

MAX_RUN_BYTES: Final = 128
MAX_TURN_BYTES: Final = 256
MAX_SPEAKER_BYTES: Final = 128

# How the names stand among all names of a request: what is not there is not looked up.
_VERSION, _PARENT, _SPEAKER, _FORWARDED = (
    b"\n" + name.encode()
    for name in (PROTOCOL_VERSION, PARENT_TURN_ID, SPEAKER, FORWARDED_AUTHORIZATION)
)
_SPOKEN: Final = frozenset({None, "0"})  # the versions
_NO_CHAIN: Final = (None, None, None, None)

# No comma: two values that a proxy joined must not pass as one. No space: a scheme and one token.
_BEARER: Final = re.compile(r"(?i:bearer) [\x21-\x2b\x2d-\x7e]{1,8192}", re.ASCII)


def read(headers: Headers, metadata: Metadata = (), *, last_depth: int) -> Reading | None:
    """Read the stamp; None where none of the six headers says anything.

    Args:
        headers: The fields as they arrived.
        metadata: Nothing of it rides there.
        last_depth: The last depth answered here (inclusive), so one less than `max_depth`.
    """
    del metadata
    names = headers.joined()
    if b"\nx-tangle-" not in names:
        return None
    if _VERSION in names and headers.get(PROTOCOL_VERSION) not in _SPOKEN:
        raise UnsupportedProtocolVersion  # tangle:version:unsupported
    depth = headers.read_count(FORWARDED_DEPTH)  # tangle:depth:malformed
    run = headers.visible(RUN_ID, max_bytes=MAX_RUN_BYTES)
    turn = headers.visible(TURN_ID, max_bytes=MAX_TURN_BYTES)
    parent_turn = speaker = forwarded = None
    if _PARENT in names:
        parent_turn = headers.visible(PARENT_TURN_ID, max_bytes=MAX_TURN_BYTES)
    if _SPEAKER in names:
        speaker = headers.visible(SPEAKER, max_bytes=MAX_SPEAKER_BYTES)
    if _FORWARDED in names:
        forwarded = _read_forwarded(headers)
    tells_chain = (depth, run, turn, parent_turn) != _NO_CHAIN
    if not tells_chain and speaker is None and forwarded is None:
        return None  # blank, or headers that a later version added
    mark = Mark(
        stamp="tangle",
        depth=depth,
        # A credential or a label alone is no chain, and must not bound the one of another stamp.
        last_depth=last_depth if tells_chain else None,
        is_usual=depth is None,
        run=run,
        turn=turn,
        parent_turn=parent_turn,
        speaker=speaker,
    )
    return Reading(mark=mark, forwarded=forwarded)


def _read_forwarded(headers: Headers) -> Secret | None:
    value = headers.get(FORWARDED_AUTHORIZATION)
    if value is None:
        return None
    if _BEARER.fullmatch(value) is None:
        raise MalformedCallerContext(FORWARDED_AUTHORIZATION, "is not one bearer credential")
    return Secret(value)  # tangle:authorization:verbatim


def write(
    carnet: Carnet, *, forwarded: Secret | None, counts: bool = True
) -> tuple[dict[str, str], dict[str, Secret]]:
    """Write the headers of a call out: the plain ones, and those that must not be logged.

    Args:
        carnet: The document the callee receives: its depth is already the callee's.
        forwarded: The payer's credential as it came, if it may leave to this callee.
        counts: Whether the depth is among them, and with it the limit of this stamp.
    """
    fields = _fields(
        depth=carnet.depth if counts else None,
        run=carnet.run,
        turn=carnet.turn,
        parent_turn=carnet.parent_turn,
        speaker=carnet.speaker,
    )
    return fields, {} if forwarded is None else {FORWARDED_AUTHORIZATION: forwarded}


# What bounds the chains whose depth another stamp tells in a dialect, which has its own limit: over
# A2A mentions; over agents-api the caller context, of its own chains and of those of a budget (R2).
_ELSEWHERE: Final = {
    "a2a": frozenset({"mentionable"}),
    "agents_api": frozenset({"caller_context", "chain_depth"}),
}


def _write(carnet: Carnet, leaving: Leaving, /) -> Written:
    counts = leaving.dialect not in _ELSEWHERE or _counts(carnet.bound_by, leaving)
    headers, secrets = write(carnet, forwarded=leaving.forwarded, counts=counts)
    return Written(headers=headers, secrets=secrets)


def _counts(bound_by: str | None, leaving: Leaving) -> bool:
    """Whether this stamp tells the depth, in a dialect in which another may."""
    is_written = leaving.dialect == "a2a" or bool(leaving.agent and leaving.host)
    return not is_written or bound_by not in _ELSEWHERE[leaving.dialect]


STAMP: Final = Stamp(
    name="tangle",
    prefixes=("x-tangle-",),
    last_depth=DEFAULT_MAX_DEPTH - 1,
    read=read,
    write=_write,
)


def build_forward_headers(
    *,
    run_id: str,
    turn_id: str,
    speaker: str,
    inbound_depth: int,
    parent_turn_id: str | None = None,
    forwarded_authorization: str | None = None,
) -> dict[str, str]:
    """Build the headers of a call out, for drivers that have no Carnet.

    Args:
        run_id: The run, as it came.
        turn_id: The id of the call to be made; see `carnet.turn_id`.
        speaker: The name of the agent that is called.
        inbound_depth: The depth at which the caller itself was called; the callee is told one more.
        parent_turn_id: The turn this call is made in, if there is one.
        forwarded_authorization: The credential of whoever pays, as it came.
    """
    if inbound_depth < 0:
        raise MalformedCallerContext(FORWARDED_DEPTH, "would be reset")
    fields = _fields(
        depth=inbound_depth + 1,  # tangle:depth:increment
        run=run_id,
        turn=turn_id,
        parent_turn=parent_turn_id,
        speaker=speaker,
    )
    credential = {FORWARDED_AUTHORIZATION: forwarded_authorization or ""}
    return fields | dict(write_headers(credential))


def _fields(
    *, depth: int | None, run: str, turn: str, parent_turn: str | None, speaker: str | None
) -> dict[str, str]:
    fields = {
        FORWARDED_DEPTH: "" if depth is None else str(depth),
        RUN_ID: run,
        TURN_ID: turn,
        PARENT_TURN_ID: parent_turn or "",
        SPEAKER: _label(speaker or ""),
    }
    return dict(write_headers(fields))  # tangle:headers:omitted


@lru_cache(maxsize=256)  # the names of our agents
def _label(speaker: str) -> str:
    if speaker.isascii() and speaker.isprintable() and speaker == speaker.strip(" "):
        return speaker[:MAX_SPEAKER_BYTES].rstrip(" ")
    name = speaker[:MAX_SPEAKER_BYTES]
    while len(label := quote(name, safe="", errors="replace")) > MAX_SPEAKER_BYTES:
        name = name[:-1]  # by whole characters, so that what is left can be decoded
    return label


_Text = str | bytes
DepthHeaders = Mapping[str, str] | Mapping[str, Sequence[str]] | Iterable[tuple[_Text, _Text]]


def read_depth(headers: DepthHeaders) -> int:
    """Read the depth of a request from its headers, whatever the case of their names.

    They may be a mapping, also one to lists of values, or a list of pairs as servers give it.
    Absent or blank is 0; anything but ASCII digits raises `MalformedCallerContext`.
    """
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    lines = [
        (FORWARDED_DEPTH.encode(), _raw(value))
        for name, given in pairs
        if _raw(name).lower() == FORWARDED_DEPTH.encode()
        for value in ([given] if isinstance(given, str | bytes) else given)
    ]
    return Headers(lines).read_count(FORWARDED_DEPTH) or 0


def _raw(text: _Text) -> bytes:
    return text if isinstance(text, bytes) else text.encode(errors="surrogatepass")


def is_depth_exceeded(depth: int, max_depth: int = DEFAULT_MAX_DEPTH) -> bool:
    """Whether a call that arrived at `depth` must be refused."""
    return depth >= max_depth
