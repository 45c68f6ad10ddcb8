"""Does a voucher hold, and what is it worth?

Law 1. It is taken of listed peers and of ourselves, and of nobody else: what it says of its issuer
       chooses among those, and leads nowhere.
Law 2. Its issuer owes no more than the operator lets it owe, whatever it has promised: all of its
       vouchers share that with its other calls. Of our own each has the amount that it says.
Law 3. It is used up by the call that runs, in the transaction that claims the turn, on all replicas
       together; a repeat of that call is the same one.
Law 4. What is cheap is judged first; nobody is asked for the sake of a voucher that is not for us.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from carnet.core.people.address import AGENT
from carnet.core.people.identity import Caller
from carnet.core.people.proof import SECOND_US
from carnet.core.voucher import Voucher
from carnet.errors import KeyRevoked, KeyUnknown, PaymentRefused, PeerUnreachable
from carnet.ports.calls.turns import Nonce
from carnet.ports.trust.keys import KeyRing, NotLearned
from carnet.ports.trust.payers import ShownPayment, VerifiedPayment
from carnet.ports.trust.trust import Peers
from carnet.wire.crypto import ed25519
from carnet.wire.travel.voucher import read_voucher

CLOCKS_SECONDS: Final = 5  # how far the clocks of replicas may be apart

Fresh = Callable[[Voucher], Awaitable[None]]  # refuses what its issuer has revoked
IsEnded = Callable[[str], bool]  # whether one of ours was revoked, by its id


def nonce_of(voucher: Voucher) -> Nonce:
    """What is used up with it."""
    expires = (voucher.expires + CLOCKS_SECONDS) * SECOND_US
    return Nonce(f"voucher:{voucher.issuer}", voucher.id, expires)


def names_of(caller: Caller) -> set[str]:
    """The names by which a voucher may be made out to a caller."""
    actor, standing = caller.actor, caller.standing
    names = {actor.name, actor.name.removeprefix("token:")}
    if actor.domain is not None and actor.how != "a2a-oauth":  # that is a user of its issuer
        names |= {actor.domain, AGENT + actor.domain}
    if standing is not None:
        names |= {standing.principal, standing.sender}
        names |= set() if standing.peer is None else {standing.peer}
    return names


class Vouchers:
    """Verifies vouchers."""

    def __init__(
        self,
        keys: KeyRing,
        peers: Peers,
        *,
        domain: str,
        currency: str,
        is_ended: IsEnded,
        fresh: Fresh,
    ) -> None:
        """Judge vouchers.

        Args:
            keys: Those of issuers.
            peers: Whose vouchers are taken, and what each may owe.
            domain: Ours: whom a voucher must be for.
            currency: Of our ledger.
            is_ended: Whether one of our own was revoked.
            fresh: Refuses one that its issuer has revoked elsewhere.
        """
        self._keys = keys
        self._peers = peers
        self._domain = domain
        self._currency = currency
        self._is_ended = is_ended
        self._fresh = fresh

    async def verify(self, shown: ShownPayment, /) -> VerifiedPayment:
        """What a voucher is worth."""
        voucher = read_voucher(shown.credential)
        voucher.check(audience=self._domain, currency=self._currency, now=shown.now)
        voucher.check_holder(names_of(shown.caller))
        is_own = voucher.issuer == self._domain
        peer = None if is_own else self._peers.find(voucher.issuer)
        if peer is None and not is_own:
            raise PaymentRefused(reason="issuer")
        key = await self._key(voucher, shown.now)
        if not ed25519.holds(key, voucher.signed, voucher.signature):
            raise PaymentRefused(reason="forged")
        if is_own and self._is_ended(voucher.id):
            raise PaymentRefused(reason="revoked")
        if not is_own:
            await self._fresh(voucher)
        return VerifiedPayment(
            account=voucher.billed,
            quota=f"voucher:{voucher.name}" if peer is None else f"peer:{peer.domain}",
            limit=voucher.amount if peer is None else peer.credit,
            most=voucher.amount,
            once=nonce_of(voucher),
            name=voucher.name,
            own_issue=is_own,
        )

    async def _key(self, voucher: Voucher, now: int) -> bytes:
        issuer = AGENT + voucher.issuer
        try:
            try:
                return self._keys.find(issuer, voucher.keyid, now)
            except NotLearned:
                await self._keys.learn(issuer)
            return self._keys.find(issuer, voucher.keyid, now)
        except (KeyUnknown, NotLearned):
            raise PaymentRefused(reason="forged") from None
        except KeyRevoked:
            raise PaymentRefused(reason="revoked") from None
        except PeerUnreachable:
            raise PaymentRefused(reason="unsure") from None
