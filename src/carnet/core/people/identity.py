"""Who calls, for whom, with what rights, and who pays.

Law 1. Effective rights are an intersection: nothing here ever adds a right.
Law 2. Deny wins over allow.
Law 3. The payer is an account, never a credential.
"""

from collections.abc import Sequence

from msgspec import Struct, field

from carnet.core.people.skill import Trust

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
    how: str = "token"  # token | signature | in_process
    domain: str | None = None  # the organisation a peer's token or key belongs to
    may_forward: bool = False  # listed as an inter-agent caller


class Standing(Struct, frozen=True, kw_only=True):
    """What a signed caller has shown of itself. Its rights follow from it, not from a token."""

    sender: str  # the identity that signed
    listed: bool = False  # the operator listed its organisation as a peer
    authenticated: bool = False  # beside its own name it has shown whom it acts for, or is a peer

    def meets(self, trust: Trust, allowed_peers: Sequence[str] | None = None) -> bool:
        """Whether it is trusted as far as an agent asks for."""
        if trust == "public":
            return True
        if trust == "authenticated":
            return self.authenticated
        return self.listed if allowed_peers is None else self.sender in allowed_peers


class Context(Struct, frozen=True, kw_only=True):
    """Who calls in the words of the caller's own host: its agent, its user, its chain."""

    agent: str  # empty at the top of a chain
    user: int = 0  # 0: no user on that host
    host: str  # "self", or the absolute URL of the host that calls
    root: str | None = None  # the request that the chain began with
    verified: bool = False  # the host has signed it; else it is claimed


class Caller(Struct, frozen=True, kw_only=True):
    """The actor with the rights that hold for this call."""

    actor: Actor
    scopes: frozenset[str]
    ceiling: Ceiling = NO_CEILING
    principal: str | None = None
    on_behalf_of: tuple[str, ...] = ()
    standing: Standing | None = None  # of a signed caller, and of the calls made for it
    context: Context | None = None  # what it says of itself beside that; no right follows from it

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
