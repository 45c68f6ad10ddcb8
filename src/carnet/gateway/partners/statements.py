"""What partners are told of the calls between us, and what comes of what they tell.

`POST /ledger/statement` is for partners, `POST /ledger/matches` for the operator.

Law 1. A partner is told of what we have served for it, and of those calls of which it says that it
       has served them for us whether we have made them. It is told of no other's.
Law 2. It proves itself by the signature of its gateway, or by a token that it was given as a peer.
Law 3. One statement of a partner is made at a time, and has a bound; what is beyond it begins where
       the statement says that it ends.
Law 4. What a partner says is posted where it is signed by its key, for a call of ours that nobody
       had told the cost of, and for no other.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from carnet.core.money.amount import format_amount
from carnet.core.money.statement import Statement
from carnet.core.people.address import AGENT, check_domain
from carnet.core.people.identity import Caller
from carnet.core.people.proof import SECOND_US
from carnet.errors import (
    AddressInvalid,
    InvalidRequest,
    PeerUnknown,
    SignatureInvalid,
)
from carnet.gateway.endpoint import request_of
from carnet.gateway.partners.askers import Walks
from carnet.guards.caller.owner import Owners, check_time
from carnet.http.exchange import Access, Exchange, Row, read_authorization, reply_json
from carnet.ports.calls.statements import StatementLines
from carnet.ports.calls.turns import Turns
from carnet.ports.trust.keys import OwnKeys
from carnet.ports.trust.trust import Peers
from carnet.ports.world.clock import Clock
from carnet.ports.world.records import READER, STRANGER
from carnet.wire import travel
from carnet.wire.dialects.samvad.tasks import read_asking
from carnet.wire.grammar import json
from carnet.wire.stamps.stamp import Stamps

MOST_BYTES: Final = 512 * 1024  # of what is asked
MOST_STATEMENT_BYTES: Final = 6 * 1024 * 1024  # of what a partner has signed
MOST_CALLS: Final = 1000  # that are asked about by their names
MOST_WORD: Final = 512  # characters of a name
AT_A_TIME: Final = 1  # statements of one partner


class StatementEndpoint:
    """Makes statements."""

    def __init__(
        self,
        lines: StatementLines,
        access: Access,
        owners: Owners,
        *,
        peers: Peers,
        keys: OwnKeys,
        stamps: Stamps,
        domain: str,
        currency: str,
    ) -> None:
        """`access` knows tokens, `owners` the keys of gateways; `keys` and `domain` are ours."""
        self._lines = lines
        self._access = access
        self._owners = owners
        self._peers = peers
        self._keys = keys
        self._stamps = stamps
        self._domain = domain
        self._currency = currency
        self._making = Walks(AT_A_TIME)

    @property
    def _clock(self) -> Clock:
        return self._access.clock

    async def make(self, exchange: Exchange) -> None:
        """POST /ledger/statement."""
        headers = exchange.headers
        if read_authorization(headers) is None and headers.get("signature") is not None:
            READER.set(STRANGER)
            body = await exchange.read(MOST_BYTES)
            asked = json.read_object(body)
            peer = await self._signer(exchange, body, asked)
        else:
            caller = await self._access.check(exchange, None)
            peer = caller.actor.domain or ""
            if self._peers.find(peer) is None:  # a token of nobody's gateway
                raise PeerUnknown
            body = await exchange.read(MOST_BYTES)
            asked = json.read_object(body)
        READER.set(f"peer:{peer}")
        with self._making.one(peer):
            statement = await self._made(peer, asked)
        signer = self._keys.signer()
        text = travel.write_statement(
            statement,
            issued=self._clock.wall_us() // SECOND_US,
            kid=signer.kid,
            sign=signer.sign,
        )
        await reply_json(exchange, {"statement": text})

    async def _made(self, peer: str, asked: dict[str, Any]) -> Statement:
        since, until, calls = _moment(asked, "since"), _moment(asked, "until"), _calls(asked)
        if since >= until:
            raise InvalidRequest("until", "must be later than since")
        served, reached = await self._lines.served(peer, since, until, limit=travel.MOST_LINES)
        made = await self._lines.made_of(peer, calls, domain=self._domain)
        return Statement(
            issuer=self._domain,
            audience=peer,
            since=since,
            until=reached,
            currency=self._currency,
            served=tuple(served),
            made=tuple(made),
        )

    async def _signer(self, exchange: Exchange, body: bytes, asked: dict[str, Any]) -> str:
        """The partner that signs."""
        try:
            name = check_domain(str(asked.get("from")))
        except AddressInvalid:
            raise InvalidRequest("from", "must be the domain of who asks") from None
        asking = read_asking(
            request_of(exchange),
            body,
            short_path=exchange.path.decode("latin-1"),
            stamps=self._stamps,
        )
        now = self._clock.wall_us()
        check_time(asking, now)
        # Whether we list it is told to nobody who has not its key.
        if self._peers.find(name) is None or not await self._owners.is_signed_by(
            AGENT + name, asking, now
        ):
            raise SignatureInvalid
        return name


Verify = Callable[[str, str], Awaitable[Statement]]  # a text of a partner, which it must be of


class MatchEndpoint:
    """Posts what partners prove of calls that nobody had told us the cost of."""

    def __init__(
        self,
        lines: StatementLines,
        turns: Turns,
        verify: Verify,
        *,
        peers: Peers,
        clock: Clock,
    ) -> None:
        self._lines = lines
        self._turns = turns
        self._verify = verify
        self._peers = peers
        self._clock = clock

    async def match(self, exchange: Exchange, caller: Caller) -> None:
        """POST /ledger/matches."""
        del caller  # the router has checked what it may do
        asked = json.read_object(await exchange.read(MOST_STATEMENT_BYTES))
        name, text = asked.get("peer"), asked.get("statement")
        if not isinstance(name, str) or not isinstance(text, str):
            raise InvalidRequest("statement", "must be what a partner has signed, and 'peer' who")
        peer = self._peers.find(name)
        if peer is None:
            raise PeerUnknown
        signed, wanted = await self._verify(text, peer.domain), set(_calls(asked))
        settled = []
        for line in signed.served:
            if line.key not in wanted:
                continue
            owed = await self._lines.match(
                self._turns, peer.domain, line, most=peer.most_cost, now=self._clock.wall_us()
            )
            if owed is not None:
                settled.append({"run": line.run, "turn": line.turn, "owed": format_amount(owed)})
        await reply_json(exchange, {"settled": settled})


def _moment(asked: dict[str, Any], name: str) -> int:
    value = asked.get(name)
    if type(value) is not int or not 0 <= value <= json.MAX_INTEGER:
        raise InvalidRequest(name, "must be a moment, in microseconds since the epoch")
    return value


def _calls(asked: dict[str, Any]) -> list[tuple[str, str]]:
    """The calls that are asked about, as run and turn."""
    listed = asked.get("calls", [])
    if not isinstance(listed, list) or len(listed) > MOST_CALLS:
        raise InvalidRequest("calls", f"must be a list of at most {MOST_CALLS}")
    found = []
    for each in listed:
        words = each if isinstance(each, list) else []
        if len(words) != 2 or not all(_is_word(word) for word in words):  # noqa: PLR2004
            raise InvalidRequest("calls", "must hold a run and a turn each")
        found.append((words[0], words[1]))
    return found


def _is_word(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MOST_WORD and "\0" not in value


# What is asked, as /openapi.json shows it.
SCHEMAS: Final[dict[str, Any]] = {
    "StatementQuestion": {
        "type": "object",
        "required": ["since", "until"],
        "properties": {
            "from": {"type": "string", "description": "The domain of who signs"},
            "since": {"type": "integer", "description": "Microseconds since the epoch"},
            "until": {"type": "integer"},
            "calls": {
                "type": "array",
                "maxItems": MOST_CALLS,
                "description": "Run and turn of calls that the other side has served for us",
                "items": {"type": "array", "items": {"type": "string"}},
            },
        },
    },
    "Match": {
        "type": "object",
        "required": ["peer", "statement", "calls"],
        "properties": {
            "peer": {"type": "string"},
            "statement": {"type": "string", "description": "What the partner has signed"},
            "calls": {
                "type": "array",
                "maxItems": MOST_CALLS,
                "description": "Run and turn of those calls of ours that are to be settled",
                "items": {"type": "array", "items": {"type": "string"}},
            },
        },
    },
}

MATCHES: Final = (
    Row(
        method="POST",
        path="/ledger/matches",
        endpoint=MatchEndpoint.match,
        permission="admin:ledger",
        summary="Post what a partner proves of calls that nobody had told the cost of",
        body="Match",
        answer="Page",
    ),
)

ROUTES: Final = (
    Row(
        method="POST",
        path="/ledger/statement",
        endpoint=StatementEndpoint.make,
        auth="gate",
        summary="For a partner: the calls between us, signed",
        body="StatementQuestion",
        answer="Page",
    ),
)
