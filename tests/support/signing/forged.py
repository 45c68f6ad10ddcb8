"""Delegation tokens that nobody may take: the list of attacks, each made by a genuine issuer.

Every one is signed with the issuer's own key where it can be signed at all, so that nothing but
what its name says is wrong with it.
"""

import hmac
import json
from base64 import urlsafe_b64decode
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from tests.support.signing.delegations import TYPE, header_of, ours, raw, sdk
from tests.support.signing.signed import Sender, encoded, now, unpadded


class Grant(Struct, frozen=True):
    """Who grants to whom, to be shown to whom."""

    issuer: Sender
    subject: str
    audience: str

    def ours(self, **more: Any) -> str:
        return ours(self.issuer, self.subject, self.audience, **more)

    def sdk(self, **more: Any) -> str:
        return sdk(self.issuer, self.subject, **more)

    def claims(self, **more: Any) -> bytes:
        """The claims of one of our own, as JSON."""
        moment = int(now())
        whole = {
            "iss": self.issuer.identity,
            "sub": self.subject,
            "aud": self.audience,
            "jti": "jti-by-hand",
            "iat": moment,
            "exp": moment + 300,
            "scope": ["chat"],
            "maxDepth": 2,
        }
        return encoded(whole | more)

    def raw(self, header: bytes | None = None, claims: bytes | None = None) -> str:
        given = header_of(self.issuer) if header is None else header
        return raw(self.issuer, given, self.claims() if claims is None else claims)

    def headed(self, **members: Any) -> str:
        return self.raw(header_of(self.issuer, **members))


Forgery = Callable[[Grant], str]


def _unsigned(grant: Grant) -> str:
    text = grant.headed(alg="none")
    return text.rpartition(".")[0] + "."


def _confused(grant: Grant) -> str:
    """HS256, with the public key as the secret that it never was."""
    der = bytes.fromhex("302a300506032b6570032100") + grant.issuer.public_raw
    pem = f"-----BEGIN PUBLIC KEY-----\n{unpadded(der)}\n-----END PUBLIC KEY-----\n".encode()
    signed = f"{unpadded(header_of(grant.issuer, alg='HS256'))}.{unpadded(grant.claims())}"
    return f"{signed}.{unpadded(hmac.digest(pem, signed.encode(), 'sha256'))}"


def _duplicate_header(grant: Grant) -> str:
    return grant.raw(header_of(grant.issuer).replace(b"{", b'{"alg":"none",', 1))


def _duplicate_claim(grant: Grant) -> str:
    return grant.raw(claims=grant.claims().replace(b"{", b'{"maxDepth":99,', 1))


def _spelled(name: str, value: str) -> Forgery:
    """A claim with a value that no JSON writer would write."""

    def forge(grant: Grant) -> str:
        claims = json.loads(grant.claims())
        claims.pop(name)
        return grant.raw(claims=encoded(claims)[:-1] + f',"{name}":{value}}}'.encode())

    return forge


def _json_serialization(grant: Grant) -> str:
    head, body, tail = grant.ours().split(".")
    return json.dumps({"protected": head, "payload": body, "signature": tail})


def _tail_bits(grant: Grant) -> str:
    """The same bytes in another spelling: the last character has bits to spare."""
    text = grant.ours()
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return text[:-1] + alphabet[alphabet.index(text[-1]) ^ 1]


def _deep(grant: Grant) -> str:
    nested = b"[" * 3000 + b"]" * 3000
    return grant.raw(claims=grant.claims()[:-1] + b',"more":' + nested + b"}")


def _headed(**members: Any) -> Forgery:
    return lambda grant: grant.headed(**members)


def _ours(**claims: Any) -> Forgery:
    return lambda grant: grant.ours(**claims)


def _sdk(**claims: Any) -> Forgery:
    return lambda grant: grant.sdk(**claims)


