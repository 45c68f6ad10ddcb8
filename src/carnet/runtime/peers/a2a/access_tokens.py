"""Access tokens that we obtain for calls of ours, by client credentials (RFC 6749, RFC 8707).

Law 1. One token for each agent that is called, for that resource alone; it is asked for once for
       all who wait, and again before it ends.
Law 2. Where it is asked for stands in the configuration, and so does, as a reference, our secret. A
       token is in memory and nowhere else.
Law 3. A callee that refuses a token has it asked for anew the next time.
"""

import asyncio
from base64 import b64encode
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlencode

from msgspec import Struct

from carnet.core.people.identity import Secret
from carnet.errors import CarnetError, InvalidJson, Overloaded, PeerCredentialMissing
from carnet.ports.world.clock import Clock
from carnet.ports.world.http_client import HttpClient, Outbound
from carnet.runtime.peers.cards import BOUNDS
from carnet.wire.grammar import json

EARLY_SECONDS: Final = 30.0  # before its end a token is not used any more
USUAL_SECONDS: Final = 300.0  # that one holds which does not say
MOST_SECONDS: Final = 3600.0
MOST_CHARACTERS: Final = 8192
_OK: Final = 200


class OAuthClient(Struct, frozen=True, kw_only=True):
    """How tokens for one agent are obtained."""

    token_url: str
    client_id: str
    client_secret: Secret
    scope: str | None = None
    resource: str | None = None


class AccessTokens:
    """The token for one agent."""

    def __init__(self, client: OAuthClient, http: HttpClient, clock: Clock) -> None:
        self._client = client
        self._http = http
        self._clock = clock
        self._token: Secret | None = None
        self._until = 0.0
        self._asking = asyncio.Lock()

    async def token(self) -> Secret:
        """A token that holds; raises PeerCredentialMissing if none can be had."""
        if self._token is not None and self._clock.monotonic() < self._until:
            return self._token
        async with self._asking:
            if self._token is None or self._clock.monotonic() >= self._until:
                await self._obtain()
            assert self._token is not None  # noqa: S101  `_obtain` has raised otherwise
            return self._token

    def forget(self) -> None:
        """Ask anew the next time."""
        self._token = None

    async def _obtain(self) -> None:
        client = self._client
        form = {"grant_type": "client_credentials"}
        form |= {} if client.scope is None else {"scope": client.scope}
        form |= {} if client.resource is None else {"resource": client.resource}
        request = form_request(client.token_url, form, client.client_id, client.client_secret)
        try:
            answer = await send_form(self._http, request)
        except CarnetError as error:
            raise PeerCredentialMissing(str(error), schemes="an access token of OAuth") from None
        self._token, seconds = bearer_of(answer)
        self._until = self._clock.monotonic() + seconds


def bearer_of(answer: Mapping[str, object]) -> tuple[Secret, float]:
    """The token that an endpoint has given, and for how many seconds it is used."""
    text, kind = answer.get("access_token"), str(answer.get("token_type", "")).lower()
    is_text = isinstance(text, str) and 0 < len(text) <= MOST_CHARACTERS and text.isascii()
    if not is_text or not str(text).isprintable() or " " in str(text) or kind != "bearer":
        reason = "its issuer answered without a bearer token"
        raise PeerCredentialMissing(reason, schemes="an access token of OAuth")
    lasts = answer.get("expires_in")
    seconds = float(lasts) if type(lasts) is int and lasts > 0 else USUAL_SECONDS
    return Secret(str(text)), max(min(seconds, MOST_SECONDS) - EARLY_SECONDS, 1.0)


def form_request(
    url: str, form: Mapping[str, str], client_id: str | None, client_secret: Secret | None
) -> Outbound:
    """A form for an endpoint of OAuth, sent as a client that is known there by its secret."""
    secrets: dict[str, Secret] = {}
    if client_id is not None and client_secret is not None:  # RFC 6749, section 2.3.1
        pair = f"{quote(client_id, safe='')}:{quote(client_secret.reveal(), safe='')}"
        secrets["authorization"] = Secret(f"Basic {b64encode(pair.encode()).decode()}")
    return Outbound(
        method="POST",
        url=url,
        body=urlencode(form).encode(),
        headers={
            "accept": "application/json",
            "content-type": "application/x-www-form-urlencoded",
        },
        secrets=secrets,
        kind="named",
        bounds=BOUNDS,
    )


async def send_form(http: HttpClient, request: Outbound) -> dict[str, object]:
    """The object that a form is answered with."""
    async with http.send(request) as answer:
        if answer.status != _OK:
            raise Overloaded(f"answered with {answer.status}")
        body = await answer.read()
    try:
        return json.read_object(body)
    except InvalidJson:
        raise Overloaded("answered with something that is no object") from None
