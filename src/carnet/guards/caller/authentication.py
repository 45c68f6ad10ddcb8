"""Who is calling?

Law 1. Unknown, revoked and expired tokens are refused alike: there is no oracle.
Law 2. A token that came with malformed chain headers was refused before this guard looked at it,
       so its last use is untouched.
"""

import re
from collections.abc import Callable

from carnet.core.memo import Memo
from carnet.core.people.identity import Actor, Caller, Secret, Token
from carnet.errors import TokenInvalid, TokenMissing
from carnet.guards.candidate import Candidate
from carnet.ports.trust.trust import Peers, Tokens

MOST_REMEMBERED = 4096

_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] ([\x21-\x7e]{1,8192})", re.ASCII)


def bearer(authorization: Secret | None) -> Secret | None:
    """The credential of an Authorization value, or None if it is not a bearer."""
    match = _BEARER.fullmatch(authorization.reveal()) if authorization else None
    return Secret(match[1]) if match else None


def authenticate(authorization: Secret | None, tokens: Tokens, now: int) -> Token:
    """The live token that an Authorization value names."""
    if authorization is None:
        raise TokenMissing
    credential = bearer(authorization)
    token = tokens.find(credential) if credential else None
    if token is None or not token.is_live(now):
        raise TokenInvalid
    return token


def caller_of(token: Token, *, peer_may_forward: bool = False) -> Caller:
    """The caller that a token stands for."""
    actor = Actor(
        name=f"peer:{token.peer}" if token.peer else f"token:{token.account}",
        how="certificate" if token.is_certificate else "token",
        domain=token.peer,
        may_forward=token.may_forward or peer_may_forward,
    )
    return Caller(
        actor=actor,
        scopes=token.scopes,
        ceiling=token.ceiling,
        token=token.number or None,
        person=token.person,
        session=token.session,
        agent=token.agent,
        client=token.client,
        workspace=token.workspace,
        budgets=token.budgets,
        is_system=token.is_of_command,
    )


class Listed:
    """Whether a peer is listed as an inter-agent caller."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers

    def __call__(self, domain: str, /) -> bool:
        peer = self._peers.find(domain)
        return peer is not None and peer.may_forward


class KnownCaller:
    """Refuses a claim without a live token."""

    def __init__(self, tokens: Tokens, peer_may_forward: Callable[[str], bool]) -> None:
        """`peer_may_forward` tells whether a peer is listed as an inter-agent caller."""
        self._tokens = tokens
        self._peer_may_forward = peer_may_forward
        self._callers: Memo[int, tuple[Token, Caller]] = Memo(MOST_REMEMBERED)

    def __call__(self, candidate: Candidate, /) -> None:
        """Prove the caller."""
        claim = candidate.claim
        token = authenticate(claim.authorization, self._tokens, candidate.now)
        candidate.token = candidate.shown = token
        if token.peer is not None:
            listed = self._peer_may_forward(token.peer)
            caller = caller_of(token, peer_may_forward=listed)
        else:
            caller = self._remembered(token)
        candidate.caller = caller

    def _remembered(self, token: Token) -> Caller:
        """The caller of a token that nothing but the token decides about."""
        if token.n in self._callers:
            known, caller = self._callers[token.n]
            if known is token:
                return caller
        return self._callers.keep(token.n, (token, caller_of(token)))[1]
