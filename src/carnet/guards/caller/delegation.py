"""Does the delegation hold, and what does it leave of the call?

Law 1. Every link is verified with a key of its issuer, found where the keys of senders are found.
       A card is fetched for a configured peer and for the sender itself, for nobody else that a
       token names.
Law 2. It only narrows: depth, time and budget become less or stay as they were, and of the skills
       those remain that its scope names.
Law 3. It is good for whom it was given to, at the agent it was made for.
Law 4. What was verified is remembered until it expires, by the whole of its text. The keys are
       looked up at each use: with a key ends what it has signed.
Law 5. A link that was ended ends all below it (R59).
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from operator import contains
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.people.address import AGENT, Identities, host_of, may_be_fetched
from carnet.core.people.delegation import (
    Delegation,
    Freshness,
    check_chain,
    check_loop,
    check_times,
    narrower,
)
from carnet.core.people.identity import CHAT
from carnet.core.people.proof import SECOND_US
from carnet.errors import (
    DelegationExceeded,
    DelegationInvalid,
    DepthExceeded,
    KeyRevoked,
    KeyUnknown,
    PeerUnreachable,
)
from carnet.guards.candidate import Candidate
from carnet.ports.calls.turns import Nonce
from carnet.ports.trust.keys import KeyRing, NotLearned
from carnet.ports.trust.trust import Peers
from carnet.ports.world.clock import Clock
from carnet.wire.crypto import delegation as tokens
from carnet.wire.crypto import ed25519

MOST_REMEMBERED: Final = 4096
MOST_CHARACTERS: Final = 4_194_304  # of all tokens that are remembered
MOST_NAMED: Final = 32  # on whose behalf: as many as a travel document has room for
CLOCKS_SECONDS: Final = 5  # how far the clocks of replicas may be apart
MOST_KEYS: Final = 8  # that are tried for a token that names none
UNKNOWN: Final = "its issuer is not known here"

Keys = Sequence[bytes]  # of one issuer; several where the token names none of them
Fresh = Callable[[Delegation, Freshness], Awaitable[None]]  # refuses what its issuer has ended
EndedLink = Callable[[Delegation], int | None]  # the number of a link that was ended


def no_link(_: Delegation, /) -> int | None:
    """Nothing was ended."""
    return None


class _Held(Struct, frozen=True):
    """A chain that was verified, and the key that each of its links held under."""

    delegation: Delegation
    keys: tuple[bytes, ...]


class Delegated:
    """Refuses a delegation that does not hold, and narrows the call by one that does."""

    def __init__(
        self,
        keys: KeyRing,
        peers: Peers,
        clock: Clock,
        identities: Identities,
        domain: str,
        last_depth: int,
        ended: EndedLink = no_link,
    ) -> None:
        """Judge delegations.

        Args:
            keys: Those of the issuers.
            peers: Whose cards may be fetched.
            clock: Tells how much of its time is left.
            identities: Those of our agents.
            domain: Ours.
            last_depth: Of chains that set none.
            ended: Tells which link was ended.
        """
        self._ended = ended
        self._keys = keys
        self._peers = peers
        self._clock = clock
        self._identities = identities
        self._domain = domain
        self._last_depth = last_depth
        self._held: OrderedDict[bytes, _Held] = OrderedDict()
        self._characters = 0

    def __call__(self, candidate: Candidate, /) -> Awaitable[None] | None:
        """Judge the token of a claim, where it has one."""
        text = candidate.claim.delegation
        if text is None:
            return None
        digest = sha256(text.encode("utf-8", "surrogatepass")).digest()
        held = self._held.get(digest)
        found = tokens.read(text) if held is None else held.delegation
        check_times(found, candidate.now)
        ended = self._ended(found)
        if ended is not None:  # R59: and with it all that was derived from it
            raise DelegationInvalid(reason="it was ended", link=ended)
        self._check_presented(found, candidate)
        unknown = self._not_learned(found, candidate)
        if unknown:
            return self._learn(candidate, found, digest, unknown)
        self._accept(candidate, found, digest)
        return None

    async def _learn(
        self, candidate: Candidate, found: Delegation, digest: bytes, unknown: Sequence[str]
    ) -> None:
        for issuer in unknown:
            await self._keys.learn(issuer)
        self._accept(candidate, found, digest)

    def _check_presented(self, found: Delegation, candidate: Candidate) -> None:
        """Refuse a token of somebody else's, or for somebody else."""  # A29
        link = len(found.chain())
        if found.subject != candidate.proof.sender:  # samvad:delegation:subject
            raise DelegationInvalid(reason="it was given to somebody else", link=link)
        ours = {AGENT + self._domain, self._identities.of(candidate.claim.agent)}
        if found.audience is not None and found.audience not in ours:  # samvad:delegation:audience
            raise DelegationInvalid(reason="it is for another agent", link=link)

    def _not_learned(self, found: Delegation, candidate: Candidate) -> list[str]:
        """Issuers whose cards are to be fetched; the first that is nobody to us is refused."""
        unknown: list[str] = []
        for number, link in enumerate(found.chain(), 1):
            try:
                self._keys_of(link, number, candidate.now)
            except NotLearned:
                if not self._may_learn(link.issuer, candidate.proof.sender):
                    raise _unknown(link, number) from None
                unknown.append(link.issuer)
        return unknown

    def _may_learn(self, issuer: str, sender: str) -> bool:
        host = host_of(issuer)
        is_peer = any(self._peers.find(name) for name in (host, host.partition(".")[2]))
        return is_peer or (issuer == sender and may_be_fetched(issuer))

    def _keys_of(self, link: Delegation, number: int, now: int) -> Keys:
        try:
            if link.keyid:
                return (self._keys.find(link.issuer, link.keyid, now),)
            return self._keys.every(link.issuer, now)[:MOST_KEYS]
        except KeyUnknown:
            raise _unknown(link, number) from None
        except KeyRevoked:
            reason = "the key of its issuer is no longer valid"
            raise DelegationInvalid(reason=reason, link=number) from None
        except PeerUnreachable:
            reason = "the key of its issuer cannot be fetched now"
            raise DelegationInvalid(reason=reason, link=number) from None

    def _accept(self, candidate: Candidate, found: Delegation, digest: bytes) -> None:
        self._verify(found, digest, candidate.now)
        self._narrow(candidate, found)
        candidate.delegation = found

    def _verify(self, found: Delegation, digest: bytes, now: int) -> None:
        links = found.chain()
        known: list[Keys] = []
        for number, link in enumerate(links, 1):
            try:
                known.append(self._keys_of(link, number, now))
            except NotLearned:
                raise _unknown(link, number) from None
        held = self._held.get(digest)
        if held is not None and all(map(contains, known, held.keys)):
            return
        used = tuple(
            _key_that_holds(link, number, keys)
            for number, (link, keys) in enumerate(zip(links, known, strict=True), 1)
        )
        check_chain(found)
        self._remember(digest, _Held(found, used))

    def _remember(self, digest: bytes, held: _Held) -> None:
        self._forget(digest)
        self._held[digest] = held
        self._characters += len(held.delegation.text)
        while len(self._held) > MOST_REMEMBERED or self._characters > MOST_CHARACTERS:
            self._forget(next(iter(self._held)))  # the one that came first

    def _forget(self, digest: bytes) -> None:
        held = self._held.pop(digest, None)
        if held is not None:
            self._characters -= len(held.delegation.text)

    def _narrow(self, candidate: Candidate, found: Delegation) -> None:
        position = candidate.position
        bound = self._last_depth if position.last_depth is None else position.last_depth
        if found.edges > bound:  # A31: it was passed on more often than a chain may be long
            raise DepthExceeded(observed=found.edges, limit=bound + 1)
        last = position.depth + found.hops - 1
        if last < bound:
            candidate.position = replace(position, last_depth=last, bound_by="delegation")
        candidate.budget = narrower(candidate.budget, found.budget)
        candidate.on_behalf_of = _named(candidate, found)
        left_us = found.expires * SECOND_US - self._clock.wall_us()
        deadline = (self._clock.steady_us() + left_us) / SECOND_US
        if candidate.deadline is None or deadline < candidate.deadline:
            candidate.deadline = deadline


