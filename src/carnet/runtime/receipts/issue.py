"""Receipts that we give: with the answer to every call that came with a travel document.

Law 1. A receipt is made once, when the turn has ended, and kept before it leaves. Whoever repeats
       the call gets the same one; if a crash has lost it, it is made then. One for a turn that
       waits is about what it asks for and has cost so far. It is not kept: another follows.
Law 2. What stands in no record has no receipt: neither an end that nobody knows, nor the failure of
       a reader to see how the turn goes on. The journal tells such an end without any usage.
"""

from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Sequence
from typing import Any, Final

from msgspec import Struct

from carnet.core.call import Call
from carnet.core.chain.turn import Turn
from carnet.core.messages.events import (
    RECEIPT,
    STATEMENT,
    UNKNOWN_COST,
    Event,
    Extension,
    Failed,
    Usage,
    Waiting,
    is_terminal,
)
from carnet.core.people.proof import SECOND_US, Document
from carnet.ports.calls.agent import Journal
from carnet.ports.calls.tasks import StoredTask
from carnet.ports.trust.keys import OwnKeys
from carnet.ports.trust.receipts import Receipts
from carnet.runtime.receipts.outbound_calls import tally
from carnet.runtime.stream import closing
from carnet.wire import travel
from carnet.wire.dialects.a2a.extensions import signed_receipts
from carnet.wire.dialects.policy import digest_content
from carnet.wire.grammar.times import when

ResultOf = Callable[[Sequence[Event]], dict[str, Any]]

_NO_USAGE: Final = Usage()


class Called(Struct, frozen=True, kw_only=True):
    """The call that a receipt is for, as whoever made it knows it."""

    audience: str  # its domain
    run: str
    turn: str
    depth: int
    parent: str | None = None


class Issuing:
    """Makes receipts and keeps them."""

    def __init__(
        self, *, kept: Receipts, keys: OwnKeys, domain: str, currency: str, url: str
    ) -> None:
        """`kept` are those that were given; `domain` is ours, and `url` where it is served."""
        self._url = url
        self._kept = kept
        self._keys = keys
        self._domain = domain
        self._currency = currency

    async def receipt(
        self, call: Call, document: Document, events: Sequence[Event], result_of: ResultOf
    ) -> str:
        """The receipt of a turn that has ended with these events."""
        if isinstance(events[-1], Waiting):
            return self._make(call, document, events, result_of)
        if call.known:
            found = await self._kept.get(call.record)
            if found is not None:
                return found
        # Whoever reads the same turn at the same time makes the same one, unless the key has been
        # replaced meanwhile: then the one counts that was kept first.
        return await self._kept.put(call.record, self._make(call, document, events, result_of))

    def statement(self, call: Call, receipt: str) -> dict[str, Any]:
        """A receipt in the form of others that says the same as ours, which stands in it."""
        signer = self._keys.signer()
        return signed_receipts.issue(
            domain=self._domain,
            kid=signer.kid,
            public=signer.public,
            sign=signer.sign,
            task=call.task or "",
            card=f"{self._url}/agents/{call.agent}/.well-known/agent-card.json",
            claims=[{"type": RECEIPT, "receipt": receipt}],
            at=when(call.record.created) or "",
        )

    async def of_task(
        self, task: StoredTask, peer: str, events: Sequence[Event], result_of: ResultOf
    ) -> str:
        """The receipt of a task that has ended, for the peer that asked for it and now polls it.

        Its document is gone by then: what it said of the call stands in the record.
        """
        turn, waits = task.turn, isinstance(events[-1], Waiting)
        found = None if waits else await self._kept.get(turn)
        if found is not None:
            return found
        is_unknown = any(type(each) is Extension and each.name == UNKNOWN_COST for each in events)
        is_billed_here = turn.payer.issuer == self._domain  # by its own credential: R5
        cost = 0 if is_billed_here else None if is_unknown else turn.cost
        called = Called(
            audience=peer,
            run=turn.run,
            turn=turn.turn,
            depth=turn.depth,
            parent=turn.parent_turn,
        )
        receipt = self._sign(turn, called, cost, events, result_of)
        return receipt if waits else await self._kept.put(turn, receipt)

    def _make(
        self, call: Call, document: Document, events: Sequence[Event], result_of: ResultOf
    ) -> str:
        called = Called(
            audience=document.issuer,
            run=document.run,
            turn=document.turn,
            depth=document.depth,
            parent=document.parent_turn,
        )
        tokens = None if call.allowance is None else call.allowance.tokens_used
        return self._sign(call.record, called, _usage(events).cost, events, result_of, tokens)

    def _sign(
        self,
        record: Turn,
        called: Called,
        cost: int | None,
        events: Sequence[Event],
        result_of: ResultOf,
        tokens: int | None = None,
    ) -> str:
        signer, end = self._keys.signer(), events[-1]
        counted = tally(called.depth, events)
        receipt = travel.Receipt(
            issuer=self._domain,
            audience=called.audience,
            issued=record.created // SECOND_US,
            run=called.run,
            turn=called.turn,
            cost=cost,
            currency=self._currency,
            calls=counted.calls,
            max_depth=counted.deepest,
            tokens=tokens,
            digest=None if isinstance(end, Failed) else _digest(events, result_of),
            code=end.code if isinstance(end, Failed) else None,
            parent=called.parent,
            below=travel.links_to(counted.receipts) if counted.receipts else None,
            keyid=signer.kid,
        )
        return travel.write_receipt(receipt, sign=signer.sign)


