"""A connector of a platform, which shares no code with Carnet: its document, credentials, words."""

import json
import secrets
from hashlib import sha256
from typing import Any

from msgspec import Struct
from nacl.signing import SigningKey

from tests.interop.identity.scene import b64url, canonical, moment, now

CONTEXTS = [
    "https://www.w3.org/ns/credentials/v2",
    "https://mentionable.dev/ns/identity/v0.2/context.jsonld",
]
MEMBER = "urn:mentionable:auth:slack-workspace-member:v0.1"
_ALPHABET = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def base58(raw: bytes) -> str:
    """Multibase `z`."""
    number, text = int.from_bytes(raw), b""
    while number:
        number, digit = divmod(number, 58)
        text = _ALPHABET[digit : digit + 1] + text
    return "z" + "1" * (len(raw) - len(raw.lstrip(b"\0"))) + text.decode()


def from_base58(text: str) -> bytes:
    number, signs = 0, text.removeprefix("z")
    for sign in signs.encode():
        number = number * 58 + _ALPHABET.index(sign)
    zeros = len(signs) - len(signs.lstrip("1"))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8)


def signed_bytes(made: dict[str, Any], proof: dict[str, Any]) -> bytes:
    """What `eddsa-jcs-2022` signs."""
    return sha256(canonical(proof)).digest() + sha256(canonical(made)).digest()


class Connector(Struct, frozen=True):
    """One, with a name and a key."""

    did: str
    key: SigningKey
    kid: str = "k1"

    @property
    def method(self) -> str:
        return f"{self.did}#{self.kid}"

    def document(self, **more: Any) -> bytes:
        """What it shows of its keys; every part can be another."""
        key = {
            "id": self.method,
            "type": "Multikey",
            "controller": self.did,
            "publicKeyMultibase": base58(b"\xed\x01" + bytes(self.key.verify_key)),
        } | more.pop("key", {})
        page = {"id": self.did, "verificationMethod": [key], "assertionMethod": [key["id"]]}
        return json.dumps(page | more).encode()

    def credential(
        self,
        message: str,
        domain: str = "@who@acme.example",
        *,
        proof: dict[str, Any] | None = None,
        subject: dict[str, Any] | None = None,
        with_context: bool = True,
        **given: Any,
    ) -> dict[str, Any]:
        """A credential for a message; every part of it can be another."""
        who = {"id": "slack:T123/U456", "method": MEMBER, "assurance": "platform"}
        made: dict[str, Any] = {
            "@context": CONTEXTS,
            "id": f"urn:uuid:{secrets.token_hex(16)}",
            "type": ["VerifiableCredential", "PlatformIdentityCredential"],
            "issuer": self.did,
            "validFrom": moment(now()),
            "validUntil": moment(now() + 300),
            "credentialSubject": who | (subject or {}),
        } | given
        proven = {
            "type": "DataIntegrityProof",
            "cryptosuite": "eddsa-jcs-2022",
            "proofPurpose": "assertionMethod",
            "verificationMethod": self.method,
            "domain": domain,
            "challenge": message,
        } | (proof or {})
        if with_context:
            proven["@context"] = made["@context"]
        value = base58(self.key.sign(signed_bytes(made, proven)).signature)
        return made | {"proof": {"proofValue": value} | proven}

    def assertion(
        self, typ: str, audience: Any, *, header: dict[str, Any] | None = None, **claims: Any
    ) -> str:
        """A JWT of OAuth federation; every part of it can be another."""
        head = {"alg": "EdDSA", "kid": self.method, "typ": typ} | (header or {})
        given = {
            "iss": self.did,
            "sub": "slack:T123/U456",
            "aud": audience,
            "iat": now(),
            "exp": now() + 300,
            "jti": secrets.token_urlsafe(16),
        } | claims
        given = {name: value for name, value in given.items() if value is not None}
        text = f"{b64url(json.dumps(head).encode())}.{b64url(json.dumps(given).encode())}"
        return f"{text}.{b64url(self.key.sign(text.encode()).signature)}"


def connector(domain: str = "connector.example") -> Connector:
    return Connector(f"did:web:{domain}", SigningKey.generate())
