"""Identity evidence of Mentionable 0.1, as it is written, signed and read.

    {"id": "...", "subject": "@agent-a@example.com", "issuer": "example.com",
     "method": "urn:mentionable:auth:a2a-agent:v0.1", "assurance": "agent",
     "audience": "@b@bots.example", "issued_at": "2026-11-18T10:00:00Z", "expires_at": "...",
     "on_behalf_of": ["mailto:u@example.com"],
     "proof": {"type": "signed-attestation", "alg": "EdDSA", "kid": "...",
               "canonicalization": "JCS", "value": "BASE64URL"}}

Signed are the bytes of RFC 8785 of all of it but `proof.value`.

Law 1. `read(write(...))` gives the same evidence, and what is signed is what was signed.
Law 2. Methods and assurances that nobody here knows are kept as the words they are.
Law 3. Whatever the value, it is evidence that nobody has verified, or `EvidenceInvalid`, in time
       that grows with its size; nothing is fetched.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct

from carnet.core.people.evidence import (
    MOST_BEHALF,
    MOST_CARRIED_BYTES,
    MOST_EVIDENCE,
    MOST_SECONDS,
    MOST_SUBJECT,
    MOST_WORD,
    Evidence,
    EvidenceInvalid,
)
from carnet.core.people.proof import SECOND_US
from carnet.wire.crypto.ed25519 import SIGNATURE_BYTES
from carnet.wire.crypto.jws import is_keyid
from carnet.wire.grammar import jcs, json
from carnet.wire.grammar.times import micros_of, when

METHOD: Final = "urn:mentionable:auth:a2a-agent:v0.1"
ASSURANCE: Final = "agent"
SIGNED: Final = "signed-attestation"
ALGORITHM: Final = "EdDSA"
CANONICAL: Final = "JCS"
MOST_AUDIENCES: Final = 8
MOST_CLAIMS_BYTES: Final = 8192

_TEXT: Final = re.compile(r"[^\x00-\x20\x7f]{1,512}")
_ID: Final = re.compile(r"[\x21-\x7e]{8,128}", re.ASCII)
_MOMENT: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?(?:Z|\+00:00)", re.ASCII
)
_VALUE: Final = re.compile(r"[A-Za-z0-9_-]{86}", re.ASCII)


class StatedEvidence(Struct, frozen=True, kw_only=True):
    """Evidence as it was read: nobody has verified it."""

    evidence: Evidence
    begins: int  # seconds since the epoch
    item: dict[str, Any]  # as it came
    signature: bytes

    def signed(self) -> bytes:
        """What its signature covers: found when it is asked for, since that takes a while."""
        proof = {name: each for name, each in self.item["proof"].items() if name != "value"}
        return _canonical(self.item | {"proof": proof})


def read_carrier(value: object) -> list[Any]:
    """The items of the carrier, each to be read for itself."""
    if not isinstance(value, list):
        raise EvidenceInvalid("malformed")
    if len(value) > MOST_EVIDENCE or len(json.write(value)) > MOST_CARRIED_BYTES:
        raise EvidenceInvalid("limit_exceeded")
    return value


def read(value: object) -> StatedEvidence:
    """What one item says."""
    if not isinstance(value, dict):
        raise EvidenceInvalid("malformed")
    proof = value.get("proof")
    if not isinstance(proof, dict):
        raise EvidenceInvalid("malformed")
    if proof.get("type") != SIGNED:  # of what was verified elsewhere nothing can be verified here
        raise EvidenceInvalid("unsupported_profile")
    if proof.get("alg") != ALGORITHM or proof.get("canonicalization", CANONICAL) != CANONICAL:
        raise EvidenceInvalid("unsupported_cryptosuite")
    kid = proof.get("kid")
    if not isinstance(kid, str) or not is_keyid(kid):
        raise EvidenceInvalid("malformed")
    issued = _moment(value, "issued_at")
    expires = _moment(value, "expires_at") if "expires_at" in value else issued + MOST_SECONDS
    begins = max(issued, _moment(value, "not_before")) if "not_before" in value else issued
    if expires <= issued:
        raise EvidenceInvalid("malformed")
    if expires > issued + MOST_SECONDS:
        raise EvidenceInvalid("limit_exceeded")
    return StatedEvidence(
        evidence=Evidence(
            subject=_text(value, "subject", MOST_SUBJECT),
            issuer=_text(value, "issuer", MOST_SUBJECT),
            method=_text(value, "method", MOST_WORD),
            assurance=_text(value, "assurance", MOST_WORD),
            audience=_texts(value, "audience", MOST_AUDIENCES),
            issued=issued,
            expires=expires,
            on_behalf_of=_behalf(value),
            id=_id(value),
            claims=_object(value, "claims"),
            source=_object(value, "source"),
            key=kid,
        ),
        begins=begins,
        item=value,
        signature=_signature(proof.get("value")),
    )


def write(evidence: Evidence, *, kid: str, sign: Callable[[bytes], bytes]) -> dict[str, Any]:
    """Evidence as it is sent, signed for its one audience."""
    (audience,) = evidence.audience
    written: dict[str, Any] = {
        "id": evidence.id,
        "subject": evidence.subject,
        "issuer": evidence.issuer,
        "method": evidence.method,
        "assurance": evidence.assurance,
        "audience": audience,
        "issued_at": _written(evidence.issued),
        "expires_at": _written(evidence.expires),
    }
    if evidence.on_behalf_of:
        written["on_behalf_of"] = list(evidence.on_behalf_of)
    if evidence.claims:
        written["claims"] = evidence.claims
    proof = {"type": SIGNED, "alg": ALGORITHM, "kid": kid, "canonicalization": CANONICAL}
    signature = sign(_canonical(written | {"proof": proof}))
    value = urlsafe_b64encode(signature).rstrip(b"=").decode()
    return written | {"proof": proof | {"value": value}}


def _canonical(value: dict[str, Any]) -> bytes:
    try:
        return jcs.canonical(value)
    except ValueError:
        raise EvidenceInvalid("malformed") from None


def _written(seconds: int) -> str:
    return str(when(seconds * SECOND_US)).replace("+00:00", "Z")


def _moment(value: dict[str, Any], name: str) -> int:
    """A moment in seconds, written as RFC 3339 has it or counted since the epoch."""
    given = value.get(name)
    if type(given) is float and given.is_integer():  # as a `google.protobuf.Struct` has numbers
        given = int(given)
    if type(given) is int and 0 < given < json.MAX_INTEGER // SECOND_US:
        return given
    found = None
    if isinstance(given, str) and _MOMENT.fullmatch(given):
        found = micros_of(given)
    if found is None:
        raise EvidenceInvalid("malformed")
    return found // SECOND_US


def _text(value: dict[str, Any], name: str, most: int) -> str:
    given = value.get(name)
    if not isinstance(given, str):
        raise EvidenceInvalid("malformed")
    if len(given) > most:
        raise EvidenceInvalid("limit_exceeded")
    if _TEXT.fullmatch(given) is None or not given.isprintable():
        raise EvidenceInvalid("malformed")
    return given


def _texts(value: dict[str, Any], name: str, most: int) -> tuple[str, ...]:
    given = value.get(name)
    listed: Sequence[Any] = [given] if isinstance(given, str) else given or []
    if not isinstance(listed, list) or not listed:
        raise EvidenceInvalid("malformed")
    if len(listed) > most:
        raise EvidenceInvalid("limit_exceeded")
    return tuple([_text({name: each}, name, MOST_SUBJECT) for each in listed])


def _behalf(value: dict[str, Any]) -> tuple[str, ...]:
    if value.get("on_behalf_of") in (None, []):
        return ()
    if isinstance(value["on_behalf_of"], str):
        raise EvidenceInvalid("malformed")
    return _texts(value, "on_behalf_of", MOST_BEHALF)


def _id(value: dict[str, Any]) -> str:
    given = value.get("id")
    if not isinstance(given, str) or _ID.fullmatch(given) is None:  # without it, it is not for once
        raise EvidenceInvalid("malformed")
    return given


def _object(value: dict[str, Any], name: str) -> dict[str, Any]:
    given = value.get(name)
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise EvidenceInvalid("malformed")
    if len(json.write(given)) > MOST_CLAIMS_BYTES:
        raise EvidenceInvalid("limit_exceeded")
    return given


def _signature(value: object) -> bytes:
    if not isinstance(value, str) or _VALUE.fullmatch(value) is None:
        raise EvidenceInvalid("malformed")
    raw = urlsafe_b64decode(value + "==")
    if len(raw) != SIGNATURE_BYTES or urlsafe_b64encode(raw).rstrip(b"=").decode() != value:
        raise EvidenceInvalid("malformed")
    return raw
