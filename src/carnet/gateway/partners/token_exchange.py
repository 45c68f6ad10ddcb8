"""Where connectors exchange the assertions of their users for access tokens (OAuth federation).

    POST /oauth/token                               the exchange (RFC 8693), with private_key_jwt
    GET /.well-known/oauth-authorization-server     what a client is told of it (RFC 8414)

Law 1. Without a rule in `[identity] federation` neither is there.
Law 2. What is answered is kept by nobody, and a refusal repeats nothing that came.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from carnet.core.trust.federation import METADATA_PATH, TOKEN_PATH
from carnet.errors import RouteNotFound
from carnet.gateway.cards.keys import JWKS_PATH
from carnet.http.exchange import Exchange, Row
from carnet.wire.grammar import json
from carnet.wire.identity.token_exchange import MOST_BYTES, ExchangeRefused, write_metadata

FORM: Final = "application/x-www-form-urlencoded"
_FIELDS: Final = ((b"content-type", b"application/json"), (b"cache-control", b"no-store"))

Exchanging = Callable[[bytes], Awaitable[dict[str, Any]]]


class TokenEndpoint:
    """Serves the exchange."""

    def __init__(self, exchanging: Exchanging | None, url: str) -> None:
        """`url` is where others reach this gateway; without `exchanging` there is nothing."""
        self._exchanging = exchanging
        self._url = url

    async def __call__(self, exchange: Exchange) -> None:
        """Give a token, or say why not."""
        if self._exchanging is None:
            raise RouteNotFound
        body = await exchange.read(MOST_BYTES)
        kind = (exchange.headers.get("content-type") or "").partition(";")[0].strip().lower()
        try:
            if kind != FORM:
                raise ExchangeRefused("invalid_request", f"Send a form: {FORM}.")  # noqa: TRY301
            page = await self._exchanging(body)
        except ExchangeRefused as refused:
            await exchange.reply(refused.status, list(_FIELDS), json.write(refused.page()))
        else:
            await exchange.reply(200, list(_FIELDS), json.write(page))

    async def metadata(self, exchange: Exchange) -> None:
        """Tell what there is."""
        if self._exchanging is None:
            raise RouteNotFound
        page = write_metadata(self._url, self._url + TOKEN_PATH, self._url + JWKS_PATH)
        fields = [(b"content-type", b"application/json"), (b"cache-control", b"max-age=60")]
        await exchange.reply(200, fields, json.write(page))


ROUTES = (
    Row(
        method="POST",
        path=TOKEN_PATH,
        endpoint=TokenEndpoint.__call__,
        auth="open",
        summary="Exchange the assertion of a connector for an access token",
        answer="Page",
    ),
    Row(
        method="GET",
        path=METADATA_PATH,
        endpoint=TokenEndpoint.metadata,
        auth="open",
        summary="What is offered to those who exchange tokens",
        answer="Page",
    ),
)
