"""The credential of one turn: the gateway signs it, and a loop elsewhere is asked with it.

So a caller that has no token of ours, such as one that signs, reaches the loop as itself, and what
somebody has approved is named by the gateway and by nobody else.

Law 1. It is a JWS of a type of its own, signed with a key of the gateway: no other token is taken
       for it, and it for no other.
Law 2. It says who acts and the most that may be used, for which turn of which agent, until when,
       whether the turn may call others, whether the gateway wants to be asked before each tool and
       before each ask of a model, the named budgets that hold and what was counted and given of
       them, and what was answered, by the ids of tool calls. Nothing of it stands in the body of a
       request.
Law 3. `read_bearer(write_bearer(x))` gives x back. Whether it holds is for whoever has the keys.
Law 4. It has an id that nobody can guess. While its stream is open the gateway takes it for calls
       out of that turn, and for nothing else; afterwards for nothing at all.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct, ValidationError, convert

from carnet.core.messages.interrupt import Outcome, Resolution
from carnet.core.money.budget import MOST_NAMED, Ceilings, ceilings_of
from carnet.core.people.identity import Ceiling, Secret
from carnet.errors import InvalidJson, TokenInvalid
from carnet.wire.crypto import jws
from carnet.wire.dialects.engine_chat.actor import EngineActor
from carnet.wire.grammar import json
from carnet.wire.grammar.headers import Headers

TYPE: Final = "carnet-turn+jwt"
RESOLVED: Final = "x-actor-resolved"  # what was answered, as Auth tells the loop
BEARER: Final = "x-actor-bearer"  # the bearer itself, for the calls of the turn
MOST_BYTES: Final = 16_384

Resolved = Mapping[str, Resolution]  # by the ids of tool calls


class TurnBearer(Struct, frozen=True, kw_only=True):
    """What a gateway says of one turn."""

    issuer: str  # our domain
    actor: EngineActor
    turn: str
    expires: int  # seconds since the epoch
    resolved: dict[str, Resolution] = {}
    agent: str = ""  # the name of the one that is asked
    id: str = ""  # of this bearer
    is_final: bool = False  # no hop is left for calls
    asks_policy: bool = False  # the gateway is asked before each tool
    asks_tokens: bool = False  # and what is left of the tokens, before each ask of a model
    budgets: Ceilings = ()  # of the token that was shown
    granted: Ceilings = ()  # what who pays has given beyond those of the agent
    counted: Ceilings = ()  # of all of them, before this request
    asks: bool = False  # who pays may be asked for more
    held: frozenset[str] = frozenset()  # the ids of calls that a budget held up, and go on now


class SignedBearer(Struct, frozen=True):
    """A bearer that was read and not verified."""

    bearer: TurnBearer
    keyid: str
    signed: bytes
    signature: bytes


class _Answer(Struct, forbid_unknown_fields=True):
    outcome: Outcome
    value: Any = None


class _Claims(Struct, forbid_unknown_fields=True):
    iss: str
    sub: str
    turn: str
    exp: int
    allow: list[str]
    deny: list[str]
    resolved: dict[str, _Answer]
    agent: str = ""
    jti: str = ""
    final: bool = False
    policy: bool = False
    tokens: bool = False
    budgets: dict[str, int] = {}
    granted: dict[str, int] = {}
    counted: dict[str, int] = {}
    asks: bool = False
    held: list[str] = []


def is_bearer(credential: str) -> bool:
    """Whether a credential is in the form of a JWS, as no other token of ours is."""
    return credential.count(".") == 2  # noqa: PLR2004  its three parts


def write_bearer(bearer: TurnBearer, *, kid: str, sign: Callable[[bytes], bytes]) -> str:
    """The credential, signed."""
    ceiling = bearer.actor.ceiling
    claims: dict[str, Any] = {
        "iss": bearer.issuer,
        "sub": bearer.actor.id,
        "turn": bearer.turn,
        "exp": bearer.expires,
        "allow": sorted(ceiling.allow if ceiling.allow is not None else {"*"}),
        "deny": sorted(ceiling.deny),
        "resolved": _written(bearer.resolved),
        "agent": bearer.agent,
        "jti": bearer.id,
        "final": bearer.is_final,
        "policy": bearer.asks_policy,
    }
    if bearer.asks_tokens:
        claims["tokens"] = True
    for name, counts in _ceilings_of(bearer):
        if counts:
            claims[name] = dict(counts)
    if bearer.asks:
        claims |= {"asks": True, "held": sorted(bearer.held)}
    return jws.write(claims, kid=kid, typ=TYPE, sign=sign)


def read_bearer(text: str) -> SignedBearer:
    """What a credential says; TokenInvalid where it is not in its form."""
    try:
        token = jws.read(text, typ=TYPE, max_bytes=MOST_BYTES)
        claims = convert(token.payload, _Claims)
        budgets, granted = ceilings_of(claims.budgets), ceilings_of(claims.granted)
        counted = ceilings_of(claims.counted, most=2 * MOST_NAMED)
    except (jws.JwsInvalid, ValidationError, ValueError) as error:
        raise TokenInvalid(f"the bearer of a turn {error}") from None
    ceiling = Ceiling(allow=frozenset(claims.allow), deny=frozenset(claims.deny))
    bearer = TurnBearer(
        issuer=claims.iss,
        actor=EngineActor(claims.sub, ceiling),
        turn=claims.turn,
        expires=claims.exp,
        resolved=_read(claims.resolved),
        agent=claims.agent,
        id=claims.jti,
        is_final=claims.final,
        asks_policy=claims.policy,
        asks_tokens=claims.tokens,
        budgets=budgets,
        granted=granted,
        counted=counted,
        asks=claims.asks,
        held=frozenset(claims.held),
    )
    return SignedBearer(bearer, token.keyid, token.signed, token.signature)


def _ceilings_of(bearer: TurnBearer) -> tuple[tuple[str, Ceilings], ...]:
    """What it says of named budgets."""
    budgets, granted = ("budgets", bearer.budgets), ("granted", bearer.granted)
    return budgets, granted, ("counted", bearer.counted)


def write_resolved(resolved: Resolved) -> dict[str, str]:
    """The header that tells a loop what was answered; none where nothing was."""
    if not resolved:
        return {}
    return {RESOLVED: b64encode(json.write(_written(resolved))).decode()}  # a value may be any text


def read_resolved(headers: Headers) -> dict[str, Resolution]:
    """What was answered, as Auth says; TokenInvalid for what Auth would not write."""
    try:
        values = headers.get_all(RESOLVED)
        if not values:
            return {}
        (value,) = values
        answers = json.read(b64decode(value, validate=True))
        return _read(convert(answers, dict[str, _Answer]))
    except (InvalidJson, ValueError):  # those of base64 and of a wrong shape are ValueErrors
        raise TokenInvalid("what was answered is not in its form") from None


def write_shown(bearer: Secret | None) -> dict[str, str]:
    """The header that hands a loop the bearer of its turn; none where it was asked otherwise."""
    return {} if bearer is None else {BEARER: bearer.reveal()}


def read_shown(headers: Headers) -> tuple[Secret, TurnBearer] | None:
    """The bearer of a turn, as Auth hands it over, and what it says; Auth has verified it."""
    values = headers.get_all(BEARER)
    if not values:
        return None
    if len(values) > 1:
        raise TokenInvalid("there are two bearers of turns")
    return Secret(values[0]), read_bearer(values[0]).bearer


def _written(resolved: Resolved) -> dict[str, Any]:
    return {
        id: {"outcome": answer.outcome, "value": answer.value} for id, answer in resolved.items()
    }


def _read(answers: Mapping[str, _Answer]) -> dict[str, Resolution]:
    return {
        id: Resolution(outcome=answer.outcome, value=answer.value) for id, answer in answers.items()
    }
