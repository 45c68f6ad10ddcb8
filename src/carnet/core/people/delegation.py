"""Authority that narrows as it travels: what a delegation token grants, and to whom.

Law 1. A delegation only narrows: without one a caller may do what its trust allows, with one never
       more. A token that was derived from another grants no more of anything than that one.
Law 2. Nothing here is believed: a `Delegation` is what a token says. The guards verify each link of
       the chain with a key that they know to be its issuer's.
Law 3. What is wrong is told with the link it is wrong in. The first token of a chain is link 1.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Final, Literal

from msgspec import Struct

from carnet.core.people.address import AGENT, host_of
from carnet.core.people.proof import SECOND_US, Spending
from carnet.errors import DelegationExceeded, DelegationInvalid, DelegationWidened, LoopDetected

# Where it cannot be learned whether a delegation was ended: what may pay is refused, all, or none.
Freshness = Literal["pay", "all", "none"]

EVERY_SKILL: Final = "*"
MOST_LINKS: Final = 8
MOST_SECONDS: Final = 86_400  # how far ahead the end of a token may lie
SKEW_SECONDS: Final = 60  # between the clocks of its issuer and of its reader

_NOT_SHOWN: Final = frozenset({"text", "signed", "signature"})


class Delegation(Struct, frozen=True, kw_only=True):
    """One token of a chain, as it was read."""

    issuer: str  # an identity: "agent://a.example"
    subject: str  # who may present it
    scope: tuple[str, ...]  # skills; "*" stands for all of them
    hops: int  # `maxDepth`: calls in all that may follow, the one it is presented with included
    issued: int  # seconds since the epoch
    expires: int
    not_before: int = 0
    audience: str | None = None  # whom it may be presented to; always there in our own
    token_id: str | None = None  # `jti`
    once: bool = False  # good for one call
    budget: Spending | None = None
    actors: tuple[str, ...] = ()  # `act`: who acted before the subject, the latest first
    parent: "Delegation | None" = None  # what it was derived from
    is_ours: bool = False  # of our own type: held to the stricter rules
    keyid: str = ""
    text: str = ""  # the token itself
    signed: bytes = b""  # the bytes that its signature covers
    signature: bytes = b""

    def __repr__(self) -> str:
        """What it grants. Not the token: who reads that, in a log say, could show it."""
        named = (name for name in self.__struct_fields__ if name not in _NOT_SHOWN)
        return f"Delegation({', '.join(f'{name}={getattr(self, name)!r}' for name in named)})"

    def chain(self) -> "tuple[Delegation, ...]":
        """All links, the first one first."""
        links: list[Delegation] = []
        link: Delegation | None = self
        while link is not None:
            links.append(link)
            link = link.parent
        return tuple(reversed(links))

    @property
    def ids(self) -> str:
        """The ids of all links that have one, in one text: what ended is found by any of them."""
        return " ".join([link.token_id for link in self.chain() if link.token_id])

    @property
    def may_pay(self) -> bool:
        """Whether it names money that may be spent under it."""
        return self.budget is not None and bool(self.budget.money)

    def covers(self, skill: str) -> bool:
        """Whether a skill may be asked for."""
        return EVERY_SKILL in self.scope or skill in self.scope

    def single_use(self) -> "Delegation | None":
        """The link that makes the whole chain good for one call, if one does.

        It is the first of those that say so: whoever holds it could derive many from it.
        """
        return next((link for link in self.chain() if link.once), None)

    def single_use_link(self) -> int:
        """The number of that link; 1 if there is none."""
        return next((number for number, link in enumerate(self.chain(), 1) if link.once), 1)

    @property
    def edges(self) -> int:
        """How many times it was passed on, by its links or by what it says of earlier ones."""
        return max(len(self.chain()), len(self.actors) + 1) - 1


def check_times(last: Delegation, now: int) -> None:
    """Refuse a chain with a link whose time has not come, is over, or has no near end."""
    soon = now + SKEW_SECONDS * SECOND_US
    for number, link in enumerate(last.chain(), 1):
        if link.expires * SECOND_US <= now:  # samvad:delegation:end
            raise DelegationInvalid(reason="it has expired", link=number)
        if link.expires * SECOND_US > soon + MOST_SECONDS * SECOND_US:
            reason = f"it is meant to hold for longer than {MOST_SECONDS} seconds"
            raise DelegationInvalid(reason=reason, link=number)
        if link.issued * SECOND_US > soon:
            raise DelegationInvalid(reason="it was issued in the future", link=number)
        if link.not_before * SECOND_US > soon:
            raise DelegationInvalid(reason="it does not hold yet", link=number)


def check_chain(last: Delegation) -> None:
    """Refuse a chain in which a link grants more than the one before it, or nothing is left."""
    links = last.chain()
    if len(links) > MOST_LINKS:
        raise DelegationExceeded(reason=f"it has more than {MOST_LINKS} links")
    for number, (parent, child) in enumerate(pairwise(links), 2):
        check_link(parent, child, number)
    if last.hops < 1:  # samvad:delegation:depth
        raise DelegationExceeded


def check_link(parent: Delegation, child: Delegation, link: int) -> None:
    """Refuse a token that its parent does not allow; `link` is its number."""
    goes_on = may_go_on(child.issuer, parent)
    if not goes_on and child.issuer != parent.subject:
        reason = "its issuer neither holds nor was addressed by the one before it"
        raise DelegationInvalid(reason=reason, link=link)
    is_moved = parent.audience is not None and child.audience != parent.audience
    wider = {
        "aud": is_moved and not goes_on,
        "scope": not all(map(parent.covers, child.scope)),
        "exp": child.expires > parent.expires,
        "maxDepth": child.hops > parent.hops - 1,
        "once": parent.once and not child.once,
        **_wider_budget(parent.budget, child.budget),
    }
    for claim, is_wider in wider.items():
        if is_wider:
            raise DelegationWidened(claim=claim, link=link)


def may_go_on(issuer: str, parent: Delegation) -> bool:
    """Whether an issuer is whom a token was presented to: the agent itself, or its gateway."""
    if parent.audience is None:
        return False
    house = host_of(parent.audience).partition(".")[2]
    return issuer == parent.audience or ("." in house and issuer == AGENT + house)


def _wider_budget(parent: Spending | None, child: Spending | None) -> dict[str, bool]:
    parent, child = parent or Spending(), child or Spending()
    is_other = parent.money is not None and parent.currency != child.currency
    return {
        "bud.money": is_other or _is_wider(parent.money, child.money),
        "bud.calls": _is_wider(parent.calls, child.calls),
        "bud.tokens": _is_wider(parent.tokens, child.tokens),
    }


def _is_wider(parent: int | None, child: int | None) -> bool:
    return parent is not None and (child is None or child > parent)


def check_loop(last: Delegation, is_own: Callable[[str], bool]) -> None:
    """Refuse a chain that somebody was in twice, or that was at this gateway before.

    A first link of our own is none: what we granted comes back to be used here. `is_own` tells
    which identities are ours.
    """
    links = last.chain()
    acted = [link.subject for link in links] + [link.issuer for link in links[1:]]
    issuers = {link.issuer for link in links}
    has_twice = len(issuers) < len(links) or len(set(last.actors)) < len(last.actors)
    if has_twice or any(map(is_own, (*acted, *last.actors))):
        raise LoopDetected


def narrower(one: Spending | None, other: Spending | None) -> Spending | None:
    """The smaller of two budgets, each part by itself; of two currencies nothing can be spent."""
    if one is None or other is None:
        return one or other
    money, currency = least(one.money, other.money), one.currency or other.currency
    if one.money is not None and other.money is not None and one.currency != other.currency:
        money, currency = 0, one.currency
    elif one.money is None and other.money is not None:
        currency = other.currency
    return Spending(
        money=money,
        currency=None if money is None else currency,
        calls=least(one.calls, other.calls),
        tokens=least(one.tokens, other.tokens),
        seconds=least(one.seconds, other.seconds),
    )


def least(one: int | None, other: int | None) -> int | None:
    """The smaller of two bounds; None is no bound."""
    return min((each for each in (one, other) if each is not None), default=None)
