"""GET /.well-known/carnet.json: that this is a Carnet, and which keys it signs with.

Law. Whoever asks is answered, without a token: the page holds nothing but public keys, and what a
call to the default agent costs and is bounded by (R31). It is signed once for as long as the keys
stay the same.
"""

from collections.abc import Sequence
from typing import Final

from carnet.http.exchange import Exchange, Row
from carnet.ports.trust.keys import OwnKey, OwnKeys
from carnet.ports.world.clock import Clock
from carnet.wire import travel
from carnet.wire.dialects.dialect import Terms

FRESH_SECONDS: Final = 60  # how long others may keep the page

_MICROSECONDS: Final = 1_000_000


class WellKnownPage:
    """Serves the page."""

    def __init__(
        self,
        keys: OwnKeys,
        *,
        domain: str,
        clock: Clock,
        dialects: Sequence[str],
        terms: Terms | None = None,
    ) -> None:
        """`domain` is ours, and `keys` are; `dialects` are those that are spoken.

        `terms` are those of the default agent.
        """
        self._terms = terms
        self._keys = keys
        self._domain = domain
        self._clock = clock
        self._dialects = tuple(dialects)
        self._shown: Sequence[OwnKey] = ()
        self._page = b""

    async def __call__(self, exchange: Exchange) -> None:
        """Answer with the page."""
        published = list(self._keys.published(self._clock.wall_us()))[: travel.MOST_KEYS]
        if published != self._shown:
            self._page, self._shown = self._write(published), published
        headers = [
            (b"content-type", b"application/json"),
            (b"cache-control", b"public, max-age=%d" % FRESH_SECONDS),
        ]
        await exchange.reply(200, headers, self._page)

    def _write(self, published: Sequence[OwnKey]) -> bytes:
        signer = self._keys.signer()
        shown = travel.WellKnown(
            domain=self._domain,
            version=max(key.revoked or key.created for key in published) // _MICROSECONDS,
            keys=tuple(
                travel.PublishedKey(
                    kid=key.kid,
                    key=key.public,
                    active=key.state != "revoked",
                    not_after=key.not_after,
                )
                for key in published
            ),
            dialects=self._dialects,
            terms=None if self._terms is None else self._terms.page(),
        )
        return travel.write_well_known(shown, kid=signer.kid, sign=signer.sign)


ROUTES = (
    Row(
        method="GET",
        path="/.well-known/carnet.json",
        endpoint=WellKnownPage.__call__,
        auth="open",
        summary="The keys of this gateway",
        answer="Page",
    ),
)