UNREADABLE: dict[str, Forgery] = {
    "alg none": _unsigned,
    "alg none, signed": _headed(alg="none"),
    "alg nOnE": _headed(alg="nOnE"),
    "alg missing": _headed(alg=...),
    "alg a list": _headed(alg=["EdDSA"]),
    "alg HS256 with the public key": _confused,
    "a header member twice": _duplicate_header,
    "a claim twice": _duplicate_claim,
    "crit": _headed(crit=["x"], x=1),
    "b64 false": _headed(b64=False, crit=["b64"]),
    "jwk": _headed(jwk={"kty": "OKP", "crv": "Ed25519", "x": "AAAA"}),
    "jku": _headed(jku="https://127.0.0.1:9/keys.json"),
    "x5u": _headed(x5u="https://127.0.0.1:9/cert.pem"),
    "x5c": _headed(x5c=["AAAA"]),
    "exp missing": _ours(exp=...),
    "exp missing, of an SDK": _sdk(exp=...),
    "exp a string": _sdk(exp="1999999999"),
    "exp a float": _spelled("exp", "1999999999.5"),
    "exp a whole float": _spelled("exp", "1999999999.0"),
    "exp a bool": _sdk(exp=True),
    "exp NaN": _spelled("exp", "NaN"),
    "exp 1e400": _spelled("exp", "1e400"),
    "padding": lambda grant: grant.ours() + "==",
    "space before": lambda grant: " " + grant.ours(),
    "space behind": lambda grant: grant.ours() + "\n",
    "4 parts": lambda grant: grant.ours() + ".AAAA",
    "2 parts": lambda grant: grant.ours().rpartition(".")[0],
    "nothing": lambda _: "",
    "bits left over": _tail_bits,
    "claims a list": lambda grant: grant.raw(claims=b"[]"),
    "claims a text": lambda grant: grant.raw(claims=b'"iss"'),
    "claims 3000 deep": _deep,
    "longer than 8 KiB": lambda grant: grant.sdk(more="x" * 8192),
    "JWS as JSON": _json_serialization,
    "kid a path": _headed(kid="../../keys/k1"),
    "kid SQL": _headed(kid="' OR 1=1 --"),
    "kid too long": _headed(kid="k" * 129),
    "kid a number": _headed(kid=7),
    "kid absent in ours": _headed(kid=...),
    "aud missing in ours": _ours(aud=...),
    "aud a list": lambda grant: grant.ours(aud=[grant.audience, "agent://x.example"]),
    "aud a list of two, of an SDK": lambda grant: grant.sdk(aud=[grant.audience] * 2),
    "aud empty, of an SDK": _sdk(aud=""),
    "aud a list of the empty one": _ours(aud=[""]),
    "aud a list of none": _ours(aud=[]),
    "aud a list of a list": _ours(aud=[["agent://x.example"]]),
    "aud a list of one that is nobody": _ours(aud=["alice"]),
    "aud an object": _ours(aud={"agent": "x"}),
    "jti missing in ours": _ours(jti=...),
    "iat missing in ours": _ours(iat=...),
    "typ of a travel document": _headed(typ="carnet+jwt"),
    "typ of nearly ours": _headed(typ=TYPE + " "),
    "typ a list": _headed(typ=["JWT"]),
    "sub of no identity": _ours(sub="alice"),
    "iss of no identity": _ours(iss="https://a.example"),
    "scope missing": _sdk(scope=...),
    "scope of numbers": _sdk(scope=[1]),
    "scope an object": _sdk(scope={"chat": True}),
    "scope of an empty word": _sdk(scope="chat  other"),
    "scope of too many": _sdk(scope=[f"s{n}" for n in range(65)]),
    "scope with a control character": _sdk(scope=["chat\u0000"]),
    "maxDepth missing": _sdk(maxDepth=...),
    "maxDepth true": _sdk(maxDepth=True),
    "maxDepth 1.5": _sdk(maxDepth=1.5),
    "maxDepth a string": _sdk(maxDepth="2"),
    "once without jti": _sdk(once=True),
    "once a word": _ours(once="yes"),
    "jti with a newline": _ours(jti="jti\n"),
    "a budget of no currency": _ours(bud={"money": "1"}),
    "a budget of no amount": _ours(bud={"money": "1e9", "currency": "credits"}),
    "a budget below nothing": _ours(bud={"calls": -1}),
    "act a word": _sdk(act="agent://b.example"),
    "parent null": _ours(parent=None),
    "parent a number": _ours(parent=7),
    "parent unreadable": _ours(parent="ey.ey.ey"),
}

UNTIMELY: dict[str, Forgery] = {
    "exp past": lambda grant: grant.sdk(iat=int(now()) - 600, exp=int(now()) - 1),
    "exp too far ahead": lambda grant: grant.sdk(exp=int(now()) + 86_400 + 3600),
    "exp too far ahead, of ours": lambda grant: grant.ours(exp=int(now()) + 86_400 + 3600),
    "iat in the future": lambda grant: grant.ours(iat=int(now()) + 200),
    "nbf in the future": lambda grant: grant.ours(nbf=int(now()) + 200),
    "exp before iat": lambda grant: grant.ours(iat=int(now()), exp=int(now()) - 1),
}


def forged_signature(grant: Grant) -> str:
    """Everything right, signed by somebody else under the issuer's name."""
    impostor = Sender(grant.issuer.identity, grant.issuer.kid)
    return ours(impostor, grant.subject, grant.audience)


def altered(text: str, **claims: Any) -> str:
    """A token whose claims were changed after it was signed."""
    head, body, tail = text.split(".")
    padded = body + "=" * (-len(body) % 4)
    payload = json.loads(urlsafe_b64decode(padded)) | claims
    return f"{head}.{unpadded(encoded(payload))}.{tail}"
