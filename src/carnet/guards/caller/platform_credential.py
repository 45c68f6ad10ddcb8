"""Credentials of Mentionable 0.2: from whom, for us, for this message, fresh, signed, and once?

Law 1. Whether an issuer is believed is decided before anything is fetched for it; so is whom it is
       for, which message it came with, and its time.
Law 2. A credential only adds to what is known of a caller: what is wrong with one is noted in a
       word, and the call goes on without it.
Law 3. Its key stands in the document of its issuer, which controls it and lists it for what it
       asserts. A key that is not there, or a signature that does not hold, has the document fetched
       anew, once; a key of somebody else's has not.
Law 4. It is used once, for its issuer, its recipient and its message together; last of all, so that
       nothing forged uses up what is genuine. Its time is looked at again after all that.
"""

from collections.abc import Awaitable
from hashlib import sha256
from typing import Final, Protocol

from carnet.core.people.address import Identities
from carnet.core.people.evidence import Evidence, EvidenceInvalid, Fault
from carnet.core.trust.did import read_did
from carnet.errors import AddressInvalid, CarnetError
from carnet.guards.candidate import Candidate
from carnet.guards.single_use import check_time, use_once
from carnet.guards.vouched import covered
from carnet.ports.trust.dids import DidDocuments
from carnet.ports.trust.nonces import SingleUses
from carnet.ports.world.clock import Clock
from carnet.wire.crypto import ed25519
from carnet.wire.identity import platform_credential as credentials
from carnet.wire.identity.did_document import DidDocument
from carnet.wire.identity.platform_credential import StatedCredential

_CREDENTIAL: Final = "credential:"  # before whom a nonce is of, so that it is nobody else's


class Believing(Protocol):
    """Whose word is believed."""

    def admits(self, found: Evidence, /) -> bool:
        """Whether its issuer may say this."""


class CredentialsPresented:
    """Verifies the credentials that came with a claim."""

    def __init__(
        self,
        documents: DidDocuments,
        policy: Believing,
        identities: Identities,
        clock: Clock,
        nonces: SingleUses | None,
        url: str = "",
    ) -> None:
        """Judge credentials.

        Args:
            documents: Those of issuers.
            policy: Whom the operator trusts.
            identities: Those of our agents: whom it must be for.
            clock: Tells the time anew.
            nonces: What was used; without it nothing is believed.
            url: Where others reach this gateway.
        """
        self._documents = documents
        self._policy = policy
        self._identities = identities
        self._clock = clock
        self._nonces = nonces
        self._url = url

    def __call__(self, candidate: Candidate, /) -> Awaitable[None] | None:
        """Verify what there is."""
        carried = candidate.claim.carried
        if carried is None or carried.credentials is None:
            return None
        return self._judge(candidate, carried.credentials, carried.message)

    async def _judge(self, candidate: Candidate, value: object, message: str) -> None:
        found: list[Evidence] = []
        faults: list[Fault] = []
        try:
            items = credentials.read_carrier(value)
        except EvidenceInvalid as invalid:
            items = []
            faults.append(invalid.fault)
        for item in items:
            try:
                found.append(await self._verify(item, message, candidate))
            except EvidenceInvalid as invalid:
                faults.append(invalid.fault)
        candidate.evidence += tuple(found)
        candidate.faults += tuple(faults)

    async def _verify(self, item: object, message: str, candidate: Candidate) -> Evidence:
        stated = credentials.read(item)
        found = stated.evidence
        if not self._policy.admits(found):
            raise EvidenceInvalid("untrusted_issuer")
        try:
            read_did(found.issuer)
        except AddressInvalid:
            raise EvidenceInvalid("unsupported_issuer_method") from None
        if stated.domain not in self._identities.names(candidate.claim.agent, self._url):
            raise EvidenceInvalid("domain_mismatch")
        if stated.challenge != message:
            raise EvidenceInvalid("challenge_mismatch")
        check_time(stated.begins, stated.ends, candidate.now)
        if not stated.method.startswith(f"{found.issuer}#"):
            raise EvidenceInvalid("issuer_controller_mismatch")
        await self._check_signature(stated)
        check_time(stated.begins, stated.ends, self._clock.wall_us())
        name = sha256(f"{stated.domain}\0{stated.challenge}".encode()).hexdigest()
        await use_once(self._nonces, _CREDENTIAL + found.issuer, name, stated.ends, candidate)
        check_time(stated.begins, stated.ends, self._clock.wall_us())
        return found

    async def _check_signature(self, stated: StatedCredential) -> None:
        document = await self._document(stated)
        bases = await covered(stated.bases, stated.item)
        if _holds(stated, bases, document) is True:
            return
        holds = _holds(stated, bases, await self._document(stated, again=True))
        if holds is None:  # it is not there now either
            raise EvidenceInvalid("issuer_controller_mismatch")
        if not holds:
            raise EvidenceInvalid("invalid_signature")

    async def _document(self, stated: StatedCredential, *, again: bool = False) -> DidDocument:
        try:
            found = await self._documents.find(stated.evidence.issuer, again=again)
        except CarnetError:
            raise EvidenceInvalid("key_fetch_failed") from None
        if found.id != stated.evidence.issuer:
            raise EvidenceInvalid("issuer_controller_mismatch")
        return found


def _holds(
    stated: StatedCredential, bases: tuple[bytes, ...], document: DidDocument
) -> bool | None:
    """Whether it is signed with the key that it names; None where there is no such key."""
    method = document.methods.get(stated.method)
    if method is None:
        return None
    if not document.vouches(stated.method):
        raise EvidenceInvalid("issuer_controller_mismatch")
    return any(ed25519.holds(method.key, base, stated.signature) for base in bases)
