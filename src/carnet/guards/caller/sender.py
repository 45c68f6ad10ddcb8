"""Whose key is it?

Law 1. A key is found by the sender and the keyid together, among keys that were checked when they
       came to us. Nothing is ever fetched from where a keyid points.
Law 2. A card is looked for once, at the sender's own domain; whoever cannot have one is told how
       the operator admits it.
Law 3. A credential (`jwt`) says nothing of what is asked, so that trust is decided before anything
       is fetched for one: the sender is a listed peer, or an agent here is for everybody (R14).
Law 4. An IP address is an identity for nobody but a sender whose key the operator wrote down.
"""

from collections.abc import Awaitable

from carnet.core.people.address import AGENT, host_of, is_ip_identity, may_be_fetched
from carnet.core.people.proof import Proof
from carnet.errors import AddressInvalid, CarnetError, KeyUnknown
from carnet.guards.candidate import Candidate
from carnet.ports.calls.agent import Router
from carnet.ports.trust.keys import KeyRing, NotLearned
from carnet.ports.trust.trust import Peer, Peers


class KnownSender:
    """Refuses a claim that is signed with a key nobody knows."""

    def __init__(self, keys: KeyRing, peers: Peers, router: Router | None = None) -> None:
        """`keys` are the senders'; `peers` are the organisations that are listed.

        `router` knows which agents are for everybody.
        """
        self._keys = keys
        self._peers = peers
        self._router = router

    def __call__(self, candidate: Candidate, /) -> Awaitable[None] | None:
        """Find the key, and the peer it belongs to; look for the sender's card if need be."""
        proof = candidate.proof
        try:
            candidate.key = self._keys.find(proof.sender, proof.keyid, candidate.now)
        except NotLearned:
            if may_be_fetched(proof.sender) and self._may_learn(proof, candidate):
                return self._learn(candidate)
            raise self._unknown(proof.sender) from None
        except KeyUnknown:
            raise self._unknown(proof.sender) from None
        candidate.peer = self._peer(proof.sender)
        return None

    def _may_learn(self, proof: Proof, candidate: Candidate) -> bool:
        """Whether a sender could be admitted at all, once its key is known."""
        if proof.profile != "jwt" or self._router is None or self._peer(proof.sender) is not None:
            return True
        agent = candidate.claim.agent
        try:
            asked = [self._router.find(agent)] if agent else self._router.local()
        except CarnetError:
            return False
        tiers = [own.trust for own in asked]
        tiers += [skill.trust for own in asked for skill in own.skills if skill.trust]
        return "public" in tiers

    async def _learn(self, candidate: Candidate) -> None:
        proof = candidate.proof
        await self._keys.learn(proof.sender)
        try:
            candidate.key = self._keys.find(proof.sender, proof.keyid, candidate.now)
        except (NotLearned, KeyUnknown):
            raise self._unknown(proof.sender) from None
        candidate.peer = self._peer(proof.sender)

    def _peer(self, sender: str) -> Peer | None:
        """The listed organisation that answers for a sender: itself, or the one whose agent it is.

        The key ring takes the keys of both from one place. Who has a key of its own, which the
        operator wrote down for it, was not vouched for by anybody: it speaks for itself alone.
        """
        host = host_of(sender)
        peer = self._peers.find(host)
        if peer is None and not self._keys.is_pinned(sender):
            peer = self._peers.find(host.partition(".")[2])
        return peer

    def _unknown(self, sender: str) -> AddressInvalid | KeyUnknown:
        if is_ip_identity(sender):
            return AddressInvalid("an IP address names nobody but a configured peer")
        peer = self._peer(sender)
        pinned = peer is None or self._keys.is_pinned(f"{AGENT}{peer.domain}")
        return KeyUnknown(sender=sender, listed=not pinned)
