"""Credentials of Mentionable identity 0.2: a platform says who used it, to one recipient, once.

    {"@context": ["https://www.w3.org/ns/credentials/v2",
                  "https://mentionable.dev/ns/identity/v0.2/context.jsonld"],
     "id": "urn:uuid:...", "type": ["VerifiableCredential", "PlatformIdentityCredential"],
     "issuer": "did:web:connector.example", "validFrom": "...", "validUntil": "...",
     "credentialSubject": {"id": "slack:T123/U456", "method": "urn:mentionable:auth:...",
                           "assurance": "platform", "platform": {...}, "profile": {...}},
     "proof": {"type": "DataIntegrityProof", "cryptosuite": "eddsa-jcs-2022",
               "proofPurpose": "assertionMethod", "domain": "@b@bots.example",
               "challenge": "the id of the message", "verificationMethod": "did:web:...#k1",
               "proofValue": "z..."}}

Signed are two digests (SHA-256 of RFC 8785): of the proof without its value, and of the rest.

Law 1. `read(write(...))` gives the same evidence, and what is signed is what was signed.
Law 2. It is bound to its recipient by `domain` and to one message by `challenge`.
Law 3. A member that this profile does not have (a status, a schema) is not passed over: nobody
       believes a credential without what its issuer says of it.
Law 4. Whatever the value, it is a credential that nobody has verified, or `EvidenceInvalid`, in
       time that grows with its size; nothing is fetched.
"""

import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct

from carnet.core.people.evidence import (
    MOST_CARRIED_BYTES,
    MOST_SECONDS,
    MOST_SUBJECT,
    MOST_WORD,
    Evidence,
    EvidenceInvalid,
)
from carnet.core.people.proof import SECOND_US
from carnet.wire.crypto import multibase
from carnet.wire.crypto.ed25519 import SIGNATURE_BYTES
from carnet.wire.grammar import jcs, json
from carnet.wire.grammar.times import micros_of, when

URI: Final = "https://mentionable.dev/ns/identity/v0.2"
CONTEXTS: Final = (
    "https://www.w3.org/ns/credentials/v2",
    "https://mentionable.dev/ns/identity/v0.2/context.jsonld",
)
TYPES: Final = ("VerifiableCredential", "PlatformIdentityCredential")
VERSION: Final = "0.2"
PROOF: Final = "DataIntegrityProof"
SUITE: Final = "eddsa-jcs-2022"
PURPOSE: Final = "assertionMethod"
MOST_CREDENTIALS: Final = 4
MOST_BYTES: Final = 32 * 1024

_MEMBERS: Final = frozenset(
    {"@context", "id", "type", "issuer", "validFrom", "validUntil", "credentialSubject", "proof"}
)
_PROOF: Final = frozenset(
    {"@context", "type", "cryptosuite", "proofPurpose", "verificationMethod", "proofValue"}
    | {"domain", "challenge", "created"}
)
_BESIDE: Final = ("platform", "observedInvocation", "profile", "source")  # of the subject
_NAMES: Final = ("provider", "workspace_id", "target", "display_name", "username")  # within these
_TEXT: Final = re.compile(r"[^\x00-\x20\x7f]{1,640}")
_MOMENT: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"
    r"(?:Z|[+-][0-9]{2}:[0-9]{2})",
    re.ASCII,
)


class StatedCredential(Struct, frozen=True, kw_only=True):
    """A credential as it was read: nobody has verified it."""

    evidence: Evidence
    domain: str
    challenge: str
    method: str  # the name of the key that has signed it
    begins: int  # microseconds since the epoch
    ends: int
    item: dict[str, Any]  # as it came
    signature: bytes

    def bases(self) -> tuple[bytes, ...]:
        """What its signature covers, in either form that is written.

        Found when it is asked for, since that takes a while.
        """
        value, proof = self.item, self.item["proof"]
        unsigned = {name: each for name, each in proof.items() if name != "proofValue"}
        forms = [unsigned]
        if "@context" not in unsigned:  # some digest it with the proof all the same
            forms.append(unsigned | {"@context": value["@context"]})
        rest = _digest({name: each for name, each in value.items() if name != "proof"})
        return tuple([_digest(form) + rest for form in forms])


def read_carrier(value: object) -> list[Any]:
    """The credentials of the carrier, each to be read for itself."""
    if not isinstance(value, list):
        raise EvidenceInvalid("malformed")
    if len(value) > MOST_CREDENTIALS or len(json.write(value)) > MOST_CARRIED_BYTES:
        raise EvidenceInvalid("limit_exceeded")
    return value


def read(value: object) -> StatedCredential:
    """What one of them says."""
    if not isinstance(value, dict):
        raise EvidenceInvalid("malformed")
    if len(json.write(value)) > MOST_BYTES:
        raise EvidenceInvalid("limit_exceeded")
    proof = _proof(value)
    begins, ends = _moment(value, "validFrom"), _moment(value, "validUntil")
    if ends <= begins:
        raise EvidenceInvalid("malformed")
    if ends - begins > MOST_SECONDS * SECOND_US:
        raise EvidenceInvalid("limit_exceeded")
    domain = _text(proof, "domain", MOST_SUBJECT)
    return StatedCredential(
        evidence=_evidence(value, domain, begins, ends),
        domain=domain,
        challenge=_text(proof, "challenge", MOST_SUBJECT),
        method=_text(proof, "verificationMethod", 640),
        begins=begins,
        ends=ends,
        item=value,
        signature=_signature(proof.get("proofValue")),
    )


