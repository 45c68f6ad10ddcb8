"""The record of a call that this gateway made to another organisation, and what counts such calls.

Law. Every call is counted once, however often it was tried: this one, those made in process for it,
and those that another organisation has signed for. A receipt says their number and how deep they
went.
"""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

from msgspec import Struct

from carnet.core.call import Call
from carnet.core.messages.events import (
    AGAIN,
    CHILD,
    OUTBOUND_CALL,
    RECORDED,
    Event,
    Extension,
    Usage,
)
from carnet.core.messages.outbound_call import OutboundCall, OutboundState, read_outbound_event
from carnet.core.messages.output import Output
from carnet.errors import (
    CarnetError,
    Malformed,
    PeerBusy,
    PeerRefused,
    ProviderTimeout,
    ProviderUnavailable,
    Refused,
)
from carnet.ports.world.http_client import NotSent
from carnet.runtime.receipts.verification import ExpectedReceipt
from carnet.wire import travel
from carnet.wire.grammar.json import MAX_INTEGER

T = TypeVar("T")
CallEnding = tuple[OutboundState, str | None, dict[str, Any]]

_NO_RECEIPTS: Final = frozenset[bytes]()
_DONE: Final[CallEnding] = ("done", None, {})
_WAITING: Final[CallEnding] = ("waiting", None, {})


class Calling:
    """One call out while it is made: a Sink for its answer, which knows what it costs."""

    __slots__ = (
        *("_bound", "_call", "_dialect", "_disputed", "_out"),
        *("cost", "is_sent", "receipt", "waits", "write"),
    )

    def __init__(
        self,
        call: Call,
        out: Output,
        *,
        dialect: str,
        bound: Callable[[Usage, Call], Usage],
        cost: int | None = None,
    ) -> None:
        """`bound` gives what counts of a usage; `cost` is what it costs unless somebody says."""
        self._call = call
        self._out = out
        self._dialect = dialect
        self._bound = bound
        self._disputed = 0
        self.write = out.write
        self.cost = cost
        self.is_sent = False  # or being sent: somebody may have run it
        self.waits = False  # for what the callee asks for first
        self.receipt = ExpectedReceipt()  # what its answer brings along as its receipt

    def usage(self, usage: Usage, /) -> None:
        """Pass on what it used, and remember what that costs."""
        bounded = self._bound(usage, self._call)
        self.cost = bounded.cost
        if usage.cost is not None and bounded.cost is not None:
            self._disputed = usage.cost - bounded.cost
        self._out.usage(bounded)

    def ended(self, error: BaseException | None = None) -> None:
        """Leave the record of the call, however it ended."""
        state, code, facts = _WAITING if self.waits else _DONE if error is None else _ending(error)
        if state == "failed" and self.cost is None and not (self.is_sent and _may_have_left(error)):
            self.cost = 0
        call = self._call
        carnet = call.carnet
        self._out.called(
            OutboundCall(
                ordinal=0,
                child_turn=carnet.turn,
                to=call.agent,
                depth=carnet.depth,
                state=state,
                dialect=self._dialect,
                cost=self.cost,
                code=code,
                peer_status=_fact(facts, "peer_status", int) if facts else None,
                peer_code=_fact(facts, "peer_code", str) if facts else None,
                receipt=self.receipt.proved,
                disputed=self._disputed,
                sent=self.receipt.sent or None,
            )
        )


def ended_call(
    turn: str, to: str, *, depth: int, dialect: str, error: BaseException | None
) -> OutboundCall:
    """The record of a call that was not ours to send: nobody has told us what it costs."""
    waits = isinstance(error, CarnetError) and bool(error.interrupts)
    state, code, facts = _WAITING if waits else _DONE if error is None else _ending(error)
    return OutboundCall(
        ordinal=0,
        child_turn=turn,
        to=to,
        depth=depth,
        state=state,
        dialect=dialect,
        code=code,
        peer_status=_fact(facts, "peer_status", int),
        peer_code=_fact(facts, "peer_code", str),
    )


def _ending(error: BaseException) -> CallEnding:
    """How a call has ended that failed, by which code, and what the other side said of it."""
    if isinstance(error, CarnetError):
        refused = isinstance(error, Refused | Malformed | PeerRefused | PeerBusy)
        return "refused" if refused else "failed", error.code, error.facts
    late = isinstance(error, asyncio.CancelledError)  # by whoever waited for it
    return "failed", ProviderTimeout.code if late else None, {}


