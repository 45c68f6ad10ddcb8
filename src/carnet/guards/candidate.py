"""A claim on its way through the guards, and what they have proved of it so far.

Internal and mutable: each guard writes what it proved, the next one reads it. What leaves the
gate is an immutable Call.
"""

from typing import TypeVar

from carnet.core.call import Claim
from carnet.core.carnet import TOP, Position
from carnet.core.identity import Caller, Payer
from carnet.core.secret import Secret
from carnet.errors import Internal
from carnet.ports.agent import Target
from carnet.ports.trust import Token

T = TypeVar("T")


class Candidate:
    """One claim under examination."""

    __slots__ = ("_caller", "_payer", "_target", "_token", "claim", "credential", "now", "position")

    def __init__(self, claim: Claim, now: int) -> None:
        """Start with the claim and the time it is judged at (microseconds since the epoch)."""
        self.claim = claim
        self.now = now
        self.position: Position = TOP
        self.credential: Secret | None = None
        self._token: Token | None = None
        self._caller: Caller | None = None
        self._target: Target | None = None
        self._payer: Payer | None = None

    @property
    def token(self) -> Token:
        """The token that authenticated the caller."""
        return _proved(self._token)

    @token.setter
    def token(self, token: Token) -> None:
        self._token = token

    @property
    def caller(self) -> Caller:
        """Who calls, with which rights."""
        return _proved(self._caller)

    @caller.setter
    def caller(self, caller: Caller) -> None:
        self._caller = caller

    @property
    def target(self) -> Target:
        """Whom the call is for."""
        return _proved(self._target)

    @target.setter
    def target(self, target: Target) -> None:
        self._target = target

    @property
    def payer(self) -> Payer:
        """Who pays."""
        return _proved(self._payer)

    @payer.setter
    def payer(self, payer: Payer) -> None:
        self._payer = payer


def _proved(value: T | None) -> T:
    if value is None:
        raise Internal("a guard asked for what no guard before it has proved")
    return value
