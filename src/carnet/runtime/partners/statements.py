"""A partner's statement, asked for and verified.

Law 1. It counts if it is signed with a key of the partner, is for us, in our currency, and of the
       time that was asked for; anything else is `StatementInvalid`.
Law 2. A partner that tells of a long time in pieces is asked for the next one, so many times.
"""

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from carnet.core.money.statement import Statement, StatementLine
from carnet.core.people.address import AGENT
from carnet.core.people.identity import Secret
from carnet.errors import (
    CarnetError,
    InvalidJson,
    KeyRevoked,
    KeyUnknown,
    PeerRefused,
    ProviderUnavailable,
    StatementInvalid,
)
from carnet.ports.trust.keys import KeyRing, NotLearned
from carnet.ports.trust.trust import Peer
from carnet.ports.world.clock import Clock
from carnet.ports.world.http_client import Bounds, HttpClient, Outbound
from carnet.runtime.peers.signing import Signing
from carnet.wire import travel
from carnet.wire.crypto import ed25519
from carnet.wire.dialects.refusal import unexplained
from carnet.wire.grammar import json

PATH: Final = "/ledger/statement"
MOST_BYTES: Final = 8 * 1024 * 1024
MOST_PIECES: Final = 500
CALLS_AT_A_TIME: Final = 1000  # that are asked about by their names
SECONDS: Final = 60.0

_JSON: Final = "application/json"
_OK: Final = 200


class PartnerStatements:
    """Asks partners for statements."""

    def __init__(
        self, http: HttpClient, signing: Signing, keys: KeyRing, clock: Clock, *, currency: str
    ) -> None:
        """`keys` are those of partners."""
        self._http = http
        self._signing = signing
        self._keys = keys
        self._clock = clock
        self._currency = currency

    async def ask(
        self, peer: Peer, since: int, until: int, calls: Sequence[tuple[str, str]]
    ) -> tuple[Statement, list[str]]:
        """What a partner has of a time and of these calls, and the signed texts that say it."""
        served: list[StatementLine] = []
        made: list[StatementLine] = []
        texts: list[str] = []
        begun, left = since, list(calls)
        for _ in range(MOST_PIECES):
            some, left = left[:CALLS_AT_A_TIME], left[CALLS_AT_A_TIME:]
            text = await self._fetch(peer, begun, until, some)
            piece = await self.verified(text, peer.domain)
            if piece.since != begun or not begun < piece.until <= until:
                raise StatementInvalid(reason="it is of another time than was asked for")
            texts.append(text)
            served += piece.served
            made += piece.made
            if piece.until < until:
                begun = piece.until
            elif not left:
                whole = replace(piece, since=since, served=tuple(served), made=tuple(made))
                return whole, texts
            else:  # the rest of the calls, of a time that is told already
                begun = until - 1
                served = [line for line in served if line.at < begun]
        raise StatementInvalid(reason="it has more pieces than are read; compare a shorter time")

    async def verified(self, text: str, domain: str) -> Statement:
        """What a text says, if it is a statement of that partner for us."""
        found = travel.read_statement(text)
        statement = found.statement
        if statement.issuer != domain or statement.audience != self._signing.domain:
            raise StatementInvalid(reason="it is of another organisation, or for another")
        if statement.currency != self._currency:
            raise StatementInvalid(reason="it is in another currency")
        key = await self._key(domain, found.keyid)
        if not ed25519.holds(key, found.signed, found.signature):
            raise StatementInvalid(reason="its signature does not hold")
        return statement

    async def _key(self, domain: str, keyid: str) -> bytes:
        sender, now = AGENT + domain, self._clock.wall_us()
        try:
            try:
                return self._keys.find(sender, keyid, now)
            except (NotLearned, KeyUnknown):
                await self._keys.need(sender)
            return self._keys.find(sender, keyid, now)
        except (NotLearned, KeyUnknown, KeyRevoked):
            raise StatementInvalid(reason="it is signed with a key that is not theirs") from None

    async def _fetch(
        self, peer: Peer, since: int, until: int, calls: Sequence[tuple[str, str]]
    ) -> str:
        question = {
            "from": self._signing.domain,
            "since": since,
            "until": until,
            "calls": [list(each) for each in calls],
        }
        token = peer.token
        outbound = Outbound(
            url=f"{peer.url.rstrip('/')}{PATH}",
            body=json.write(question),
            headers={"content-type": _JSON, "accept": _JSON},
            secrets={} if token is None else {"authorization": Secret(f"Bearer {token.reveal()}")},
            bounds=Bounds(first_byte_seconds=SECONDS, total_seconds=SECONDS, max_bytes=MOST_BYTES),
        )
        if token is None:
            outbound = self._signing.sign_whole(outbound)
        async with self._http.send(outbound) as answer:
            body = await answer.read()
            if answer.status != _OK:
                raise _refused(answer.status)
        return _text(body)


def _refused(status: int) -> CarnetError:
    error = unexplained(status, None)
    if isinstance(error, PeerRefused | ProviderUnavailable):
        error.facts["peer_status"] = status
    return error


def _text(body: bytes) -> str:
    try:
        page: dict[str, Any] = json.read_object(body)
    except InvalidJson:
        page = {}
    text = page.get("statement")
    if not isinstance(text, str):
        raise StatementInvalid(reason="the answer holds none")
    return text
