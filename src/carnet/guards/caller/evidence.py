"""What others vouch for: is it theirs to say, is it for us, is it fresh, and is it signed?

Law 1. Whether an issuer is believed is decided before anything is fetched for it, and its keys are
       found where the keys of senders are found.
Law 2. Evidence only adds to what is known of a caller: what is wrong with one is noted in a word,
       and the call goes on without it. Whether it may do so is for the rules of the agent.
Law 3. It is used once: by one message of one sender, which may be repeated. A store that cannot
       tell leaves it unused.
Law 4. Its time is looked at again after everything that had to be waited for.
"""

from collections.abc import Awaitable, Sequence
from typing import Any, Final

from carnet.core.people.address import (
    AGENT,
    DID_WEB,
    Identities,
    host_of,
    may_be_fetched,
)
from carnet.core.people.evidence import (
    Evidence,
    EvidenceInvalid,
    Fault,
    TrustedIssuer,
    is_of,
)
from carnet.core.people.proof import SECOND_US
from carnet.errors import AddressInvalid, CarnetError
from carnet.guards.candidate import Candidate
from carnet.guards.single_use import check_time, use_once
from carnet.guards.vouched import covered
from carnet.ports.trust.keys import KeyRing, NotLearned
from carnet.ports.trust.nonces import SingleUses
from carnet.ports.trust.trust import Peers
from carnet.ports.world.clock import Clock
from carnet.wire.crypto import ed25519
from carnet.wire.identity import attestation
from carnet.wire.identity.credential import named

_EVIDENCE: Final = "evidence:"  # before whom a nonce is of, so that it is nobody else's


class IssuerPolicy:
    """Whose evidence is believed, and of what."""

    def __init__(self, trusted: Sequence[TrustedIssuer] | None, peers: Peers) -> None:
        """Without a list the peers are believed, of their own agents and people."""
        self._trusted = trusted
        self._peers = peers

    def admits(self, found: Evidence) -> bool:
        """Whether its issuer may say this."""
        if self._trusted is not None:
            return any(each.admits(found) for each in self._trusted)
        try:
            identity, _ = named(found.issuer.removeprefix(DID_WEB))
        except AddressInvalid:
            return False
        is_peer = self._peers.find(host_of(identity)) is not None
        return is_peer and is_of(found.subject, found.issuer)


class Evidenced:
    """Verifies what came with a claim about identities."""

    def __init__(
        self,
        keys: KeyRing,
        policy: IssuerPolicy,
        identities: Identities,
        clock: Clock,
        nonces: SingleUses | None,
        url: str = "",
    ) -> None:
        """Judge evidence.

        Args:
            keys: Those of issuers.
            policy: Whom the operator trusts.
            identities: Those of our agents: whom it must be for.
            clock: Tells the time anew.
            nonces: What was used; without it nothing is believed.
            url: Where others reach this gateway.
        """
        self._keys = keys
        self._policy = policy
        self._identities = identities
        self._clock = clock
        self._nonces = nonces
        self._url = url

    def __call__(self, candidate: Candidate, /) -> Awaitable[None] | None:
        """Verify what there is."""
        if candidate.claim.carried is None:
            return None
        return self._judge(candidate, candidate.claim.carried.evidence)

    async def _judge(self, candidate: Candidate, value: object) -> None:
        found: list[Evidence] = []
        faults: list[Fault] = []
        for item in _items(value, faults):
            try:
                found.append(await self._verify(item, candidate))
            except EvidenceInvalid as invalid:
                faults.append(invalid.fault)
        candidate.evidence = tuple(found)
        for each in found:
            if each.on_behalf_of and not candidate.on_behalf_of and _is_own(each, candidate):
                candidate.on_behalf_of = each.on_behalf_of
        candidate.faults = tuple(faults)

    async def _verify(self, item: object, candidate: Candidate) -> Evidence:
        stated = attestation.read(item)
        found = stated.evidence
        if not self._policy.admits(found):  # before anything is fetched
            raise EvidenceInvalid("untrusted_issuer")
        ours = self._identities.names(candidate.claim.agent, self._url)
        if ours.isdisjoint(found.audience):
            raise EvidenceInvalid("audience_mismatch")
        begins, ends = stated.begins * SECOND_US, found.expires * SECOND_US
        check_time(begins, ends, candidate.now)
        key = await self._key(found, candidate.now)
        check_time(begins, ends, self._clock.wall_us())
        if not ed25519.holds(key, await covered(stated.signed, item), stated.signature):
            raise EvidenceInvalid("invalid_signature")
        await use_once(self._nonces, _EVIDENCE + found.issuer, found.id or "", ends, candidate)
        check_time(begins, ends, self._clock.wall_us())
        return found

    async def _key(self, found: Evidence, now: int) -> bytes:
        try:
            identity, _ = named(found.issuer)
        except AddressInvalid:  # trusted, and no place where keys are published
            raise EvidenceInvalid("unsupported_issuer_method") from None
        try:
            return self._keys.find(identity, found.key, now)
        except NotLearned:
            if not may_be_fetched(identity):
                raise EvidenceInvalid("key_fetch_failed") from None
        except CarnetError:
            raise EvidenceInvalid("key_fetch_failed") from None
        try:
            await self._keys.learn(identity)
            return self._keys.find(identity, found.key, now)
        except (NotLearned, CarnetError):
            raise EvidenceInvalid("key_fetch_failed") from None


def _items(value: object, faults: list[Fault]) -> list[Any]:
    if value is None:
        return []
    try:
        return attestation.read_carrier(value)
    except EvidenceInvalid as invalid:
        faults.append(invalid.fault)
        return []


def _is_own(found: Evidence, candidate: Candidate) -> bool:
    """Whether evidence is the word of who calls."""
    proof = candidate.claim.proof
    sender = AGENT + (candidate.caller.actor.domain or "") if proof is None else proof.sender
    return named(found.issuer)[0] == sender
