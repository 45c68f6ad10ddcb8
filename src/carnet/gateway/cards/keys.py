"""The keys of this gateway, for whoever verifies what it signs.

    GET /.well-known/jwks.json           all of them, for cards
    GET /.well-known/agent-key/{kid}     one of them, where the keyid of a request leads (Envoys)
    GET /.well-known/did.json            all of them, by our name did:web:DOMAIN, for credentials

Law. They show the keys that are honoured, and no others: a revoked key is not there.
"""

from typing import Final

from carnet.core.trust.did import did_of
from carnet.errors import RouteNotFound
from carnet.http.exchange import Exchange, Row
from carnet.ports.trust.keys import OwnKeys
from carnet.ports.world.clock import Clock
from carnet.wire.crypto.jwks import write_keys
from carnet.wire.dialects.a2a.extensions.envoys import KEY_PATH, address_of, write_key
from carnet.wire.grammar import json
from carnet.wire.identity import did_document

JWKS_PATH: Final = "/.well-known/jwks.json"
DID_PATH: Final = "/.well-known/did.json"
FRESH_SECONDS: Final = 60  # how long others may keep it, as carnet.json


class KeySetPage:
    """Serves them."""

    def __init__(self, keys: OwnKeys, clock: Clock, domain: str) -> None:
        """`domain` is ours."""
        self._keys = keys
        self._clock = clock
        self._domain = domain

    async def __call__(self, exchange: Exchange) -> None:
        """Answer with the keys."""
        await _show(exchange, write_keys(self._shown()))

    async def named(self, exchange: Exchange, kid: str) -> None:
        """Answer with one of them."""
        public = self._shown().get(kid)
        if public is None:
            raise RouteNotFound
        await _show(exchange, json.write(write_key(address_of(self._domain, kid), public)))

    async def document(self, exchange: Exchange) -> None:
        """Answer with the document of our name."""
        await _show(exchange, did_document.write(did_of(self._domain), self._shown()))

    def _shown(self) -> dict[str, bytes]:
        shown = self._keys.published(self._clock.wall_us())
        return {key.kid: key.public for key in shown if key.state != "revoked"}


async def _show(exchange: Exchange, body: bytes) -> None:
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
    Row(
        method="GET",
        path=DID_PATH,
        endpoint=KeySetPage.document,
        auth="open",
        summary="The keys of this gateway, by its name did:web",
        answer="Page",
    ),
    Row(
        method="GET",
        path=f"{KEY_PATH}/{{kid}}",
        endpoint=KeySetPage.named,
        auth="open",
        summary="One of the keys of this gateway",
        answer="Page",
    ),
)
