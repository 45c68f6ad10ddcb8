"""Receipts that we ask for: what another gateway must sign about its answer (A27).

Law 1. Of an answer and its cost, what counts is what the receipt says. An answer without one, or
       with a wrong one, is no answer: the call has failed, may be made again, and nothing of it is
       billed. So is what is asked for before an answer.
Law 2. What a call that failed has cost is believed if it is signed, and else not.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from carnet.core.chain.carnet import Carnet
from carnet.core.messages.events import Done, Event, Usage, Waiting
from carnet.core.messages.output import Sink
from carnet.core.people.address import AGENT
from carnet.errors import (
    CarnetError,
    KeyRevoked,
    KeyUnknown,
    PeerResponseInvalid,
    PeerUnreachable,
)
from carnet.ports.trust.keys import KeyRing, NotLearned
from carnet.ports.world.clock import Clock
from carnet.wire import travel
from carnet.wire.crypto import ed25519
from carnet.wire.dialects.policy import digest_content

ResultOf = Callable[[Sequence[Event]], dict[str, Any]]

_NO_USAGE: Final = Usage()


class ExpectedReceipt:
    """What an answer brought along as its receipt, and whether it is one."""

    __slots__ = ("presented", "proved", "sent")

    def __init__(self) -> None:
        """Nothing has come yet."""
        self.sent = ""  # what was signed of the request that it is for: `Outbound.signed`
        self.presented: str | None = None
        self.proved: str | None = None

    def read_comment(self, comment: str) -> None:
        """Take the receipt of a stream, if the comment holds it."""
        self.presented = travel.read_comment(comment) or self.presented


class _Holding:
    """Passes on what is said and remembers it; what was used is held back."""

    __slots__ = ("_write", "events", "used")

    def __init__(self, sink: Sink) -> None:
        self._write = sink.write
        self.events: list[Event] = []
        self.used = _NO_USAGE

    async def write(self, event: Event, /) -> None:
        self.events.append(event)
        await self._write(event)

    def usage(self, usage: Usage, /) -> None:
        self.used = usage


class Verifying:
    """Asks for receipts, and believes nothing else."""

    def __init__(self, keys: KeyRing, *, domain: str, currency: str, clock: Clock) -> None:
        """`keys` are those of others; `domain` is ours."""
        self._keys = keys
        self._domain = domain
        self._currency = currency
        self._clock = clock

    async def proven(
        self,
        read: Callable[[Sink], Awaitable[Done | Waiting]],
        carnet: Carnet,
        expected: ExpectedReceipt,
        sink: Sink,
        *,
        peer: str,
        result_of: ResultOf,
    ) -> Done | Waiting:
        """Pass on an answer as it is read; its usage and its end only where a receipt proves them.

        `read` reads it into a Sink; `result_of` gives the result of its events.
        """
        holding = _Holding(sink)
        try:
            end = await read(holding)
            receipt = await self.check(expected.presented, carnet, peer=peer)
            if type(end) is Waiting:
                _compare(receipt, digest_content(end))
            else:
                _compare(receipt, result_of((*holding.events, end)))
        except PeerResponseInvalid:
            raise  # asked again, it may give a right one, and the cost with it
        except CarnetError:
            charged = await self._failed(expected, carnet, holding.used, peer=peer)
            if charged is not None:
                sink.usage(charged)
            raise
        expected.proved = expected.presented
        sink.usage(self._charged(holding.used, receipt))
        return end

    async def _failed(
        self, expected: ExpectedReceipt, carnet: Carnet, usage: Usage, *, peer: str
    ) -> Usage | None:
        """What a call that failed has cost; nothing that is not signed."""
        if expected.presented is None:
            return None
        try:
            receipt = await self.check(expected.presented, carnet, peer=peer)
        except CarnetError:
            return None
        if receipt.code is None:
            return None
        expected.proved = expected.presented
        return self._charged(usage, receipt)

    async def check(self, presented: str | None, carnet: Carnet, *, peer: str) -> travel.Receipt:
        """The receipt of a call that we made to a peer; `PeerResponseInvalid` for any other."""
        if presented is None:
            raise PeerResponseInvalid("there is no receipt")
        receipt = travel.read_receipt(presented)
        is_ours = (receipt.issuer, receipt.audience) == (peer, self._domain)
        if not is_ours or (receipt.run, receipt.turn) != (carnet.run, carnet.turn):
            raise PeerResponseInvalid("the receipt is for another call")
        key = await self._key(peer, receipt.keyid)
        if not ed25519.holds(key, receipt.signed, receipt.signature):
            raise PeerResponseInvalid("the signature of the receipt does not hold")
        return receipt

    async def _key(self, peer: str, keyid: str) -> bytes:
        sender, now = AGENT + peer, self._clock.wall_us()
        try:
            try:
                return self._keys.find(sender, keyid, now)
            except (NotLearned, KeyUnknown, PeerUnreachable):  # it may be a new one
                await self._keys.need(sender)
            return self._keys.find(sender, keyid, now)
        except (NotLearned, KeyUnknown, KeyRevoked):
            raise PeerResponseInvalid("the key of the receipt is not the peer's") from None

    def _charged(self, usage: Usage, receipt: travel.Receipt) -> Usage:
        cost = receipt.cost if receipt.currency == self._currency else None
        return Usage(
            usage.tokens_in,
            usage.tokens_out,
            cost,
            None if cost is None else usage.run_cost,
            None if cost is None else self._currency,
        )


def _compare(receipt: travel.Receipt, answer: dict[str, Any]) -> None:
    if receipt.digest != travel.answer_digest(answer):
        raise PeerResponseInvalid("the receipt is for another answer")
