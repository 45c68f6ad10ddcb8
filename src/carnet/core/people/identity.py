"""Who calls, for whom, with what rights, and who pays.

`Secret` is a credential in memory, and `Token` a bearer token as it is kept.

`Skill` is what an agent can be asked for by name, with the shape of what goes in and comes out.

Law 1. Effective rights are an intersection: nothing here ever adds a right.
Law 2. Deny wins over allow.
Law 3. The payer is an account, never a credential.
Law 4. A secret's repr, str and format are `***`; it cannot be encoded, pickled or copied into a
       record.
Law 5. Its value leaves through `reveal()` alone, which is easy to search for.
Law 6. A skill is data: the schemas are plain JSON Schema. Who runs it is the agent's business.
"""

import hmac
import re
from collections.abc import Sequence
from typing import Any, Final, Literal, Never, final

from msgspec import Struct, field

from carnet.core.money.budget import Ceilings
from carnet.core.people.evidence import Evidence

Mode = Literal["sync", "async", "stream"]
Trust = Literal["public", "authenticated", "trusted-peers"]


class Skill(Struct, frozen=True, kw_only=True):
    """One skill of an agent, as its card shows it."""

    id: str  # at most 64 characters
    name: str  # at most 100
    description: str  # at most 500
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    modes: tuple[Mode, ...] = ("sync", "async", "stream")
    trust: Trust | None = None  # None: what the agent asks for
    allowed_peers: tuple[str, ...] | None = None  # identities; None: everybody we list as a peer
    tags: tuple[str, ...] = ()  # words that it is found by
    examples: tuple[str, ...] = ()  # of what it can be asked


class Result(Struct, frozen=True):
    """What a skill gives in the end, where it stands among its chunks."""

    value: Any


_TEXT: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
}

# What an agent without declared skills is served as: text in, text out.
CHAT: Final = Skill(
    id="chat",
    name="chat",
    description="Say something and get an answer.",
    input_schema=_TEXT,
    output_schema=_TEXT,
)


@final
class Secret:
    """Bytes that must appear in no log, journal, error or page."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        """Take the credential as it came, byte for byte (latin-1 text)."""
        self._value = value

    def reveal(self) -> str:
        """Give the credential to the one place that sends or hashes it."""
        return self._value

    def __eq__(self, other: object) -> bool:
        """Compare in constant time."""
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value.encode(), other._value.encode())

    __hash__ = None  # type: ignore[assignment]  # a secret is not a dictionary key

    def __repr__(self) -> str:
        """Never the value."""
        return "***"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        """Never the value, whatever the format asks for."""
        return "***"

    def __reduce__(self) -> Never:
        """Refuse to be pickled or deep-copied."""
        raise TypeError("a Secret cannot be serialised")


EVERYTHING = "*"


class Account(Struct, frozen=True, order=True):
    """Who answers for the duty: `issuer` vouches for `id`."""

    issuer: str
    id: str

    def __str__(self) -> str:
        """The form of ledgers and pages."""
        return f"{self.id}@{self.issuer}"


def allows(granted: frozenset[str], permission: str) -> bool:
    """Whether a set of permissions holds one; `call:*` and `*` stand for all of theirs."""
    if permission in granted or EVERYTHING in granted:
        return True
    noun, _, _ = permission.partition(":")
    return f"{noun}:{EVERYTHING}" in granted


class Ceiling(Struct, frozen=True, kw_only=True):
    """The most that may be used, whoever asks. `allow` None means no allow-list."""

    allow: frozenset[str] | None = None
    deny: frozenset[str] = frozenset()

    def allows(self, permission: str) -> bool:
        """Deny wins; an absent allow-list allows the rest."""
        if not permission or (self.deny and allows(self.deny, permission)):
            return False
        return self.allow is None or allows(self.allow, permission)


NO_CEILING = Ceiling()


class Actor(Struct, frozen=True, kw_only=True):
    """The peer that authenticated directly, and how."""

    name: str  # "token:alice", "peer:globex.example", "agent:researcher"
    how: str = "token"  # token | signature | certificate | in_process | a2a-jwt | a2a-oauth
    domain: str | None = None  # the organisation a peer's token or key belongs to
    may_forward: bool = False  # listed as an inter-agent caller


class Standing(Struct, frozen=True, kw_only=True):
    """What a signed caller has shown of itself. Its rights follow from it, not from a token."""

    sender: str  # the identity that signed
    listed: bool = False  # the operator listed its organisation as a peer
    authenticated: bool = False  # beside its own name it has shown whom it acts for, or is a peer
    peer: str | None = None  # the organisation that is listed
    subject: str | None = None  # the address that its credential names, where it brought one

    @property
    def principal(self) -> str:
        """Whose its tasks are: the sender's, or of the one who speaks there."""
        return self.sender if self.subject is None else f"{self.sender}#{self.subject}"

    def owns(self, sender: str) -> bool:
        """Whether what was asked for under a name is its own; an organisation has all of its."""
        if self.subject is None and sender.startswith(f"{self.sender}#"):
            return True
        return sender == self.principal

    def meets(self, trust: Trust, allowed_peers: Sequence[str] | None = None) -> bool:
        """Whether it is trusted as far as an agent asks for."""
        if trust == "public":
            return True
        if trust == "authenticated":
            return self.authenticated
        return self.listed if allowed_peers is None else self.sender in allowed_peers


