"""What no two runs have in common, by names that all runs have in common.

Law 1. Only these are named: times, ids that were drawn at random or hashed from such, signatures,
       digests, ports, keys and tokens of a start, and the scope in a turn id (which depends on the
       release, not on the request).
Law 2. The same value has the same name throughout an area, by the order in which values were first
       seen: that two ids are equal, or are not, is compared too.
Law 3. A signed token is shown as what it says; only its signature is left out.
"""

import json
import re
from base64 import b64encode, urlsafe_b64decode
from collections.abc import Callable
from hashlib import sha256

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_JWS = re.compile(r"(eyJ[A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]*)")
_DIGEST = re.compile(r"sha-256=:([A-Za-z0-9+/]{43}=):")
# Before ids that were drawn: sixteen digits of a scope are none.
_SCOPE = re.compile(r"(?<=\.)(?:[0-9a-f]{16}\.|[0-9a-f]{8}\.)?(t\d+\.[a-z0-9_-]+)")
# Nor is what every answer calls its request: it would renumber all others.
_REQUEST = re.compile(r"(?<=^x-correlation-id: )[0-9a-f]{32}$|(?<=^x-request-id: )[0-9a-f]{32}$")
_PLAIN: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b(sig\d)=:[A-Za-z0-9+/]{86}==:"), r"\1=:<signature>:"),
    (re.compile(r"\bv1,[A-Za-z0-9+/]{43}="), "v1,<signature>"),
    (re.compile(r"\bv1a,[A-Za-z0-9+/]{86}=="), "v1a,<signature>"),
    (re.compile(r"\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT"), "<time>"),
    (
        re.compile(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)"),
        "<time>",
    ),
    # The signature of a card, and its head, which names our key.
    (re.compile(r'(\\?"(?:protected|signature)\\?":\\?")[A-Za-z0-9_-]+'), r"\1<jws>"),
    (re.compile(r"(?<![\w.-])1[789]\d{8}(?:\d{3}|\d{6})?(?![\w.-])"), "<time>"),
    (re.compile(r'"uptime":\d+'), '"uptime":<seconds>'),
    # What is left of a minute, an hour or a day: parts of the scene tell less than ten seconds.
    (re.compile(r"(?<=retry-after: )\d\d+$"), "<seconds>"),
    (re.compile(r'(?<="retry_after":)\d\d+'), "<seconds>"),
    (re.compile(r"(?<= in )\d\d+(?= s\b)"), "<seconds>"),
)
_DRAWN: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(rf"(?<![0-9a-f-]){_UUID}"), "id"),
    (re.compile(r"\bwhsec_[A-Za-z0-9+/=]{20,}"), "webhook secret"),
    (re.compile(r"(?<=nonce=\")[A-Za-z0-9_-]{16,}(?=\")"), "nonce"),
    (re.compile(r"(?<=\"nonce\":\")[A-Za-z0-9_-]{16,}(?=\")"), "nonce"),
    (re.compile(r"(?<![\w-])[0-9a-f]{16,64}(?![\w-])"), "id"),
    (re.compile(r"(?<=00-)[0-9a-f]{32}(?=-)"), "trace"),
    (re.compile(r"(?<=-)[0-9a-f]{16}(?=-0[01])"), "span"),
    (re.compile(r"(?<=chatcmpl-)[0-9a-f]{16,32}"), "id"),
    (re.compile(r"(?<=_)[0-9a-f]{16,64}(?![\w-])"), "id"),
    (re.compile(r"(?<=\bid: )\d+\.\d+$", re.MULTILINE), "event"),
    (re.compile(r"(?<=last-event-id: )[1-9]\d*\.\d+$", re.MULTILINE), "event"),
)


class Names:
    """The names of one area."""

    def __init__(self, literals: dict[str, str]) -> None:
        """`literals` are known from the start; the longest is looked for first."""
        self._literals = dict(sorted(literals.items(), key=lambda one: -len(one[0])))
        self._seen: dict[str, dict[str, str]] = {}

    def text(self, text: str) -> str:
        """A text with names in it."""
        text = _JWS.sub(self._decoded, text)
        for literal, name in self._literals.items():
            text = text.replace(literal, name)
        text = _SCOPE.sub(r"<scope>.\1", text)
        text = _REQUEST.sub("<request>", text)
        text = _DIGEST.sub(lambda found: f"sha-256=:<{self._name('digest', found[1])}>:", text)
        for pattern, kind in _DRAWN:
            text = pattern.sub(self._drawn(kind), text)
        for pattern, instead in _PLAIN:
            text = pattern.sub(instead, text)
        return text

    def body(self, body: bytes) -> str:
        """A body with names in it; that it has this digest is noted before it is told."""
        digest = b64encode(sha256(body).digest()).decode()
        if digest not in self._seen.setdefault("digest", {}):
            self._seen["digest"][digest] = "digest of " + self._count("body")
        return self.text(body.decode("utf-8", "backslashreplace"))

    def _count(self, kind: str) -> str:
        counted = self._seen.setdefault(kind, {})
        counted[str(len(counted))] = ""
        return f"{kind} {len(counted)}"

    def _name(self, kind: str, value: str) -> str:
        seen = self._seen.setdefault(kind, {})
        if value not in seen:
            seen[value] = f"{kind} {len(seen) + 1}"
        return seen[value]

    def _drawn(self, kind: str) -> Callable[[re.Match[str]], str]:
        return lambda found: f"<{self._name(kind, found[0])}>"

    def _decoded(self, found: re.Match[str]) -> str:
        try:
            head, claims = (json.loads(_unpadded(found[number])) for number in (1, 2))
        except ValueError:
            return "<jws>"
        parent = claims.get("parent") if isinstance(claims, dict) else None
        if isinstance(parent, str):
            claims["parent"] = _JWS.sub(self._decoded, parent)
        signed = "" if found[3] else " unsigned"
        return f"<jws{signed} {json.dumps(head)} {json.dumps(claims)}>"


def _unpadded(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