class InScope:
    """Refuses a skill that was not delegated, a chain that comes back, and what others ended."""

    def __init__(self, domain: str, fresh: Fresh | None = None) -> None:
        """`domain` is ours: an agent of it is where the chain may not have been.

        `fresh` refuses what its issuer has ended, as far as the agent wants that known.
        """
        self._domain = domain
        self._fresh = fresh

    def __call__(self, candidate: Candidate, /) -> Awaitable[None] | None:
        """Judge what is asked, now that it is known, and of whom."""
        found = candidate.delegation
        if found is None:
            return None
        if not found.covers(candidate.claim.ask.skill or CHAT.id):  # samvad:delegation:scope
            raise DelegationExceeded(reason="the skill is not in its scope")
        if not candidate.target.reentry:
            check_loop(found, self._is_own)
        if self._fresh is None:
            return None
        return self._fresh(found, candidate.target.delegation_freshness)

    def _is_own(self, identity: str) -> bool:
        host = host_of(identity)
        return self._domain in {host, host.partition(".")[2]}


def _unknown(link: Delegation, number: int) -> DelegationInvalid:  # samvad:delegation:issuer
    return DelegationInvalid(reason=UNKNOWN, link=number, issuer=link.issuer)


def _key_that_holds(link: Delegation, number: int, keys: Keys) -> bytes:
    for key in keys:
        if ed25519.holds(key, link.signed, link.signature):
            return key
    raise DelegationInvalid(reason="its signature does not hold", link=number)


def _named(candidate: Candidate, found: Delegation) -> tuple[str, ...]:
    """On whose behalf, the nearest first: the issuers, then whom the travel document names."""
    issuers = [link.issuer for link in reversed(found.chain())]
    names = dict.fromkeys((*issuers, *candidate.on_behalf_of))
    names.pop(candidate.proof.sender, None)
    return tuple(names)[:MOST_NAMED]


def once_of(found: Delegation | None) -> Nonce | None:
    """What is spent by a call under a delegation that is good for one; None for any other."""
    link = None if found is None else found.single_use()
    if link is None:
        return None
    expires = (link.expires + CLOCKS_SECONDS) * SECOND_US
    return Nonce(f"jti:{link.issuer}", link.token_id or "", expires)
