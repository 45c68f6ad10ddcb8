"""What the bearer of a request is: a token of ours, a JWT of its sender, or an access token.

Law 1. Who it is of is told by its shape and, of a JWT, by the issuer that it names. That chooses
       who judges it, and decides nothing.
Law 2. A token of ours is left where it is. A JWT of a configured issuer is an access token; any
       other JWT is a credential that its sender has signed. What has no such shape is an access
       token where an issuer is asked about those.
"""

import re
from collections.abc import Collection
from typing import Final

from msgspec.structs import replace

from carnet.core.call import Claim
from carnet.core.people.grant import AccessToken
from carnet.core.people.identity import Secret
from carnet.core.people.proof import Proof
from carnet.guards.caller.authentication import bearer
from carnet.wire.identity.credential import is_token, peek_issuer, read_credential

OURS: Final = re.compile(r"ck_[A-Za-z0-9_-]*", re.ASCII)  # how our own tokens begin


class Bearers:
    """Tells credentials apart."""

    def __init__(self, issuers: Collection[str] = (), *, asks: bool = False) -> None:
        """`issuers` of access tokens are configured; with `asks` one is asked about any token."""
        self._issuers = frozenset(issuers)
        self._asks = asks

    def read(self, authorization: Secret | None) -> Proof | AccessToken | None:
        """What is judged in the place of a token of ours; None where it is one, or nothing."""
        credential = bearer(authorization)
        if credential is None:
            return None
        text = credential.reveal()
        if is_token(text):
            issuer = peek_issuer(text) if self._issuers else None
            if issuer in self._issuers:
                return AccessToken(token=credential, issuer=issuer)
            return read_credential(text)
        if self._asks and OURS.fullmatch(text) is None:
            return AccessToken(token=credential)
        return None

    def is_foreign(self, authorization: Secret) -> bool:
        """Whether others have issued it, as far as its shape tells."""
        credential = bearer(authorization)
        if credential is None:
            return False
        text = credential.reveal()
        return is_token(text) or (self._asks and OURS.fullmatch(text) is None)

    def shown(self, claim: Claim) -> Claim:
        """The claim with what it is judged by."""
        if claim.proof is not None or claim.authorization is None:
            return claim
        if not self._asks and "." not in claim.authorization.reveal():  # no JWT: nearly every one
            return claim
        found = self.read(claim.authorization)
        if isinstance(found, Proof):
            return replace(claim, proof=found, authorization=None)
        if found is not None:
            return replace(claim, access=found, authorization=None)
        return claim


NO_OTHERS: Final = Bearers()
