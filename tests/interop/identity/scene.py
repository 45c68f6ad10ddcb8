"""Senders that share no code with Carnet, and a gateway whose agents tell who calls them."""

import itertools
import json
import secrets
import time
from base64 import b64encode, urlsafe_b64encode
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct
from nacl.signing import SigningKey

from tests.support.a2a.pages import PageHost
from tests.support.a2a.wire import JSON, VERSION, message, written
from tests.support.http import HeaderList, Reply, request
from tests.support.organisation import Organisation

DOMAIN = "acme.example"
PEER = "globex.example"
AGENTS = """
import json

import carnet


@carnet.agent("who")
async def who(visit):
    sender = visit.sender
    yield json.dumps(
        {
            "address": sender.address,
            "how": sender.how,
            "name": sender.name,
            "evidence": [
                [each.subject, list(each.on_behalf_of), each.method] for each in visit.evidence
            ],
            "behalf": list(visit.carnet.on_behalf_of),
        }
    )


@carnet.agent("asks")
async def asks(visit):
    answer = await visit.interrupt(input="Which city?")
    yield f"weather of {answer.value}"


@carnet.agent("opens")
async def opens(visit):
    yield await visit.peer("books").ask("on")
"""
CONFIG = """
[agents.who]
kind = "python"
target = "agents:who"

[agents.asks]
kind = "python"
target = "agents:asks"

[agents.opens]
kind = "python"
target = "agents:opens"

[agents.open]
kind = "python"
target = "agents:who"
trust = "public"

[agents.paid]
kind = "python"
target = "agents:who"
price = "0.01"

[agents.books]
kind = "python"
target = "agents:who"
allow = [
  { subject = "@agent-a@globex.example", on_behalf_of = "mailto:u@example.com" },
  { subject = "slack:T123/*", action = "chat" },
  { subject = "@owner@acme.example" },
]
"""

_numbers = itertools.count()


def now() -> int:
    """The machine's time, which the gateway reads as well."""
    return int(time.time())  # noqa: TID251


def b64url(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def moment(seconds: float) -> str:
    """As evidence names it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


class Elsewhere(Struct, frozen=True):
    """Somebody elsewhere with a domain and a key."""

    domain: str
    key: SigningKey
    kid: str = "k-elsewhere"

    @property
    def public(self) -> str:
        return b64encode(bytes(self.key.verify_key)).decode()

    def keys(self) -> bytes:
        """Its key as a set of keys shows it."""
        jwk = {
            "kty": "OKP",
            "crv": "Ed25519",
            "kid": self.kid,
            "x": b64url(bytes(self.key.verify_key)),
        }
        return json.dumps({"keys": [jwk]}).encode()

    def jwt(
        self,
        audience: Any = f"@who@{DOMAIN}",
        *,
        header: dict[str, Any] | None = None,
        drop: tuple[str, ...] = (),
        **claims: Any,
    ) -> str:
        """A credential; every part of it can be another."""
        head = {"alg": "EdDSA", "kid": self.kid, "typ": "JWT"} | (header or {})
        given = {
            "iss": self.domain,
            "sub": f"@agent-a@{self.domain}",
            "aud": audience,
            "iat": now(),
            "exp": now() + 300,
            "jti": secrets.token_urlsafe(16),
        } | claims
        for name in drop:
            given.pop(name, None)
            head.pop(name, None)
        return self.signed(json.dumps(head), json.dumps(given))

    def signed(self, header: str, claims: str) -> str:
        text = f"{b64url(header.encode())}.{b64url(claims.encode())}"
        return f"{text}.{b64url(self.key.sign(text.encode()).signature)}"

    def evidence(self, audience: Any = f"@who@{DOMAIN}", **given: Any) -> dict[str, Any]:
        """Evidence of Mentionable 0.1, signed as its page says."""
        proof = {"type": "signed-attestation", "alg": "EdDSA", "kid": self.kid} | given.pop(
            "proof", {}
        )
        made: dict[str, Any] = {
            "id": f"evidence-{secrets.token_hex(8)}",
            "subject": f"@agent-a@{self.domain}",
            "issuer": self.domain,
            "method": "urn:mentionable:auth:a2a-agent:v0.1",
            "assurance": "agent",
            "audience": audience,
            "issued_at": moment(now()),
            "expires_at": moment(now() + 300),
            "on_behalf_of": ["mailto:u@example.com"],
        } | given
        made = {name: value for name, value in made.items() if value is not None}
        text = canonical(made | {"proof": proof})
        value = b64url(self.key.sign(text).signature)
        return made | {"proof": proof | {"value": value}}


def canonical(value: object) -> bytes:
    """RFC 8785 of what these tests write: no floats, and keys of ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def elsewhere(domain: str = PEER) -> Elsewhere:
    return Elsewhere(domain, SigningKey.generate())


def carrying(*evidence: Any, text: str = "hello", **more: Any) -> dict[str, Any]:
    """A message that carries evidence."""
    return message(text, metadata={"mentionable": {"identity_evidence": list(evidence)} | more})


class Scene(Struct, frozen=True):
    """A gateway, a peer whose key is pinned, and a host of pages."""

    gateway: Organisation
    peer: Elsewhere
    pages: PageHost

    def ask(
        self,
        bearer: str,
        operation: str = "SendMessage",
        *,
        agent: str = "who",
        binding: str = "JSONRPC",
        fields: HeaderList = (),
        **given: Any,
    ) -> Reply:
        """What an operation of an agent is answered."""
        method, path, body = written(binding, operation, **(given or message()))
        own = [("authorization", f"Bearer {bearer}"), VERSION, *([JSON] if body else []), *fields]
        return request(method, f"{self.gateway.url}/agents/{agent}/a2a{path}", own, body)


def caller_of(reply: Reply) -> dict[str, Any]:
    """What the agent said of its caller."""
    assert reply.status == 200, reply
    found = reply.json
    task = found.get("result", found).get("task")
    assert task is not None, found
    text = task["artifacts"][0]["parts"][0]["text"]
    answer: dict[str, Any] = json.loads(text)
    return answer


def code_of(reply: Reply) -> str:
    """Our own code of a refusal, in either binding."""
    error = reply.json["error"]
    details = error.get("data") or error.get("details") or []
    codes = [each["metadata"]["code"] for each in details if "code" in each.get("metadata", {})]
    found = codes or [each["code"] for each in details if "code" in each]
    return str(found[0])


def facts_of(reply: Reply) -> str:
    return json.dumps(reply.json["error"])


def build(folder: Path, peer: Elsewhere, pages: PageHost, config: str = "") -> Organisation:
    """A gateway that lists the peer, with a key that is written down."""
    gateway = Organisation(folder, DOMAIN)
    peers = f"""
[peers."{peer.domain}"]
url = "{pages.url}"
keys = ["{peer.public}"]
credit = "5"
"""
    starter = (folder / "agents.py").read_text()
    gateway.configure(CONFIG + peers + config, agents=f"{starter}\n{AGENTS}")
    return gateway
