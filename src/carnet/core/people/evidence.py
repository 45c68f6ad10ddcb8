"""Whom a call is said to be for, by those who vouch for it; and who may call what.

`Evidence` is an attestation that was verified. What was merely sent along is `Carried`, and is
believed by nobody. `TrustedIssuer` and `AllowRule` are what an operator has written down (R40).

Law 1. Evidence is judged by its subject, its method and its assurance, and by who has signed it.
       A profile, a name that is shown and whatever else stands in it authorise nobody (M29).
Law 2. An issuer that is trusted without a list of subjects speaks for its own domain alone.
Law 3. Once there is a list, what is not on it is refused: of issuers, and of those who may call.
Law 4. A pattern is a whole name, or the beginning of one followed by a star; nothing else is.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from carnet.core.people.address import AGENT, DID_WEB

MOST_CARRIED_BYTES: Final = 64 * 1024  # of one carrier
MOST_EVIDENCE: Final = 8
MOST_SECONDS: Final = 600  # that an attestation may hold
SKEW_SECONDS: Final = 60
MOST_SUBJECT: Final = 512
MOST_WORD: Final = 256
MOST_BEHALF: Final = 32

ANYTHING: Final = "*"
CHATS: Final = "chat"  # the action of who just talks

# Why evidence is set aside. The call goes on without it.
Fault = Literal[
    "malformed",
    "limit_exceeded",
    "unsupported_profile",
    "unsupported_issuer_method",
    "untrusted_issuer",
    "key_fetch_failed",
    "issuer_controller_mismatch",
    "unsupported_cryptosuite",
    "invalid_signature",
    "audience_mismatch",
    "domain_mismatch",
    "challenge_mismatch",
    "not_yet_valid",
    "expired",
    "replay_store_failed",
    "replayed",
]


class EvidenceInvalid(Exception):
    """Evidence that is set aside, and why, in one word."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault: Fault = fault


class Carried(Struct, frozen=True, kw_only=True):
    """What came with a message about identities, as it came."""

    evidence: Any = None  # of version 0.1
    credentials: Any = None  # of version 0.2
    message: str = ""  # the id of the message


class Evidence(Struct, frozen=True, kw_only=True):
    """An attestation that was verified: somebody whom we trust says who acts, and for whom."""

    subject: str
    issuer: str
    method: str
    assurance: str = ""
    audience: tuple[str, ...] = ()
    issued: int = 0  # seconds since the epoch
    expires: int = 0
    on_behalf_of: tuple[str, ...] = ()  # the immediate caller first
    id: str | None = None
    claims: dict[str, Any] = {}
    source: dict[str, Any] = {}
    key: str = ""  # the name of the key that has signed it
    version: str = "0.1"

    @property
    def principal(self) -> str | None:
        """Whom the subject acts for, if it acts for somebody."""
        return self.on_behalf_of[0] if self.on_behalf_of else None

    @property
    def consents(self) -> bool:
        """Whether its issuer says that whom the subject acts for has agreed to pay (R41)."""
        return bool(self.on_behalf_of) and self.claims.get(CONSENT) in CONSENTS


CONSENT: Final = "consent"
CONSENTS: Final = ("payment", "delegation")


class TrustedIssuer(Struct, frozen=True, kw_only=True):
    """One who vouches for others, and how far that is believed."""

    issuer: str
    methods: tuple[str, ...] = ()  # none: any
    assurance: tuple[str, ...] = ()  # none: any
    subject_prefixes: tuple[str, ...] = ()  # none: names of its own domain

    def admits(self, found: Evidence) -> bool:
        """Whether this is one of the things it is believed to say."""
        return (
            found.issuer == self.issuer
            and (not self.methods or found.method in self.methods)
            and (not self.assurance or found.assurance in self.assurance)
            and self._may_name(found.subject)
        )

    def _may_name(self, subject: str) -> bool:
        if self.subject_prefixes:
            return subject.startswith(self.subject_prefixes)
        return is_of(subject, self.issuer)


def is_of(subject: str, issuer: str) -> bool:
    """Whether a name is one of the issuer's own domain."""
    domain = issuer.rpartition("@")[2].removeprefix(AGENT).removeprefix(DID_WEB)
    if subject in {domain, AGENT + domain}:
        return True
    if subject.startswith(AGENT):
        return subject.endswith(f".{domain}")
    before, _, whose = subject.rpartition("@")
    return whose == domain and before.startswith(_ADDRESSES) and "@" not in before[1:]


_ADDRESSES: Final = ("@", "mailto:", "acct:")


class AllowRule(Struct, frozen=True, kw_only=True):
    """Who may do what with an agent."""

    subject: str = ANYTHING
    on_behalf_of: str | None = None  # None: whoever it acts for, or for nobody
    action: str = ANYTHING  # the id of a skill; `chat` is to talk

    def lacks(self, action: str, named: Sequence["ProvedNames"]) -> str | None:
        """What is wanting for it to admit one of these; None if it does."""
        if not fits(self.action, action):
            return "action"
        subjects = [each for each in named if any(fits(self.subject, one) for one in each.subjects)]
        if not subjects:
            return "subject"
        if self.on_behalf_of is None:
            return None
        wanted = self.on_behalf_of
        is_for = any(each.principal and fits(wanted, each.principal) for each in subjects)
        return None if is_for else "on_behalf_of"


class ProvedNames(Struct, frozen=True):
    """Names that were proved for one and the same caller, and whom it acts for."""

    subjects: tuple[str, ...]
    principal: str | None = None


def fits(pattern: str, name: str) -> bool:
    """Whether a name is meant by a pattern."""
    if pattern.endswith(ANYTHING):
        return name.startswith(pattern[:-1])
    return name == pattern


_LACKS: Final = ("on_behalf_of", "subject", "action")  # the nearest to being admitted first


def denied_by(
    rules: Iterable[AllowRule], action: str, named: Sequence[ProvedNames]
) -> tuple[int, str] | None:
    """The rule that is nearest to admitting a caller, and what it lacks; None if one admits it."""
    nearest: tuple[int, int] | None = None
    for number, rule in enumerate(rules, 1):
        lacks = rule.lacks(action, named)
        if lacks is None:
            return None
        rank = (_LACKS.index(lacks), number)
        nearest = rank if nearest is None or rank < nearest else nearest
    return (1, "subject") if nearest is None else (nearest[1], _LACKS[nearest[0]])
