"""Going on under a delegation: what a call out of a delegated call carries.

Law 1. What leaves grants less than what came: one hop less at the least, no later an end, the same
       skills, and no more of the budget than is left.
Law 2. Nothing leaves without it: to ask with our own rights for somebody who has fewer would make
       us the deputy of whoever holds the token. A skill outside of its scope is not asked for.
Law 3. Where the rule of links allows it the whole chain goes along, so that the next one can verify
       it. A token in the form of the SDKs names those who acted before, and proves our word alone.
"""

from typing import Final

from carnet.core.chain.carnet import Carnet
from carnet.core.people.delegation import MOST_LINKS, Delegation, may_go_on, narrower
from carnet.core.people.proof import SECOND_US
from carnet.errors import DelegationExceeded, DelegationInvalid
from carnet.ports.world.clock import Clock, Ids
from carnet.runtime.peers.signing import Signing
from carnet.wire.crypto import delegation as tokens

HOLDS_SECONDS: Final = 900  # as long as the tokens of the SDKs


class Delegating:
    """Derives tokens for calls to other organisations."""

    def __init__(self, signing: Signing, *, sender: str, clock: Clock, ids: Ids) -> None:
        """`sender` is the identity that we sign for."""
        self._signing = signing
        self._sender = sender
        self._clock = clock
        self._ids = ids

    def derive(
        self, parent: Delegation, carnet: Carnet | None, skill: str, *, recipient: str, ours: bool
    ) -> str:
        """The token for one request.

        Args:
            parent: What the call that we make it for was made under.
            carnet: The document of the callee.
            skill: What is asked for.
            recipient: The identity of the agent that is asked.
            ours: Whether it reads our own type; else it gets one in the form of the SDKs.
        """
        if not parent.covers(skill):
            raise DelegationExceeded(reason="the skill is not in its scope")
        hops = parent.hops - 1
        if carnet is not None:
            hops = min(hops, carnet.bound(carnet.depth) - carnet.depth + 1)
        if hops < 1:
            raise DelegationExceeded
        signer = self._signing.signer()
        is_linked = ours and (parent.subject == self._sender or may_go_on(self._sender, parent))
        derived = Delegation(
            issuer=self._sender,
            subject=self._sender,
            audience=recipient if ours else None,
            scope=parent.scope,
            hops=hops,
            issued=self._clock.wall_us() // SECOND_US,
            expires=self._end(parent),
            token_id=self._ids.uuid() if ours or parent.once else None,
            once=parent.once,
            budget=narrower(parent.budget, None if carnet is None else carnet.budget),
            actors=() if is_linked else self._acted(parent),
            parent=parent if is_linked else None,
            is_ours=ours,
            keyid=signer.kid,
        )
        return tokens.write(derived, sign=signer.sign)

    def _end(self, parent: Delegation) -> int:
        now = self._clock.wall_us() // SECOND_US
        if parent.expires <= now:
            raise DelegationInvalid(reason="it has expired", link=len(parent.chain()))
        return min(parent.expires, now + HOLDS_SECONDS)

    def _acted(self, parent: Delegation) -> tuple[str, ...]:
        """Who acted before us, the latest first."""
        subjects = (link.subject for link in reversed(parent.chain()))
        names = dict.fromkeys((*subjects, *parent.actors))
        names.pop(self._sender, None)
        return tuple(names)[: MOST_LINKS - 1]
