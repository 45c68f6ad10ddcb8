"""Organisations that know one another by their keys, and a peer that says what it likes."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from tests.support.http import Reply, chat_body
from tests.support.organisation import Organisation
from tests.support.signing.signed import Line, Sender, Signed, digest, fresh_nonce, now, sign

OTHER_AGENTS = """
[agents.priced]
kind = "python"
target = "agents:echo"
price = "0.25"

[agents.again]
kind = "python"
target = "agents:onward"
reentry = true

[agents.once]
kind = "python"
target = "agents:onward"

[agents.hasty]
kind = "python"
target = "agents:relay"
timeout = 30

[agents.public]
kind = "python"
target = "agents:echo"
trust = "public"

[agents.held]
kind = "python"
target = "agents:held"
"""
HELD = '''

async def held(visit: carnet.Visit) -> str:
    """Answer when the test says go."""
    note(visit)
    while not RAN.with_name("go").exists():
        await asyncio.sleep(0.05)
    return visit.text
'''

# What `a` says of `b` in its file: a peer without a token, and one of its agents by a name of ours.
LINK = """
[peers."b.example"]
url = "{url}"
credit = "10"

[agents.linked]
kind = "tangle"
url = "{url}/agents/paid/v1"
"""

SIGNED_DIALECT = """
[peers."c.example"]
url = "{url}"
dialect = "samvad"
"""


def acquaint(
    caller: Organisation, callee: Organisation, *, url: str | None = None, link: str = LINK
) -> None:
    """Let two gateways call one another without any token: each lists the other as a peer."""
    callee.carnet("peers", "add", caller.domain, "--url", caller.url, "--credit", "10")
    if url is None:
        caller.carnet("peers", "add", callee.domain, "--url", callee.url, "--credit", "10")
    else:
        caller.configure(link.format(url=url))


def claims(token: str) -> dict[str, Any]:
    """What a JWS says, unverified."""
    payload = token.split(".")[1]
    found: dict[str, Any] = json.loads(urlsafe_b64decode(payload + "==="))
    return found


def part(value: object) -> str:
    """One part of a JWS."""
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def rewritten(token: str, **changed: Any) -> str:
    """A JWS that says something else under its old signature."""
    head, _, signature = token.split(".")
    return f"{head}.{part(claims(token) | changed)}.{signature}"


class Peer:
    """A gateway of another make: it signs by itself, and shares no code with Carnet."""

    def __init__(self, domain: str) -> None:
        self.domain = domain
        self.sender = Sender(f"agent://{domain}", kid="k-peer")
        self._turns = 0

    def known_to(self, organisation: Organisation, *, credit: str | None = "10") -> None:
        """Have its key pinned there, and itself listed unless it is a stranger."""
        identity, key = self.sender.identity, self.sender.public
        organisation.carnet("peers", "add", identity, "--key", key, "--kid", self.sender.kid)
        if credit is not None:
            url = "http://127.0.0.1:9"
            organisation.carnet("peers", "add", self.domain, "--url", url, "--credit", credit)

    def jws(self, payload: dict[str, Any], typ: str = "carnet+jwt") -> str:
        head = {"alg": "EdDSA", "kid": self.sender.kid, "typ": typ}
        signed = f"{part(head)}.{part(payload)}"
        return f"{signed}.{part(self.sender.sign(signed.encode()))}"

    def document(self, audience: str, body: bytes, **changed: Any) -> dict[str, Any]:
        """The claims of a document for a body; those that are changed to ... are left out."""
        self._turns += 1
        seconds = int(now())
        members = {
            "iss": self.domain,
            "aud": audience,
            "iat": seconds,
            "exp": seconds + 60,
            "run": f"run-{fresh_nonce()}",
            "turn": f"turn-{self._turns}",
            "d": 1,
            "l": 3,
            "dig": digest(body),
            **changed,
        }
        return {name: value for name, value in members.items() if value is not ...}

    def signed(
        self,
        organisation: Organisation,
        agent: str,
        text: str = "hi",
        *,
        headers: dict[str, str] | None = None,
        created: float = 0,
        stream: bool = False,
        more: dict[str, Any] | None = None,
        **changed: Any,
    ) -> Signed:
        """A signed call; `changed` are claims of its document, `created` is shifted by seconds.

        `more` are members of its body.
        """
        body = chat_body(text, None, **({"stream": True} if stream else {}), **(more or {}))
        document = self.document(organisation.domain, body, **changed)
        stamps = {
            "x-tangle-runid": document["run"],
            "x-tangle-turnid": document["turn"],
            "x-tangle-forwarded-depth": str(document["d"]),
            **(headers or {}),
        }
        fields = {
            "content-type": "application/json",
            "content-digest": digest(body),
            **stamps,
            "carnet": self.jws(document),
        }
        target = f"/agents/{agent}/v1/chat/completions"
        request = Signed(method="POST", target=target, headers=tuple(fields.items()), body=body)
        moment = int(now() + created)
        parameters = (
            f';created={moment};keyid="{self.sender.kid}";nonce="{fresh_nonce()}";tag="carnet"'
        )
        components = ("@method", "@authority", "@path", *fields)
        host = host_of(organisation)
        return sign(
            self.sender,
            request,
            components=components,
            parameters=parameters,
            host=host,
            newline=False,
        )

    def call(self, organisation: Organisation, agent: str, text: str = "hi", **how: Any) -> Reply:
        return send(organisation, self.signed(organisation, agent, text, **how))


def host_of(organisation: Organisation) -> str:
    return f"127.0.0.1:{organisation.port}"


def send(organisation: Organisation, request: Signed, host: str | None = None) -> Reply:
    """Send a request as it is."""
    with Line(organisation.port) as line:
        return line.send(request.raw(host or host_of(organisation)))
