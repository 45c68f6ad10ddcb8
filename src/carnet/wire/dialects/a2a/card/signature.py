"""Signatures of cards: JWS with EdDSA over the canonical form of a card (RFC 7515, RFC 8785).

Law 1. A card of ours is signed in the form that the protocol's SDKs verify, which covers the
       members of version 1.0. Where it has those of 0.3 it is signed once more, with the same key,
       as the whole document.
Law 2. A signature is judged with keys that whoever asks has found; where a card says that its key
       lies (`jku`) is told, and nothing is fetched.
Law 3. One signature that holds is enough. One that is broken under a key that we know is told, also
       beside another that holds not.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from carnet.wire.crypto import ed25519, jws
from carnet.wire.dialects.a2a.card.presence import Form, NotCovered, payload_of

State = Literal[
    "unsigned",
    "verified",
    "broken",  # by a key that is known, and it does not hold
    "key-unknown",  # nobody whom we may believe shows the key
    "not-verifiable",  # made in a way that we do not verify
]
MOST_SIGNATURES: Final = 8
FORMS: Final[tuple[Form, ...]] = ("proto", "sdk", "whole")


class CardSignature(Struct, frozen=True):
    """One signature as it stands in a card."""

    protected: str
    signature: str


class CardVerdict(Struct, frozen=True, kw_only=True):
    """What the signatures of a card are worth."""

    state: State
    kid: str | None = None  # of the signature that the state is about
    jku: str | None = None
    form: Form | None = None  # of one that holds
    detail: str = ""  # in words of ours


def sign_card(
    card: dict[str, Any], *, kid: str, jku: str, sign: Callable[[bytes], bytes]
) -> dict[str, Any]:
    """The card with its signatures."""
    covered = dict.fromkeys([payload_of(card, "proto"), payload_of(card, "whole")])
    made = [jws.write_detached(payload, kid=kid, jku=jku, sign=sign) for payload in covered]
    signatures = [{"protected": protected, "signature": text} for protected, text in made]
    return {**card, "signatures": signatures}


def verify_card(
    card: dict[str, Any], signatures: Sequence[CardSignature], keys: Mapping[str, bytes]
) -> CardVerdict:
    """Judge a card by keys that may be believed, each under its name."""
    if not signatures:
        return CardVerdict(state="unsigned", detail="the card is not signed")
    verdicts = [_judge(card, each, keys) for each in signatures[:MOST_SIGNATURES]]
    return min(verdicts, key=lambda verdict: _ORDER.index(verdict.state))


# Which of several verdicts is told. What holds is enough, and what is broken is worse than unknown.
_ORDER: Final[tuple[State, ...]] = (
    "verified",
    "broken",
    "key-unknown",
    "not-verifiable",
    "unsigned",
)


def named_keys(signatures: Sequence[CardSignature]) -> list[jws.DetachedSignature]:
    """The signatures that can be read, for whoever looks for their keys."""
    found = []
    for each in signatures[:MOST_SIGNATURES]:
        try:
            found.append(jws.read_detached(each.protected, each.signature))
        except jws.JwsInvalid:
            continue
    return found


def _judge(card: dict[str, Any], given: CardSignature, keys: Mapping[str, bytes]) -> CardVerdict:
    try:
        read = jws.read_detached(given.protected, given.signature)
    except jws.AlgorithmUnknown as error:
        return CardVerdict(state="not-verifiable", detail=f"a signature {error}")
    except jws.JwsInvalid as error:
        return CardVerdict(state="broken", detail=f"a signature {error}")
    key = keys.get(read.keyid)
    if key is None:
        detail = "no key of that name is one that may be believed"
        return CardVerdict(state="key-unknown", kid=read.keyid, jku=read.jku, detail=detail)
    form = _form(card, read, key)
    if form is not None:
        return CardVerdict(state="verified", kid=read.keyid, jku=read.jku, form=form)
    detail = "the card is not what was signed"
    return CardVerdict(state="broken", kid=read.keyid, jku=read.jku, detail=detail)


def _form(card: dict[str, Any], read: jws.DetachedSignature, key: bytes) -> Form | None:
    """The form in which a signature holds."""
    for form in FORMS:
        try:
            payload = payload_of(card, form)
        except NotCovered:
            continue
        if ed25519.holds(key, read.covers(payload), read.signature):
            return form
    return None
