"""The proof of a run: the receipts of its calls, and of all that was called below them.

Law 1. A gateway tells of the receipts that it was given for calls which it made for whoever asks:
       out of that one's turns, and what they called in process. It asks the peers that gave them
       for those below, and each has less time than the one before it.
Law 2. Of the turn that a receipt of ours is for, those receipts are told that ours names.
Law 3. A proof is judged where it is asked for: each signature by the key of its issuer, and each
       receipt by those that it names. One whose key is not known here is vouched for by the receipt
       that names it; what nobody has signed for, or can tell of any more, is counted.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.chain.hop import chosen
from carnet.core.chain.turn import Turn
from carnet.core.messages.events import read_in_pieces
from carnet.core.messages.outbound_call import OutboundCall
from carnet.core.people.address import AGENT
from carnet.core.people.identity import Secret
from carnet.errors import (
    CarnetError,
    InvalidJson,
    KeyRevoked,
    KeyUnknown,
    PeerRefused,
    PeerResponseInvalid,
    PeerUnknown,
    ProviderError,
    ProviderTimeout,
    RunNotFound,
)
from carnet.ports.calls.turns import Turns
from carnet.ports.trust.keys import KeyRing, NotLearned
from carnet.ports.trust.receipts import CallTree, ProofAsk
from carnet.ports.trust.trust import Peer
from carnet.ports.world.clock import Clock
from carnet.ports.world.http_client import Bounds, Outbound
from carnet.ports.world.records import Records
from carnet.runtime.peers.cancellation import PeerLine
from carnet.runtime.receipts.outbound_calls import tally
from carnet.wire import travel
from carnet.wire.crypto import ed25519
from carnet.wire.grammar import json
from carnet.wire.travel import ReceiptNode
from carnet.wire.travel.proof import MOST_NODES

HOP_SECONDS: Final = 1.0  # that the next hop has less
AT_ONCE: Final = 16  # receipts whose peers are asked at the same time
MOST_BYTES: Final = 1024 * 1024
SIGNED: Final = "signed"
VOUCHED: Final = "vouched"

_JSON: Final = "application/json"
_OK: Final = 200
_REFUSALS: Final = {401: PeerRefused, 403: PeerRefused, 404: RunNotFound}


class RunProof:
    """Gathers receipts, and judges them."""

    def __init__(
        self, records: Records, turns: Turns, keys: KeyRing, line: PeerLine, clock: Clock
    ) -> None:
        """`keys` are those of others; `line` leads to them."""
        self._records = records
        self._turns = turns
        self._keys = keys
        self._line = line
        self._clock = clock

    async def gather(self, asked: ProofAsk, /) -> tuple[ReceiptNode, ...] | None:
        """The receipts of a run, each with those below it; None if there is nothing to see."""
        until = self._clock.monotonic() + asked.seconds
        turns = chosen(await self._records.run(asked.run, reader=asked.reader), asked.turns)
        if not turns:
            return None
        outbound = await self._records.outbound(asked.run, reader=asked.reader)
        nodes = _nodes([call for turn in turns for call in outbound.get(turn.n, ())])
        if asked.turns is not None:  # who asks has a receipt of ours, and it names these
            named = await self._named([turn for turn in turns if turn.turn in asked.turns])
            nodes = [node for node in nodes if travel.receipt_hash(node.text) in named]
        places, room = asyncio.Semaphore(AT_ONCE), MOST_NODES  # of all answers together

        async def complete(node: ReceiptNode) -> ReceiptNode:
            nonlocal room
            if node.receipt.below is None:  # there are none
                return node
            async with places:
                if room <= 0:
                    return replace(node, code=PeerResponseInvalid.code)
                found = await self._ask(asked.run, node, until)
            room -= _size(found.below)
            return found if room >= 0 else replace(node, code=PeerResponseInvalid.code)

        return tuple(await asyncio.gather(*map(complete, nodes)))

    async def _named(self, turns: Sequence[Turn]) -> frozenset[bytes]:
        """The hashes that our receipts for these turns name."""
        found: frozenset[bytes] = frozenset()
        for turn in turns:
            events = []
            for data in await self._turns.events(turn):
                for piece in read_in_pieces(data):
                    events += piece
                    await asyncio.sleep(0)  # others' turn
            found |= tally(turn.depth, events).receipts
        return found

    async def _ask(self, run: str, node: ReceiptNode, until: float) -> ReceiptNode:
        """The node with what its issuer tells of those below it, or why it tells nothing."""
        try:
            return replace(node, below=await self._below(run, node.receipt, until))
        except CarnetError as error:
            return replace(node, code=error.code)

    async def _below(
        self, run: str, receipt: travel.Receipt, until: float
    ) -> tuple[ReceiptNode, ...]:
        seconds = until - self._clock.monotonic() - HOP_SECONDS
        peer = self._line.peers.find(receipt.issuer)
        if peer is None:
            raise PeerUnknown
        if seconds <= 0:
            raise ProviderTimeout
        async with self._line.http.send(self._written(peer, run, receipt.turn, seconds)) as answer:
            if answer.status != _OK:
                raise _REFUSALS.get(answer.status, ProviderError)
            body = await answer.read()
        return await asyncio.to_thread(_read, body)

    def _written(self, peer: Peer, run: str, turn: str, seconds: float) -> Outbound:
        token = peer.token
        outbound = Outbound(
            url=f"{peer.url.rstrip('/')}/runs/{quote(run, safe='')}/receipts",
            body=json.write({"turns": [turn], "within": seconds}),
            headers={"content-type": _JSON, "accept": _JSON},
            secrets={} if token is None else {"authorization": Secret(f"Bearer {token.reveal()}")},
            bounds=Bounds(first_byte_seconds=seconds, total_seconds=seconds, max_bytes=MOST_BYTES),
        )
        return self._line.signing.sign_whole(outbound) if token is None else outbound

    async def __call__(self, asked: ProofAsk, /) -> CallTree | None:
        """The receipts of a run, judged; None if there is nothing to see."""
        until = self._clock.monotonic() + asked.seconds
        nodes = await self.gather(asked)
        if nodes is None:
            return None
        judged = _Judged({}, [], 0, set(), until)
        for node in nodes:
            await self._judge(node, judged, is_first=True)
        return CallTree(
            nodes=nodes,
            verdicts=judged.verdicts,
            faults=tuple(judged.faults),
            unproved=judged.unproved,
        )

    async def _judge(self, node: ReceiptNode, judged: "_Judged", *, is_first: bool) -> None:
        """Judge a receipt, and those below it as far as it holds."""
        await asyncio.sleep(0)  # others' turn: a partner chooses how many there are
        receipt, name = node.receipt, travel.receipt_hash(node.text).hex()
        verdict, faults = await self._signature(receipt, judged), travel.check_links(node)
        if verdict is None or (is_first and verdict == VOUCHED):  # nobody names the first ones
            faults = ["its signature does not hold", *faults]
        judged.faults.extend((receipt.issuer, receipt.turn, fault) for fault in faults)
        judged.verdicts[name] = verdict or ""
        below = sum(each.receipt.calls for each in node.below)
        judged.unproved += max(0, receipt.calls - below - 1)
        for each in node.below:
            await self._judge(each, judged, is_first=False)

    async def _signature(self, receipt: travel.Receipt, judged: "_Judged") -> str | None:
        """Whether its issuer has signed it, or is not known here; None if it has not.

        A partner chooses whose receipts it shows, and by which keys: nobody is asked for keys twice
        for that, nor any more when the time of the walk is over.
        """
        sender, now = AGENT + receipt.issuer, self._clock.wall_us()
        if self._line.peers.find(receipt.issuer) is None:
            return VOUCHED
        try:
            try:
                key = self._keys.find(sender, receipt.keyid, now)
            except (NotLearned, KeyUnknown):
                if sender in judged.asked or self._clock.monotonic() >= judged.until:
                    return VOUCHED
                judged.asked.add(sender)
                await self._keys.need(sender)
                key = self._keys.find(sender, receipt.keyid, now)
        except KeyRevoked:
            return None
        except (NotLearned, CarnetError):  # it cannot be asked now, or has replaced that key
            return VOUCHED
        return SIGNED if ed25519.holds(key, receipt.signed, receipt.signature) else None


class _Judged(Struct):
    verdicts: dict[str, str]
    faults: list[tuple[str, str, str]]
    unproved: int
    asked: set[str]  # whose keys were looked for
    until: float


def _read(body: bytes) -> tuple[ReceiptNode, ...]:
    """The receipts of an answer; in a thread, since a partner chooses how many there are."""
    try:
        page = json.read_object(body)
    except InvalidJson as error:
        raise PeerResponseInvalid(str(error)) from None
    return travel.read_receipts(page.get("receipts"))


def _size(nodes: Sequence[ReceiptNode]) -> int:
    return sum(1 + _size(node.below) for node in nodes)


def _nodes(calls: Sequence[OutboundCall]) -> list[ReceiptNode]:
    """The receipts of calls out, of each call the last."""
    last: Mapping[str, OutboundCall] = {call.child_turn: call for call in calls if call.receipt}
    return [
        ReceiptNode(
            turn=call.child_turn,
            to=call.to,
            text=call.receipt or "",
            receipt=travel.read_receipt(call.receipt or ""),
        )
        for call in last.values()
    ]
