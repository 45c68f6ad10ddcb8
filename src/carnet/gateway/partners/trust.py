"""Our keys and those of others, over HTTP: listed, rotated, revoked.

Law 1. A private key is on no page, and neither is a token of ours for a partner.
Law 2. A key is replaced with an overlap: others go by the old one until they have seen the new one.
"""

from collections.abc import Sequence
from typing import Any, Final

from carnet.core.money.amount import format_amount
from carnet.core.people.identity import Caller
from carnet.errors import InvalidRequest, UsageInvalid
from carnet.http.exchange import Exchange, Row, check_json_body, reply_json
from carnet.ports.trust.keys import OwnKey, OwnKeys, PinnedKey, PinnedKeys
from carnet.ports.trust.trust import Peer, Peers
from carnet.ports.world.clock import Clock
from carnet.stores.trust.own_keys import is_over
from carnet.wire.crypto.ed25519 import write_public_key
from carnet.wire.grammar import json
from carnet.wire.grammar.times import when

Page = dict[str, Any]

MANAGES: Final = "admin:keys"
MOST_BYTES: Final = 4096
OVERLAP_SECONDS: Final = 24 * 3600  # for which the old key is honoured: longer than cards are kept
LEAD_SECONDS: Final = 600  # for which the new one is shown before it signs
MOST_SECONDS: Final = 366 * 24 * 3600
SPANS: Final = {"overlap": OVERLAP_SECONDS, "lead": LEAD_SECONDS}


class TrustPages:
    """Whom we believe, and what others believe us by."""

    def __init__(self, keys: OwnKeys, pinned: PinnedKeys, peers: Peers, clock: Clock) -> None:
        self._keys = keys
        self._pinned = pinned
        self._peers = peers
        self._clock = clock

    async def list(self, exchange: Exchange, caller: Caller) -> None:
        """GET /keys: ours, those that were pinned, and the organisations that we know."""
        del caller  # the router has checked that it may
        now = self._clock.wall_us()
        page = {
            "keys": [own_key_page(key, now) for key in await self._keys.list()],
            "pinned": [pinned_key_page(key) for key in await self._pinned.list()],
            "peers": [peer_page(peer) for peer in await self._peers.list()],
        }
        await reply_json(exchange, page)

    async def rotate(self, exchange: Exchange, caller: Caller) -> None:
        """POST /keys/rotate: show another key, and sign with it after a while."""
        del caller
        spans = _spans(exchange, await exchange.read(MOST_BYTES))
        now = self._clock.wall_us()
        old = [key.kid for key in await self._keys.list() if key.state == "active"]
        try:
            new = await self._keys.rotate(
                now, overlap_seconds=spans["overlap"], lead_seconds=spans["lead"]
            )
        except UsageInvalid as error:  # another key is shown already, or somebody rotates too
            raise InvalidRequest("lead", f"cannot be had now: {error.facts['reason']}") from None
        replaced = [key for key in await self._keys.list() if key.kid in old]
        before = own_key_page(replaced[0], now) if replaced else None
        await reply_json(exchange, {**own_key_page(new, now), "replaces": before})

    async def revoke(self, exchange: Exchange, caller: Caller, kid: str) -> None:
        """POST /keys/{kid}/revoke: at once, everywhere."""
        del caller
        if not await self._keys.revoke(kid, self._clock.wall_us()):
            raise InvalidRequest("kid", "names no key of ours that is still honoured")
        page = {"kid": kid, "revoked": True, "active": self._keys.signer().kid}
        await reply_json(exchange, page)


def _spans(exchange: Exchange, body: bytes) -> dict[str, int]:
    """How long the old key is honoured, and the new one shown before it signs, in seconds."""
    if not body:
        return SPANS
    check_json_body(exchange.headers)
    spans = dict(SPANS)
    for name, value in json.read_object(body).items():
        if name not in SPANS:
            raise InvalidRequest("other", f"is none of {', '.join(SPANS)}")
        if type(value) is not int or not 0 <= value <= MOST_SECONDS:
            raise InvalidRequest(name, f"must be 0 to {MOST_SECONDS} seconds")
        spans[name] = value
    return spans


def own_key_page(key: OwnKey, now: int) -> Page:
    """One of our keys as it is listed."""
    return {
        "kid": key.kid,
        "state": "over" if is_over(key, now) else key.state,
        "key": write_public_key(key.public),
        "created": when(key.created),
        "signs_from": when(key.signs_from),
        "not_after": when(key.not_after),
    }


def pinned_key_page(key: PinnedKey) -> Page:
    """A key of somebody else as it is listed."""
    return {
        "sender": key.sender,
        "kid": key.kid,
        "key": write_public_key(key.public),
        "state": "live" if key.revoked is None else "revoked",
        "added": None if key.from_file else when(key.added),
        "from_file": key.from_file,
    }


def peer_page(peer: Peer) -> Page:
    """A peer as it is listed."""
    return {
        "domain": peer.domain,
        "url": peer.url,
        "dialect": peer.dialect,
        "auth": peer.auth,
        "may_forward_authorization": peer.may_forward,
        "has_token": peer.token is not None,
        "credit": format_amount(peer.credit),
        "max_cost": format_amount(peer.most_cost),
        "certificate": peer.certificate,
        "from_file": peer.from_file,
    }


_SECONDS: Final = {"type": "integer", "minimum": 0, "maximum": MOST_SECONDS}
SCHEMAS: Final[dict[str, Any]] = {
    "NewKey": {
        "type": "object",
        "additionalProperties": False,
        "properties": {name: {**_SECONDS, "default": usual} for name, usual in SPANS.items()},
    },
}
ROUTES: Sequence[Row] = (
    Row(
        method="GET",
        path="/keys",
        endpoint=TrustPages.list,
        permission=MANAGES,
        summary="Our keys, the pinned ones of others, and the organisations that we know",
        answer="Page",
    ),
    Row(
        method="POST",
        path="/keys/rotate",
        endpoint=TrustPages.rotate,
        permission=MANAGES,
        summary="Show another key, and sign with it after a while",
        body="NewKey",
        answer="Page",
    ),
    Row(
        method="POST",
        path="/keys/{kid}/revoke",
        endpoint=TrustPages.revoke,
        permission=MANAGES,
        summary="Revoke a key of ours at once",
        answer="Page",
    ),
)
