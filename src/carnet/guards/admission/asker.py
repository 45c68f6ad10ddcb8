"""Who asks about what exists, with a credential or an access token.

Law 1. A credential is judged by the guards that judge it with a call, in their order, and is used
       up by its question: nobody makes a call of it afterwards.
Law 2. Who asks by a credential may read and cancel what is its own, and nothing else.
"""

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from carnet.core.call import Ask, Claim
from carnet.core.people.grant import AccessToken
from carnet.core.people.identity import Actor, Caller, Secret, Standing
from carnet.core.people.proof import Proof
from carnet.errors import KeyUnknown, NonceReplayed, PeerUnknown, SignatureInvalid, TokenInvalid
from carnet.guards.admission.order import GateParts, Order, Signed
from carnet.guards.caller.access_token import caller_of
from carnet.guards.caller.authentication import authenticate
from carnet.guards.candidate import Candidate
from carnet.guards.proof.replay import nonce_of

RIGHTS = frozenset({"run:read", "run:cancel"})
_UNREAD = Claim(dialect="", agent="", ask=Ask(messages=()), digest=b"", request=b"")


class KnownAskers:
    """Finds out who asks."""

    def __init__(
        self,
        order: Order,
        parts: GateParts,
        look_again: Callable[[], Awaitable[bool]],
        by: Signed | None,
    ) -> None:
        """`order` has the guards, `parts` and `by` what else is judged with."""
        self._order = order
        self._tokens = parts.tokens
        self._clock = parts.clock
        self._look_again = look_again
        self._nonces = None if by is None else by.nonces
        self._grants = None if by is None else by.grants
        self._knows_keys = by is not None

    async def vouch(self, authorization: Secret | None, proof: Proof | None) -> str:
        """Refuse who could not be admitted whatever it asks, unread (A75); else tell its name."""
        has_looked = False
        while True:
            try:
                if proof is None:
                    now = self._clock.wall_us()
                    return authenticate(authorization, self._tokens, now).account
                await self._vouch_for(proof)
            except (TokenInvalid, PeerUnknown, KeyUnknown):
                if has_looked or not await self._look_again():
                    raise
                has_looked = True
            else:
                return proof.sender

    async def _vouch_for(self, proof: Proof) -> None:
        if not self._knows_keys:
            raise SignatureInvalid("this gate knows no keys")
        candidate = Candidate(replace(_UNREAD, proof=proof), self._clock.wall_us())
        for guard in self._order.by_head:
            waiting = guard(candidate)
            if waiting is not None:
                await waiting

    async def who(self, shown: Proof | AccessToken, agent: str, *, uses: bool = True) -> Caller:
        """The caller that a credential proves; with `uses` it is used up."""
        if isinstance(shown, AccessToken):
            return await self._granted(shown, agent)
        try:
            candidate = await self._judged(shown, agent)
        except (PeerUnknown, KeyUnknown):
            if not await self._look_again():
                raise
            candidate = await self._judged(shown, agent)
        if uses:
            await self._use(candidate)
        peer = candidate.peer
        actor = Actor(
            name=f"sender:{shown.sender}" if peer is None else f"peer:{peer.domain}", how="a2a-jwt"
        )
        standing = Standing(
            sender=shown.sender, subject=shown.subject, peer=None if peer is None else peer.domain
        )
        return Caller(actor=actor, scopes=RIGHTS, standing=standing)

    async def _granted(self, shown: AccessToken, agent: str) -> Caller:
        if self._grants is None:
            raise TokenInvalid
        return caller_of(await self._grants.find(shown, agent, self._clock.wall_us()))

    async def _judged(self, proof: Proof, agent: str) -> Candidate:
        if not self._order.by_question:
            raise SignatureInvalid("this gate knows no keys")
        claim = replace(_UNREAD, proof=proof, agent=agent)
        candidate = Candidate(claim, self._clock.wall_us())
        for guard in self._order.by_question:
            waiting = guard(candidate)
            if waiting is not None:
                await waiting
        return candidate

    async def _use(self, candidate: Candidate) -> None:
        nonce = nonce_of(candidate)
        if self._nonces is None or not await self._nonces.use(nonce, "", candidate.now):
            raise NonceReplayed
        self._order.unrepeated.remember(nonce)