SELF_HOST: Final = "self"

_PLAIN: Final = re.compile(r"[A-Za-z0-9._~/+-]+", re.ASCII)


class Context(Struct, frozen=True, kw_only=True):
    """Who calls in the words of the caller's own host: its agent, its user, its chain."""

    agent: str  # empty at the top of a chain
    user: int = 0  # 0: no user on that host
    host: str  # "self", or the absolute URL of the host that calls
    root: str | None = None  # the request that the chain began with
    verified: bool = False  # the host has signed it, or shown its key; else it is claimed
    depth: int = 0  # as that host counts
    metadata: dict[str, Any] = {}  # of the operator here, about that host; it never travels

    def is_cross_site(self) -> bool:
        """Whether the caller says that it lives on another host."""
        return self.host != SELF_HOST

    @property
    def how(self) -> str:
        """How far it is believed."""
        return "verified" if self.verified else "claimed"

    def __str__(self) -> str:
        """As people are shown it."""
        if not self.agent:
            return f"{self.host} ({self.how})"
        # A name with a space or a sign could pass for another host that is verified.
        agent = self.agent if _PLAIN.fullmatch(self.agent) else f'"{self.agent}"'
        return f"{agent}@{self.host} ({self.how})"


class StatedContext(Context, frozen=True, kw_only=True):
    """A context as a request states it, with what is shown for it. No call holds one."""

    key: Secret | None = None  # that the host and we share
    certificate: str | None = None  # of the host, as a trusted proxy has verified it


PERSON: Final = "person:"  # how the name of an owner begins that is a person; her number follows


def owner_of(person: int | None, name: str) -> str:
    """Whose something is: a person's, whichever token of hers she shows, else of whom it names."""
    return name if person is None else f"{PERSON}{person}"


def person_of(owner: str) -> int | None:
    """The number of the person who owns something; None where it is a machine's."""
    return int(owner.removeprefix(PERSON)) if owner.startswith(PERSON) else None


class Caller(Struct, frozen=True, kw_only=True):
    """The actor with the rights that hold for this call."""

    actor: Actor
    scopes: frozenset[str]
    ceiling: Ceiling = NO_CEILING
    principal: str | None = None
    on_behalf_of: tuple[str, ...] = ()
    standing: Standing | None = None  # of a signed caller, and of the calls made for it
    context: Context | None = None  # what it says of itself beside that; no right follows from it
    token: str | None = None  # the number of the token that was shown: when it ends, so does this
    person: int | None = None  # whose token it is: when she ends, so does this
    session: int | None = None  # that stands for the token: when it ends, what it reads ends
    origin: Actor | None = None  # of a call made in process: who made the first of its chain here
    evidence: tuple[Evidence, ...] = ()  # what others vouch for, verified
    agent: str | None = None  # the only one that its token may call; it stands for that agent
    client: str | None = None  # the program that holds the token, if its maker has named it
    workspace: str | None = None  # that the token belongs to
    is_system: bool = False  # a command of the operator's
    task: str | None = None  # the only one that it may ask about, and do nothing else
    budgets: Ceilings = ()  # of the token, for each loop that answers it

    @property
    def owner(self) -> str:
        """Whose that is which it makes and is asked here."""
        return owner_of(self.person, self.actor.name)

    def may(self, permission: str) -> bool:
        """Effective right: the scopes within the ceiling."""
        if self.ceiling is NO_CEILING:
            return bool(permission) and allows(self.scopes, permission)
        return allows(self.scopes, permission) and self.ceiling.allows(permission)