def write(
    evidence: Evidence,
    *,
    challenge: str,
    method: str,
    sign: Callable[[bytes], bytes],
) -> dict[str, Any]:
    """A credential for one recipient and one message.

    Args:
        evidence: What it says; its one audience is whom it is for.
        challenge: The id of the message.
        method: The name of the key that signs.
        sign: Gives the signature.
    """
    (audience,) = evidence.audience
    subject = {"id": evidence.subject, "method": evidence.method, **evidence.source}
    subject |= {"assurance": evidence.assurance} if evidence.assurance else {}
    begins, ends = _written(evidence.issued), _written(evidence.expires)
    made = {
        "@context": list(CONTEXTS),
        "id": evidence.id,
        "type": list(TYPES),
        "issuer": evidence.issuer,
        "validFrom": begins,
        "validUntil": ends,
        "credentialSubject": subject,
    }
    proof = {
        "@context": list(CONTEXTS),
        "type": PROOF,
        "cryptosuite": SUITE,
        "created": begins,
        "proofPurpose": PURPOSE,
        "verificationMethod": method,
        "domain": audience,
        "challenge": challenge,
    }
    value = multibase.write(sign(_digest(proof) + _digest(made)))
    return made | {"proof": proof | {"proofValue": value}}


def _proof(value: dict[str, Any]) -> dict[str, Any]:
    """Its proof, where it is of this profile."""
    if value.get("@context") != list(CONTEXTS) or value.get("type") != list(TYPES):
        raise EvidenceInvalid("unsupported_profile")
    proof = value.get("proof")
    if not isinstance(proof, dict):
        raise EvidenceInvalid("malformed")
    if proof.get("type") != PROOF or proof.get("proofPurpose") != PURPOSE:
        raise EvidenceInvalid("unsupported_profile")
    if proof.get("cryptosuite") != SUITE:
        raise EvidenceInvalid("unsupported_cryptosuite")
    if not (value.keys() <= _MEMBERS and proof.keys() <= _PROOF):
        raise EvidenceInvalid("unsupported_profile")
    if proof.get("@context", value["@context"]) != value["@context"]:
        raise EvidenceInvalid("malformed")
    if "created" in proof:
        _moment(proof, "created")
    return proof


def _evidence(value: dict[str, Any], domain: str, begins: int, ends: int) -> Evidence:
    subject = value.get("credentialSubject")
    if not isinstance(subject, dict):
        raise EvidenceInvalid("malformed")
    return Evidence(
        subject=_text(subject, "id", MOST_SUBJECT),
        issuer=_text(value, "issuer", MOST_SUBJECT),
        method=_text(subject, "method", MOST_WORD),
        assurance=_text(subject, "assurance", MOST_WORD) if "assurance" in subject else "",
        audience=(domain,),
        issued=begins // SECOND_US,
        expires=-(-ends // SECOND_US),
        id=_text(value, "id", MOST_SUBJECT),
        source={name: _context(subject[name]) for name in _BESIDE if name in subject},
        version=VERSION,
    )


def _context(value: object) -> dict[str, Any]:
    """What is told beside: context, which authorises nobody (M29)."""
    if not isinstance(value, dict):
        raise EvidenceInvalid("malformed")
    for name in _NAMES:
        given = value.get(name, "")
        if not isinstance(given, str):
            raise EvidenceInvalid("malformed")
        if len(given) > MOST_WORD:
            raise EvidenceInvalid("limit_exceeded")
    return value


def _digest(value: dict[str, Any]) -> bytes:
    try:
        return sha256(jcs.canonical(value)).digest()
    except ValueError:
        raise EvidenceInvalid("malformed") from None


def _written(seconds: int) -> str:
    return str(when(seconds * SECOND_US)).replace("+00:00", "Z")


def _moment(value: dict[str, Any], name: str) -> int:
    given = value.get(name)
    found = micros_of(given) if isinstance(given, str) and _MOMENT.fullmatch(given) else None
    if found is None or found <= 0:
        raise EvidenceInvalid("malformed")
    return found


def _text(value: dict[str, Any], name: str, most: int) -> str:
    given = value.get(name)
    if not isinstance(given, str):
        raise EvidenceInvalid("malformed")
    if len(given) > most:
        raise EvidenceInvalid("limit_exceeded")
    if _TEXT.fullmatch(given) is None or not given.isprintable():
        raise EvidenceInvalid("malformed")
    return given


def _signature(value: object) -> bytes:
    try:
        raw = multibase.read(value) if isinstance(value, str) and value else b""
    except ValueError:
        raise EvidenceInvalid("malformed") from None
    if len(raw) != SIGNATURE_BYTES:
        raise EvidenceInvalid("malformed")
    return raw
