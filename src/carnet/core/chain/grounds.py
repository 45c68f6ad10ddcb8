"""Why a call was admitted: what each guard found, in a few words.

Law 1. It is written once, with the claim of the turn, and stands beside what was asked.
Law 2. It holds names and numbers: no credential, and nothing of what was asked.
Law 3. `explained` names the guards in the order in which they judged.
"""

from collections.abc import Callable, Sequence
from typing import Final, Literal

import msgspec
from msgspec import Struct

from carnet.core.money.amount import format_amount

By = Literal["token", "signature", "in_process", "a2a-jwt", "a2a-oauth"]


# What a stamp may tell of a chain, in the order of its bits; the payer's credential is the last.
TANGLE: Final = ("depth", "run", "turn", "parent_turn", "speaker", "forwarded")
MOST_PATH: Final = 512  # bytes of a path that are kept


class Grounds(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the guards found."""

    by: By  # how the caller was known
    caller: str  # "token:alice", "peer:globex.example", "agent:researcher"
    token: str | None = None  # the name of the token that was shown
    sender: str | None = None  # the identity that signed
    key: str | None = None  # the id of its key
    peer: str | None = None  # the listed organisation that it belongs to
    document: bool = False  # it brought a travel document
    delegation: int = 0  # the links of the delegation that it brought
    depth: int = 0
    last_depth: int | None = None  # the last depth of its chain that is answered
    stamp: str | None = None  # which stamp set that
    agent: str
    skill: str | None = None
    checked: bool = False  # a payload was compared with the schema of the skill
    callback: bool = False  # it named where to call back to
    needs: str = ""  # the permission that the agent asks for
    trust: str | None = None  # and of those who sign
    payer: str
    forwarded: bool = False  # the payer came from a forwarded credential
    limit: int | None = None  # what the payer may spend, in micro-units
    reserve: int = 0
    rates: tuple[str, ...] = ()
    quotas: tuple[str, ...] = ()
    subject: str | None = None  # the address that its credential names
    evidence: tuple[str, ...] = ()  # that was verified: who, for whom, by whose word
    faults: tuple[str, ...] = ()  # why other evidence was set aside, a word each
    allowed: bool = False  # the agent has a list, and it is on it
    path: bytes = b""  # that it came by, as far as it is kept
    base: bytes = b""  # what was signed, without credentials
    tangle: int = 0  # which headers of that stamp it brought: a bit for each of `TANGLE`


class Ground(Struct, frozen=True):
    """One guard, and what it found."""

    guard: str
    found: str


_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Grounds)


write_grounds: Final[Callable[[Grounds], bytes]] = _encoder.encode  # as kept: one line of JSON


def read_grounds(data: bytes) -> Grounds:
    """What was kept."""
    return _decoder.decode(data)


def _caller(grounds: Grounds) -> str:
    shown = f", by the token {grounds.token}" if grounds.token else ""
    return f"{grounds.caller}{shown}"


def _chain(grounds: Grounds) -> str:
    if grounds.last_depth is None:
        return f"depth {grounds.depth}; no stamp sets a limit"
    return f"depth {grounds.depth} of at most {grounds.last_depth}, set by {grounds.stamp}"


def _delegation(grounds: Grounds) -> str:
    count = grounds.delegation
    return f"{count} link{'' if count == 1 else 's'} verified" if count else "none brought"


def _evidence(grounds: Grounds) -> str:
    found = list(grounds.evidence)
    found += [f"set aside ({fault})" for fault in grounds.faults]
    return "; ".join(found)


def _credential(grounds: Grounds) -> str:
    names = f", which names {grounds.subject}" if grounds.subject else ""
    return f"holds under the key {grounds.key}{names}"


def _sender(grounds: Grounds) -> str:
    known = f", a listed peer ({grounds.peer})" if grounds.peer else ", not listed"
    return f"{grounds.sender}{known}"


def _paying(grounds: Grounds) -> str:
    how = ", by a forwarded credential" if grounds.forwarded else ""
    if grounds.limit is None:
        return f"{grounds.payer}{how}; no limit"
    return f"{grounds.payer}{how}; limit {format_amount(grounds.limit)}"


def _transaction(grounds: Grounds) -> str:
    words = ["no repeat"]
    if grounds.reserve:
        words.append(f"reserved {format_amount(grounds.reserve)}")
    words += [f"within the rate {rate}" for rate in grounds.rates]
    words += [f"within the quota {quota}" for quota in grounds.quotas]
    return "; ".join(words)


Tell = Callable[[Grounds], str]
_AGENT: Final[tuple[str, Tell]] = ("known agent", lambda grounds: grounds.agent)
_SKILL: Final[tuple[str, Tell]] = ("known skill", lambda grounds: grounds.skill or "a chat")
_CHAIN: Final[tuple[str, Tell]] = ("within chain", _chain)
_SCHEMA: Final[tuple[str, Tell]] = (
    "well formed",
    lambda grounds: "the payload fits its schema" if grounds.checked else "no payload to compare",
)
_PAYING: Final[tuple[str, Tell]] = ("paying", _paying)
_EVIDENCE: Final[tuple[str, Tell]] = ("evidenced", _evidence)
_LISTED: Final[tuple[str, Tell]] = (
    "on list",
    lambda grounds: "on the list of the agent" if grounds.allowed else "",
)
_PERMITTED: Final[tuple[str, Tell]] = ("permitted", lambda grounds: f"may {grounds.needs}")

OPTIONAL: Final = frozenset({"evidenced", "on list"})  # for calls that have anything of the kind

_AFTER_TOKEN: Final[tuple[tuple[str, Tell], ...]] = (
    _EVIDENCE,
    _CHAIN,
    _AGENT,
    _SKILL,
    _PERMITTED,
    _LISTED,
    _SCHEMA,
    _PAYING,
    ("transaction", _transaction),
)
_AFTER_PROOF: Final[tuple[tuple[str, Tell], ...]] = (
    ("addressed", lambda _: "to us"),
    _EVIDENCE,
    _CHAIN,
    ("travelled", lambda grounds: "verified" if grounds.document else "no travel document"),
    ("delegated", _delegation),
    ("scanned", lambda _: "nothing that takes a model over"),
    _AGENT,
    ("unlooped", lambda _: "this agent is not on the way it came"),
    _SKILL,
    ("in scope", lambda _: "of what was delegated"),
    ("trusted", lambda grounds: f"{_caller(grounds)}; asked for: {grounds.trust}"),
    _LISTED,
    _SCHEMA,
    ("called back", lambda grounds: "allowed" if grounds.callback else "not asked for"),
    _PAYING,
    ("transaction", _transaction),
)

ORDER: Final[dict[By, tuple[tuple[str, Tell], ...]]] = {
    "token": (
        ("known caller", _caller),
        *_AFTER_TOKEN,
    ),
    "a2a-oauth": (
        ("granted", lambda grounds: f"{grounds.caller}, by an access token (a2a-oauth)"),
        *_AFTER_TOKEN,
    ),
    "a2a-jwt": (
        ("in time", lambda _: "a credential of a few minutes (a2a-jwt)"),
        ("unrepeated", lambda _: "a new number"),
        ("within rate", lambda _: "below the rate of its sender"),
        ("known sender", _sender),
        ("signed", _credential),
        *_AFTER_PROOF,
    ),
    "signature": (
        ("in time", lambda _: "signed a moment ago"),
        ("unrepeated", lambda _: "a new nonce"),
        ("within rate", lambda _: "below the rate of its sender"),
        ("known sender", _sender),
        ("signed", lambda grounds: f"holds under the key {grounds.key}"),
        *_AFTER_PROOF,
    ),
    "in_process": (
        ("known caller", _caller),
        _AGENT,
        _CHAIN,
        _PERMITTED,
        _SCHEMA,
        _PAYING,
        ("transaction", _transaction),
    ),
}


def explained(grounds: Grounds) -> Sequence[Ground]:
    """What each guard found, in the order of admission; those that had nothing to judge are not."""
    found = [Ground(guard, tell(grounds)) for guard, tell in ORDER[grounds.by]]
    return [ground for ground in found if ground.found or ground.guard not in OPTIONAL]
