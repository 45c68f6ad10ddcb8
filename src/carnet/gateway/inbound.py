"""From a request to a Claim: the body by its dialect, the chain by its stamps.

Law. Malformed in any part is malformed; absent is not malformed.
"""

import re
from hashlib import sha256
from typing import Final

from msgspec import Struct, structs

from carnet.core.call import Claim
from carnet.core.carnet import DepthLimits, Mark
from carnet.core.proof import Document
from carnet.core.secret import Secret
from carnet.core.skill import Mode
from carnet.errors import InvalidRequest
from carnet.http.exchange import Exchange
from carnet.wire import caller_context, json, openai, samvad, tangle, trace, travel
from carnet.wire.headers import Headers, refuse_lookalikes
from carnet.wire.signatures import Request


class Stamps(Struct, frozen=True):
    """What the headers say about the chain."""

    marks: tuple[Mark, ...]
    forwarded: Secret | None


NO_STAMPS = Stamps((), None)
_URL: Final = re.compile(r"[!-~]{1,2048}", re.ASCII)

# Members of other requests, without capitals, hyphens and underscores. A chat keeps what it does
# not know, for whichever model there is; of these we know that they would do nothing.
_CALLBACK: Final = "is not known here; write it as 'callback'"
_SIGNED: Final = "is for signed requests, which go to /agent/task"
_WITHIN: Final = "belongs into 'carnet', an object of skill and payload"
_ELSEWHERE: Final = {
    **dict.fromkeys(("callbackurl", "callbackuri", "callbacks"), _CALLBACK),
    **dict.fromkeys(("webhook", "webhookurl", "webhookuri", "notifyurl"), _CALLBACK),
    **dict.fromkeys(("skill", "payload"), _WITHIN),
    **dict.fromkeys(("mode", "delegationtoken", "traceid", "spanid"), _SIGNED),
}
_MOST_NAME: Final = 20


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


def read_later(headers: Headers, stamps: Stamps, body: bytes) -> Claim:
    """Read a chat request that is to be run as a task; it may name a `callback`."""
    parsed = json.read_object(body)
    _refuse_misplaced(parsed)
    callback = parsed.pop("callback", None)
    if callback is not None and (not isinstance(callback, str) or not _URL.fullmatch(callback)):
        raise InvalidRequest("callback", "must be a URL")
    claim = read_chat(headers, stamps, json.write(parsed), None)
    if claim.ask.stream:
        raise InvalidRequest("stream", "is not for tasks: a result comes when one has ended")
    # The same turn, asked for at once, is another call.
    digest = sha256(b"task\0" + claim.digest).digest()
    return structs.replace(claim, is_task=True, callback=callback, digest=digest)


def _refuse_misplaced(parsed: dict[str, object]) -> None:
    """Refuse a member that its sender expects something of, and that nothing here would read."""
    for name in parsed:
        plain = name[: _MOST_NAME + 1].lower().replace("_", "").replace("-", "")
        if len(name) <= _MOST_NAME and plain in _ELSEWHERE:
            raise InvalidRequest(name, _ELSEWHERE[plain])


def with_proof(claim: Claim, exchange: Exchange, body: bytes, depths: DepthLimits) -> Claim:
    """The claim with the proof that the request brings along, if it brings one.

    Who signs is known by the signature: a token beside it, which nobody signed, is not looked at.
    """
    headers = exchange.headers
    if not (headers.has(b"signature-input") or headers.has(b"carnet")):  # nearly every request
        return claim
    proof = travel.read_proof(request_of(exchange), body)
    if proof is None:
        return claim
    marks = (*claim.marks, *_of_document(proof.document, depths))
    return structs.replace(claim, proof=proof, marks=marks, authorization=None)


def read_signed(
    exchange: Exchange,
    body: bytes,
    depths: DepthLimits,
    *,
    agent: str,
    mode: Mode,
    short_path: str,
) -> Claim:
    """Read a request of the SAMVAD dialect.

    Args:
        exchange: Its head.
        body: Its body.
        depths: What bounds the chains that its stamps tell of.
        agent: The agent that the path or the host names; empty for the default one.
        mode: The mode that the endpoint serves.
        short_path: The path without the prefix of the agent, which clients sign.
    """
    claim = samvad.read_claim(
        request_of(exchange), body, agent=agent, mode=mode, short_path=short_path
    )
    refuse_lookalikes(exchange.headers)
    proof = claim.proof
    if proof is None or proof.profile == "samvad":  # then no stamp stands beside the signature
        return claim
    stamps = read_stamps(exchange.headers, depths)
    document = travel.read_beside(exchange.headers, body)
    return structs.replace(
        claim,
        proof=structs.replace(proof, document=document),
        marks=(*claim.marks, *stamps.marks, *_of_document(document, depths)),
        forwarded=stamps.forwarded,
    )


def request_of(exchange: Exchange) -> Request:
    """The request as far as a signature can see it."""
    path, query = exchange.path.decode("latin-1"), exchange.query.decode("latin-1")
    return Request(
        method=exchange.method,
        authority=exchange.headers.get("host") or "",
        path=path,
        query=query or None,
        headers=exchange.headers,
        scheme=exchange.scheme,
    )


def _of_document(document: Document | None, depths: DepthLimits) -> tuple[Mark, ...]:
    return () if document is None else (travel.mark(document, last_depth=depths.tangle),)