class Payer(Struct, frozen=True, kw_only=True):
    """The account that is debited, and the quota whose limit bounds it.

    A token has a quota of its own; all accounts that one peer vouches for share the peer's quota.
    """

    account: Account
    quota: str = field(name="purse")  # the name it is sealed under
    limit: int | None = None  # micro-units; None is unlimited
    own_issue: bool = True  # False: another organisation answers for this account
    by_forwarding: bool = False  # the account came from a forwarded credential
    person: int | None = None  # whose token pays
    payment: str | None = None  # the voucher or other payment that it is known by, by its name
    # The quota that owes what a call costs above that payment: its issuer has not agreed to it.
    excess: str | None = None

    @property
    def owing(self) -> str:
        """The quota that owes what is above its limit or budget."""
        return self.excess or self.quota

    @property
    def owner(self) -> str:
        """Who agrees to payments from it, where it is an account of ours."""
        return owner_of(self.person, self.quota)


OPERATOR_NAME: Final = "operator"  # the account of the tokens that commands make for themselves


class Token(Struct, frozen=True, kw_only=True):
    """A bearer token as it is kept: never the token itself, only its keyed hash."""

    n: int
    name: str
    hash: bytes
    prefix: str  # the first characters, to recognise it by
    scopes: frozenset[str]
    created: int
    peer: str | None = None  # the organisation this token authenticates
    forwardable: bool = False  # at the origin, may be sent on to listed peers
    may_forward: bool = False  # its holder may send forwarded credentials
    rate_calls: int | None = None
    rate_seconds: int = 60
    spending_limit: int | None = None  # micro-units; None is unlimited
    expires: int | None = None
    revoked: int | None = None
    last_used: int | None = None
    number: str = ""  # `n` as turns name it; made once, because every call does
    person: int | None = None  # whose it is; else a peer's, or a service of its own
    holder: str | None = None  # her name
    payer: str | None = None  # the account it bills; None: that of its name
    session: int | None = None  # that stands for it, where it is shown by one
    taken_back: tuple[str, ...] = ()  # permissions that an update took, since they meant nothing
    agent: str | None = None  # the only one that it may call; it stands for that agent
    client: str | None = None  # the program that holds it
    workspace: str | None = None
    chain_depth: int | None = None  # the first depth at which its chains are refused
    budgets: Ceilings = ()  # by their names, for each loop that answers it
    ceiling: Ceiling = NO_CEILING  # the most that may be used with it
    is_certificate: bool = False  # it stands for the certificate of `peer`, and is kept nowhere

    def may(self, permission: str) -> bool:
        """Whether its holder may do something by it."""
        return allows(self.scopes, permission) and self.ceiling.allows(permission)

    @property
    def account(self) -> str:
        """Who holds it: tokens named `NAME#...` are all NAME's."""
        return self.name.partition("#")[0]

    @property
    def service(self) -> str | None:
        """The machine of ours that holds it, where it is no person's and no peer's."""
        return None if self.person is not None or self.peer is not None else self.account

    @property
    def is_of_command(self) -> bool:
        """Whether a command made it for itself: nobody can use or end it, so nobody lists it."""
        return self.name != self.account == OPERATOR_NAME

    def is_live(self, now: int) -> bool:
        """Neither revoked nor expired."""
        return self.revoked is None and (self.expires is None or self.expires > now)