def _may_have_left(error: BaseException | None) -> bool:
    """Whether a call that was to be sent may have arrived; else it cannot have cost anything."""
    return not (isinstance(error, ProviderUnavailable) and isinstance(error.__cause__, NotSent))


def _fact(facts: dict[str, Any], name: str, kind: type[T]) -> T | None:
    value = facts.get(name)
    return value if isinstance(value, kind) else None


class Tally(Struct, frozen=True):
    """The calls of a call, itself included."""

    calls: int
    deepest: int
    receipts: frozenset[bytes] = _NO_RECEIPTS  # the hashes of those that were given for them


def tally(depth: int, events: Iterable[Event]) -> Tally:
    """The calls that a turn at `depth` took, by what was noted in it."""
    outbound: dict[str, Tally] = {}
    children: list[Tally] = []
    is_outbound = False  # the turn is a call to somebody else, not one that makes such a call
    for event in events:
        if type(event) is not Extension:
            continue
        if event.name == OUTBOUND_CALL:
            call = read_outbound_event(event.payload, 0)
            is_outbound = is_outbound or call.depth == depth
            outbound[call.child_turn] = _of_call(call)
        elif event.name == CHILD:
            children.append(_of_child(event.payload))
    found = [*outbound.values(), *children, Tally(0 if is_outbound else 1, depth)]
    calls = min(sum(each.calls for each in found), MAX_INTEGER)  # what a receipt can say
    receipts = _NO_RECEIPTS
    for each in found:
        if each.receipts:  # of few
            receipts |= each.receipts
    return Tally(calls, max(each.deepest for each in found), receipts)


def noted_receipts(counted: Tally) -> dict[str, list[str]]:
    """What is noted of the receipts of a call in process, for the turn that it was made in."""
    hashes = sorted(counted.receipts)
    return {"receipts": [b64encode(each).decode() for each in hashes]} if hashes else {}


def _of_child(payload: dict[str, Any]) -> Tally:
    hashes = frozenset(map(b64decode, payload.get("receipts", ())))
    return Tally(payload.get("calls", 1), payload.get("deepest", 0), hashes)


def used_of(call: Call, outbound: Sequence[OutboundCall], tokens: int) -> tuple[int, int]:
    """The calls and the tokens that a call has used of budgets.

    A callee that was told how many it may use says how many it has; one that may have run and says
    nothing has used them all, if it is known to take a budget. A call that was passed on is one
    with that of the callee.
    """
    most_calls, most_tokens = call.granted
    takes, is_passed_on = call.target.takes_budget, call.onward is not None
    if most_calls < 1 or not (takes or is_passed_on):
        return 1, tokens
    last = next((each for each in reversed(outbound) if each.depth == _sent(call)), None)
    if last is None or (last.state == "refused" and last.receipt is None):
        return 1, tokens  # it has not run; who refuses what has run proves what that took
    if last.receipt is None:
        return (most_calls, max(tokens, most_tokens)) if takes else (1, tokens)
    receipt = travel.read_receipt(last.receipt)  # it was verified before it was noted
    used = tokens if receipt.tokens is None else max(tokens, receipt.tokens)
    return max(1, min(receipt.calls, most_calls)), used


def _sent(call: Call) -> int:
    return (call.onward or call.carnet).depth


def again(noted: Sequence[Event]) -> dict[str, bool]:
    """What is said of a call beside its cost, by what was noted of it: that a record answered."""
    first = noted[0] if noted else None
    return {AGAIN: True} if type(first) is Extension and first.name == RECORDED else {}


def is_counted_before(payload: dict[str, Any], counted: set[object]) -> bool:
    """Whether what is noted of a call in process was noted before.

    An agent that does its work again is answered again, from the record of that call.
    """
    place = (payload.get("index"), payload.get("to"))
    if payload.get(AGAIN) and place in counted:
        return True
    counted.add(place)
    return False


def _of_call(call: OutboundCall) -> Tally:
    if call.receipt is not None:  # it was verified before it was noted
        receipt = travel.read_receipt(call.receipt)
        hashes = frozenset({travel.receipt_hash(call.receipt)})
        return Tally(receipt.calls, receipt.max_depth, hashes)
    return Tally(0, 0) if call.state == "refused" else Tally(1, call.depth)
