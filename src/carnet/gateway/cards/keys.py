"""GET /.well-known/jwks.json: the keys of this gateway for whoever verifies a card with standards.

Law. It shows the keys that are honoured, and no others: a revoked key is not there.
"""

from typing import Final

from carnet.http.exchange import Exchange, Row
from carnet.ports.trust.keys import OwnKeys
from carnet.ports.world.clock import Clock
from carnet.wire.crypto.jwks import write_keys

JWKS_PATH: Final = "/.well-known/jwks.json"
FRESH_SECONDS: Final = 60  # how long others may keep it, as carnet.json


class KeySetPage:
    """Serves the set."""

    def __init__(self, keys: OwnKeys, clock: Clock) -> None:
        self._keys = keys
        self._clock = clock

    async def __call__(self, exchange: Exchange) -> None:
        """Answer with the keys."""
        shown = self._keys.published(self._clock.wall_us())
        body = write_keys({key.kid: key.public for key in shown if key.state != "revoked"})
        headers = [
            (b"content-type", b"application/json"),
            (b"cache-control", b"public, max-age=%d" % FRESH_SECONDS),
        ]
        await exchange.reply(200, headers, body)


ROUTES = (
    Row(
        method="GET",
        path=JWKS_PATH,
        endpoint=KeySetPage.__call__,
        auth="open",
        summary="The keys of this gateway, as a JSON Web Key Set",
        answer="Page",
    ),
)
