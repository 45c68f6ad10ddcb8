"""Access tokens of whoever has issued them: ourselves, or a configured issuer."""

from carnet.core.people.grant import AccessToken, Grant
from carnet.errors import TokenInvalid
from carnet.runtime.identity.exchange import ExchangedTokens
from carnet.runtime.identity.issuers import Issuers


class AllGrants:
    """Knows them by whom they name."""

    def __init__(self, url: str, own: ExchangedTokens | None, issuers: Issuers | None) -> None:
        """`url` is what tokens of ours name as their issuer."""
        self._url = url
        self._own = own
        self._issuers = issuers

    async def find(self, shown: AccessToken, agent: str, now: int, /) -> Grant:
        """What a token grants at an agent; raises TokenInvalid or CredentialInvalid."""
        if self._own is not None and shown.issuer == self._url:
            return await self._own.find(shown, agent, now)
        if self._issuers is None:
            raise TokenInvalid
        return await self._issuers.find(shown, agent, now)
