"""A person: one record for all that a human is here (R25).

Law 1. A name is a strict slug. It holds no ':' and no '.', so that no person can be taken for a
       peer, an agent elsewhere or a token, and it names no machine of ours.
Law 2. A name is not given that a hurried reader takes for another person's, or for an agent's:
       their handles are written alike (A57).
Law 3. A person narrows what her tokens may do, and never adds to it.
"""

import re
from collections.abc import Iterable
from typing import Final, Literal

from msgspec import Struct

from carnet.core.people.address import skeleton
from carnet.core.people.identity import OPERATOR_NAME, Actor, Token
from carnet.core.people.permissions import rights_of
from carnet.errors import AddressInvalid

How = Literal["claimed", "verified"]

OWNER: Final = "owner"  # the first person of a gateway
MOST_ADDRESSES: Final = 16  # of one person
MOST_DISPLAY: Final = 100  # characters
MOST_ADDRESS: Final = 320

_NAME: Final = re.compile(r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
# How machines are called, and words that stand for somebody.
_RESERVED: Final = frozenset(
    {"peer", "agent", "service", "token", "sender", "person", "people", "me", "all", "anonymous"}
)
_MAILTO: Final = re.compile(r"mailto:[A-Za-z0-9.!#$%&'*+/=?^_{|}~-]{1,64}@[A-Za-z0-9.-]{1,253}")
_ELSEWHERE: Final = re.compile(
    r"@[A-Za-z0-9._-]{1,64}@[a-z0-9.-]{1,253}|https://[\x21-\x7e]{1,310}"
)


class PersonAddress(Struct, frozen=True, kw_only=True):
    """Where else a person is known."""

    address: str  # mailto:alice@acme.example, @alice@elsewhere.example, https://...
    how: How = "claimed"
    verified: int | None = None


class Person(Struct, frozen=True, kw_only=True):
    """A human that this gateway knows."""

    n: int
    name: str
    display: str | None = None
    number: int | None = None  # by which hosts that count their users know her
    roles: tuple[str, ...] = ()
    permissions: frozenset[str] = frozenset()  # beside those of her roles
    account: str | None = None  # that her new tokens bill; None: each bills its own
    addresses: tuple[PersonAddress, ...] = ()
    created: int = 0
    ended: int | None = None

    @property
    def rights(self) -> frozenset[str]:
        """The most that her tokens may do."""
        return rights_of(self.roles, self.permissions)

    @property
    def state(self) -> str:
        """Whether she is known still."""
        return "live" if self.ended is None else "ended"

    @property
    def notice_address(self) -> str | None:
        """Where she is told what she is asked: an https address that was verified to be hers."""
        hers = [each.address for each in self.addresses if each.how == "verified"]
        return next((address for address in hers if address.startswith("https://")), None)

    def handle(self, domain: str) -> str:
        """Her address here."""
        return f"@{self.name}@{domain}"


def check_person_name(name: str) -> str:
    """Return the name of a person if it can be one, else refuse it."""
    if not _NAME.fullmatch(name) or name.startswith("xn--"):
        raise AddressInvalid("it is not 1 to 63 of a-z, 0-9 and '-', a letter first")
    if name in _RESERVED or name == OPERATOR_NAME:
        raise AddressInvalid("it is how machines are called")
    return name


def check_unlike(name: str, known: Iterable[str]) -> str:
    """Return a name that nobody takes for one of those that are known, else refuse it."""  # A57
    seen = skeleton(name)
    for other in known:
        if skeleton(other) == seen:
            raise AddressInvalid(f"it is, or looks like, '{other}', which is known here")
    return name


def check_person_address(address: str, *, domain: str) -> str:
    """Return another address of a person in its stored form, else refuse it.

    `domain` is ours: a handle there is what a person or an agent is called, and nobody's other one.
    """
    stored = address.strip()
    if stored[:7].lower() == "mailto:":
        local, _, domain = stored[7:].rpartition("@")
        stored = f"mailto:{local}@{domain.lower()}"
    is_known = _MAILTO.fullmatch(stored) or _ELSEWHERE.fullmatch(stored)
    if len(stored) > MOST_ADDRESS or not is_known:
        raise AddressInvalid("it is no mailto:NAME@DOMAIN, @NAME@DOMAIN or https URL")
    if stored.startswith("@") and stored.endswith(f"@{domain}"):
        raise AddressInvalid("it is a name of this organisation")
    return stored


def check_display(text: str) -> str:
    """Return the name that is shown if it can be, else refuse it."""
    if not 0 < len(text) <= MOST_DISPLAY or not text.isprintable() or text != text.strip():
        raise AddressInvalid(f"it is not 1 to {MOST_DISPLAY} printable characters")
    return text


def actor_id(actor: Actor, token: Token | None, *, domain: str) -> str:
    """Who acts, in the one spelling of X-Actor-ID: a person's bare name; a machine says its kind.

    `domain` is ours. The names of kinds hold a ':', which no person's name does.
    """
    if token is not None and token.holder is not None:
        return token.holder
    kind, _, name = actor.name.partition(":")
    if kind == "agent":
        return f"agent:{name}@{domain}"
    if kind == "token":
        return f"service:{name}"
    return actor.name
