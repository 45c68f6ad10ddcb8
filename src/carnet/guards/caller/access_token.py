"""Whose access token is it, and what does its issuer grant?

Law 1. A token is taken of issuers that the operator has configured, and of nobody else: what a
       token says of its issuer chooses among those, and leads nowhere.
Law 2. What it permits is what the issuer's scopes were mapped to: never more than a right of ours.
       Scopes of OAuth federation bind beside that: to send is not to stream, nor to be called back.
Law 3. Its subject pays up to what its issuer may owe, which all subjects of that issuer share.
"""

from collections.abc import Awaitable
from typing import Protocol

from carnet.core.people.grant import AccessToken, Grant
from carnet.core.people.identity import Actor, Caller
from carnet.core.trust.federation import PUSH_CONFIG, SEND, STREAM, lacks
from carnet.errors import PermissionMissing, TokenInvalid
from carnet.guards.candidate import Candidate


class Grants(Protocol):
    """Verifies access tokens."""

    async def find(self, shown: AccessToken, agent: str, now: int, /) -> Grant:
        """What a token grants at an agent; raises TokenInvalid or CredentialInvalid."""


class Granted:
    """Refuses a claim whose access token nobody of ours has issued."""

    def __init__(self, grants: Grants) -> None:
        """`grants` knows the issuers."""
        self._grants = grants

    def __call__(self, candidate: Candidate, /) -> Awaitable[None] | None:
        """Prove the caller."""
        shown = candidate.claim.access
        if shown is None:
            raise TokenInvalid
        return self._judge(candidate, shown)

    async def _judge(self, candidate: Candidate, shown: AccessToken) -> None:
        claim = candidate.claim
        candidate.grant = await self._grants.find(shown, claim.agent, candidate.now)
        candidate.caller = caller_of(candidate.grant)
        needed = [STREAM if claim.ask.stream else SEND]
        needed += [] if claim.callback is None else [PUSH_CONFIG]
        for scope in needed:
            if lacks(candidate.caller.scopes, scope):
                raise PermissionMissing(permission=scope)


def caller_of(grant: Grant) -> Caller:
    """The caller that an access token stands for."""
    host = grant.host
    actor = Actor(name=f"oauth:{host}#{grant.subject}", how="a2a-oauth", domain=host)
    return Caller(actor=actor, scopes=grant.scopes, client=grant.client, task=grant.task)