class Receipted:
    """A journal that gives a receipt, as an Extension before the end, to whoever is owed one."""

    def __init__(self, journal: Journal, issuing: Issuing, result_of: ResultOf) -> None:
        """`result_of` gives the result of an answer in the dialect of the endpoint."""
        self._journal = journal
        self._issuing = issuing
        self._result_of = result_of

    def batches(
        self, call: Call, /, heartbeat: float | None = None
    ) -> AsyncGenerator[Sequence[Event], None]:
        """Committed groups of events, the receipt in the last."""
        batches = self._journal.batches(call, heartbeat)
        if call.document is None:
            return batches
        return self._with_receipt(call, call.document, batches)

    def whole(self, call: Call, /) -> Coroutine[Any, Any, Sequence[Event]]:
        """The same events when all of them are there."""
        whole = self._journal.whole(call)
        return whole if call.document is None else self._proved(call, call.document, whole)

    async def size(self, call: Call, /) -> int:
        """How many bytes were recorded of a turn that is known."""
        return await self._journal.size(call)

    async def _proved(
        self, call: Call, document: Document, whole: Coroutine[Any, Any, Sequence[Event]]
    ) -> Sequence[Event]:
        events = await whole
        return (*events[:-1], *await self._owed(call, document, events), events[-1])

    async def cancel(self, turns: Collection[int]) -> int:
        """Cancel those of these turns that are running."""
        return await self._journal.cancel(turns)

    async def _with_receipt(
        self, call: Call, document: Document, batches: AsyncGenerator[Sequence[Event], None]
    ) -> AsyncGenerator[Sequence[Event], None]:
        spoken: list[Event] = []
        async with closing(batches) as groups:
            async for batch in groups:
                spoken += batch
                if batch and is_terminal(batch[-1]):
                    yield (*batch[:-1], *await self._owed(call, document, spoken), batch[-1])
                else:
                    yield batch

    async def _owed(
        self, call: Call, document: Document, events: Sequence[Event]
    ) -> tuple[Extension, ...]:
        if _usage(events) == _NO_USAGE:
            return ()
        receipt = await self._issuing.receipt(call, document, events, self._result_of)
        owed = (Extension(RECEIPT, receipt),)
        form = call.ask.form
        if form is None or not signed_receipts.is_wanted(form):  # most have none
            return owed
        return (*owed, Extension(STATEMENT, self._issuing.statement(call, receipt)))


def _digest(events: Sequence[Event], result_of: ResultOf) -> str:
    """Of what a turn has answered, or asks for before."""
    end = events[-1]
    if isinstance(end, Waiting):
        return travel.answer_digest(digest_content(end))
    return travel.answer_digest(result_of(events))


def _usage(events: Sequence[Event]) -> Usage:
    return next((event for event in events if type(event) is Usage), _NO_USAGE)
