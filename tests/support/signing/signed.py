"""A client of the signed dialect that shares no code with Carnet: PyNaCl, hashlib and a socket.

What it makes is right by itself. A part can be replaced before it is signed, or after.
"""

import http.client
import itertools
import json
import secrets
import socket
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from nacl.signing import SigningKey

from tests.support.http import Reply

MESSAGE, STREAM = "/agent/message", "/agent/stream"
SAMVAD = ("@method", "@path", "content-digest")
CHAT = "/v1/chat/completions"
PROFILE = ("@method", "@authority", "@path", "content-digest", "content-type")
PATIENCE_SECONDS = 60.0

Fields = tuple[tuple[str, str], ...]

_numbers = itertools.count()
_RUN = secrets.token_hex(4)


def now() -> float:
    """The machine's time, which the gateway reads as well."""
    return time.time()  # noqa: TID251


def rfc3339(seconds: float) -> str:
    """A moment as envelopes name it."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def b64(raw: bytes) -> str:
    return b64encode(raw).decode()


def digest(body: bytes) -> str:
    """What Content-Digest says of a body."""
    return f"sha-256=:{b64(sha256(body).digest())}:"


def fresh_nonce() -> str:
    """A nonce that nobody has used."""
    return f"nonce-{_RUN}-{next(_numbers):08}"


class Sender:
    """Somebody with a name and a key."""

    def __init__(self, identity: str, kid: str = "k1", seed: bytes | None = None) -> None:
        self.identity = identity
        self.kid = kid
        self._key = SigningKey(seed or secrets.token_bytes(32))

    @property
    def public_raw(self) -> bytes:
        return bytes(self._key.verify_key)

    @property
    def public(self) -> str:
        """The key as cards and commands write it."""
        return b64(self.public_raw)

    def sign(self, message: bytes) -> bytes:
        return bytes(self._key.sign(message).signature)


class Signed(Struct, frozen=True, kw_only=True):
    """A request as it goes over the wire."""

    method: str
    target: str
    headers: Fields
    body: bytes

    def but(self, *, without: Sequence[str] = (), **changed: Any) -> "Signed":
        """The same with parts of it changed after it was signed; underscores stand for hyphens."""
        parts = {name: changed.pop(name) for name in ("method", "target", "body") & changed.keys()}
        given = {name.replace("_", "-"): str(value) for name, value in changed.items()}
        kept = [(name, value) for name, value in self.headers if name not in {*given, *without}]
        return replace(self, headers=(*kept, *given.items()), **parts)

    def beside(self, *more: tuple[str, str]) -> "Signed":
        """The same with more fields, also such as it has already."""
        return replace(self, headers=(*self.headers, *more))

    def field(self, name: str) -> str:
        return dict(self.headers)[name]

    def raw(self, host: str = "127.0.0.1") -> bytes:
        """The bytes of it, on a connection that stays open."""
        fields = [("host", host), *self.headers]
        if not any(name == "content-length" for name, _ in self.headers):
            fields.append(("content-length", str(len(self.body))))
        head = "".join(f"{name}: {value}\r\n" for name, value in fields)
        return f"{self.method} {self.target} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + self.body


def envelope(sender: Sender, to: str, **fields: Any) -> dict[str, Any]:
    """What the body of a request says."""
    return {
        "from": sender.identity,
        "to": to,
        "skill": "chat",
        "mode": "sync",
        "nonce": fresh_nonce(),
        "timestamp": rfc3339(now()),
        "traceId": f"trace-{_RUN}-{next(_numbers):08}",
        "spanId": f"span-{_RUN}-{next(_numbers):08}",
        "payload": {"text": "hi"},
        **fields,
    }


def encoded(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":"), sort_keys=True, ensure_ascii=False).encode()


def line(component: str, request: Signed, path: str, host: str) -> str:
    """One line of a signature base. A component may bring parameters of its own, unquoted."""
    name, semicolon, more = component.partition(";")
    target, question, query = request.target.partition("?")
    derived = {
        "@method": request.method,
        "@path": path or target,
        "@query": question + query if question else "?",
        "@authority": host,
        "@target-uri": f"http://{host}{request.target}",
        "@request-target": request.target,
        "@scheme": "http",
    }
    value = derived[name] if name in derived else dict(request.headers).get(name, "")
    return f'"{name}"{semicolon}{more}: {value}'


def listed(components: Sequence[str]) -> str:
    """The list of what is covered, as Signature-Input has it."""
    names = (component.partition(";") for component in components)
    return f"({' '.join(f'{chr(34)}{name}{chr(34)}{mark}{more}' for name, mark, more in names)})"


def sign(
    sender: Sender,
    request: Signed,
    *,
    components: Sequence[str] = SAMVAD,
    parameters: str | None = None,
    created: object = None,
    label: str = "sig1",
    path: str = "",
    host: str = "127.0.0.1",
    newline: bool = True,
) -> Signed:
    """Sign a request.

    `parameters` is the whole text behind the list of components; `path` is signed in the place of
    the real one. The dialect ends its signature base with a newline, RFC 9421 does not.
    """
    if parameters is None:
        moment = int(now()) if created is None else created
        parameters = f';keyid="{sender.kid}";alg="ed25519";created={moment}'
    text = listed(components) + parameters
    lines = [line(component, request, path, host) for component in components]
    base = "\n".join([*lines, f'"@signature-params": {text}']) + ("\n" if newline else "")
    signature = sender.sign(base.encode("utf-8", "surrogateescape"))
    return request.but(signature_input=f"{label}={text}", signature=f"{label}=:{b64(signature)}:")


def unsigned(body: bytes, target: str = MESSAGE, *more: tuple[str, str]) -> Signed:
    """A request with its digest and no signature."""
    fields = (("content-type", "application/json"), ("content-digest", digest(body)), *more)
    return Signed(method="POST", target=target, headers=fields, body=body)


def message(
    sender: Sender,
    to: str,
    *,
    target: str = MESSAGE,
    without: Sequence[str] = (),
    signing: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Signed:
    """A signed request of the dialect; `fields` are those of its envelope."""
    mode = {"mode": "stream"} if target.endswith(STREAM) else {}
    whole = envelope(sender, to, **{**mode, **fields})
    body = encoded({name: value for name, value in whole.items() if name not in without})
    return sign(sender, unsigned(body, target), **{"path": short(target), **(signing or {})})


def domain_of(sender: Sender) -> str:
    return sender.identity.removeprefix("agent://")


def token(sender: Sender, claims: Mapping[str, Any], **header: Any) -> str:
    """A compact JWS by hand; a member of the header that is None is left out."""
    members = {"alg": "EdDSA", "kid": sender.kid, "typ": "carnet+jwt", **header}
    head = {name: value for name, value in members.items() if value is not None}
    signed = f"{unpadded(encoded(head))}.{unpadded(encoded(claims))}"
    return f"{signed}.{unpadded(sender.sign(signed.encode()))}"


def unpadded(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")


def document(sender: Sender, audience: str, body: bytes, **claims: Any) -> dict[str, Any]:
    """The claims of a travel document; one that is None is left out."""
    run = f"run-{_RUN}-{next(_numbers):08}"
    whole = {
        "iss": domain_of(sender),
        "aud": audience,
        "iat": int(now()),
        "exp": int(now()) + 60,
        "run": run,
        "turn": f"{run}.t0.echo",
        "d": 1,
        "l": 3,
        "dig": digest(body),
        **claims,
    }
    return {name: value for name, value in whole.items() if value is not None}


def travelling(
    sender: Sender,
    audience: str,
    body: bytes,
    *,
    target: str = CHAT,
    carnet: str | None = None,
    beside: Fields = (),
    parameters: str | None = None,
    components: Sequence[str] | None = None,
    **claims: Any,
) -> Signed:
    """A request between two Carnets: the travel document, and everything signed.

    Args:
        sender: Who signs; its identity is a domain.
        audience: The domain that is meant to receive it.
        body: What is asked.
        target: Where.
        carnet: The whole document, in the place of one made of `claims`.
        beside: More header fields; they are covered.
        parameters: The whole text behind the list of components.
        components: What is covered, in the place of all of it.
        claims: Those of the document.
    """
    paper = carnet or token(sender, document(sender, audience, body, **claims))
    request = unsigned(body, target, ("carnet", paper), *beside)
    if components is None:
        components = (*PROFILE, "carnet", *(name for name, _ in beside))
    if parameters is None:
        moment, nonce = int(now()), fresh_nonce()
        parameters = f';keyid="{sender.kid}";created={moment};nonce="{nonce}";tag="carnet"'
    return sign(sender, request, components=components, parameters=parameters, newline=False)


def short(target: str) -> str:
    """The path that clients of the dialect sign: what follows the prefix of the agent."""
    path = target.partition("?")[0]
    return path[path.rfind("/agent/") :] if "/agent/" in path else path


class Line:
    """A connection that is kept open; what the other side has closed is opened again."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None

    def __enter__(self) -> "Line":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def send(self, request: Signed | bytes) -> Reply:
        """Send it exactly as it is and read the whole answer."""
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), PATIENCE_SECONDS)
        self._socket.sendall(request if isinstance(request, bytes) else request.raw())
        response = http.client.HTTPResponse(self._socket)
        response.begin()
        fields = {name.lower(): value for name, value in response.getheaders()}
        reply = Reply(response.status, fields, response.read())
        if response.will_close:
            self.close()
        return reply


def refusal(reply: Reply) -> tuple[int, str]:
    """The status of a refusal, and its code in the words of the dialect."""
    body = reply.json
    assert body["status"] == "error", body
    return reply.status, str(body["error"]["code"])


def result(reply: Reply) -> Any:
    """What a skill gave back."""
    body = reply.json
    assert (reply.status, body["status"]) == (200, "ok"), (reply.status, body)
    return body["result"]


def frames(body: bytes) -> list[Any]:
    """What a stream said."""
    return [
        json.loads(part.removeprefix(b"data: "))
        for part in body.split(b"\n\n")
        if part.startswith(b"data: ")
    ]
