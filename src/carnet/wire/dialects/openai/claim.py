"""A chat request as a Claim, to be answered at once or as a task."""

import re
from hashlib import sha256
from typing import Final

from msgspec import structs

from carnet.core.call import Claim
from carnet.core.people.identity import Secret
from carnet.errors import InvalidRequest
from carnet.wire.dialects.dialect import Arrival
from carnet.wire.dialects.openai.request import read_ask, request_digest
from carnet.wire.grammar import json
from carnet.wire.stamps.stamp import read_trace

NAME: Final = "openai"

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


def read_chat(arrival: Arrival, body: bytes | None = None) -> Claim:
    """Read a chat completion request; `body` stands in the place of the one that came."""
    headers, stamped = arrival.headers, arrival.stamped()
    parsed = json.read_object(arrival.body if body is None else body)
    model, ask = read_ask(parsed)
    request = json.canonical(parsed)
    authorization = headers.get("authorization")
    return Claim(
        dialect=NAME,
        agent=arrival.agent if arrival.agent is not None else model or "",
        ask=ask,
        digest=request_digest(parsed, request),
        request=request,
        marks=stamped.marks,
        authorization=None if authorization is None else Secret(authorization),
        forwarded=stamped.forwarded,
        context=stamped.context,
        trace=read_trace(headers),
    )


def read_later(arrival: Arrival) -> Claim:
    """Read a chat request that is to be run as a task; it may name a `callback`."""
    parsed = json.read_object(arrival.body)
    _refuse_misplaced(parsed)
    callback = parsed.pop("callback", None)
    if callback is not None and (not isinstance(callback, str) or not _URL.fullmatch(callback)):
        raise InvalidRequest("callback", "must be a URL")
    claim = read_chat(arrival, json.write(parsed))
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
