"""What an agent elsewhere asks for before it goes on, and how it is brought the answer.

Law 1. A call whose turn runs on is sent without an answer first. Who still waits has not had it;
       who does not, answers or goes on (an answer may have arrived, and its reply been lost).
Law 2. Each answer is sent once, one after the other, to who still waits for its state. One that is
       refused there is not sent again: the call is, without it, and what is waited for still is
       asked for again (a schema may have been too wide to come up, and a value does not fit it; or
       what we may owe there does not cover a payment, which the person is told).
Law 3. What was said before a question that is answered now is not shown: it is said again.
Law 4. What was agreed to be paid may be charged beyond what a call may cost, and nothing else.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from msgspec.structs import replace

from carnet.core.call import Call
from carnet.core.chain.carnet import Carnet
from carnet.core.messages.events import Done, Event, Usage, Waiting
from carnet.core.messages.interrupt import Answered, StatedResolution
from carnet.core.messages.output import Sink
from carnet.core.people.address import is_elsewhere
from carnet.errors import (
    BillUnpaid,
    Fact,
    HeadersTooLarge,
    InvalidRequest,
    MalformedCallerContext,
    PaymentRequired,
    PeerRefused,
    PolicyStateInvalid,
    SpendingLimitReached,
)
from carnet.ports.world.http_client import HttpAnswer
from carnet.wire.dialects import policy

Ending = Done | Waiting
Send = Callable[[StatedResolution | None, Sink], Awaitable[Ending]]

# What says of an answer that it was not used there, and of a payment that nothing was paid.
_UNPAID: Final = frozenset({PaymentRequired.code, SpendingLimitReached.code, BillUnpaid.code})
_UNUSED: Final = _UNPAID | {
    *(PolicyStateInvalid.code, InvalidRequest.code),
    *(HeadersTooLarge.code, MalformedCallerContext.code),  # it is too long for the way
}
NOT_PAID: Final = "Not paid: what we may owe there does not cover it."
NOT_TAKEN: Final = (
    "Your answer was sent and is not taken there, perhaps because it was used before: look whether "
    "it was acted on before you agree again."
)


class HeldAnswer:
    """A Sink that keeps what is said until it is known whether it is said again."""

    __slots__ = ("_events", "_sink", "_used")

    def __init__(self, sink: Sink) -> None:
        """`sink` is given what is said in the end."""
        self._sink = sink
        self._events: list[Event] = []
        self._used: list[Usage] = []

    async def write(self, event: Event, /) -> None:
        """Keep an event."""
        self._events.append(event)

    def usage(self, usage: Usage, /) -> None:
        """Keep what was used."""
        self._used.append(usage)

    async def show(self) -> None:
        """Pass on all of it."""
        for event in self._events:
            await self._sink.write(event)
        for usage in self._used:
            self._sink.usage(usage)


async def run_on(call: Call, sink: Sink, send: Send) -> Ending:
    """Send a call that was answered what it asked for, and read how it ends into a Sink.

    `send` sends it once, perhaps with an answer.
    """
    unused = list(call.resolved)
    stated: StatedResolution | None = None
    is_last = False  # no other answer is to follow: it is read as it comes
    unpaid: set[str] = set()  # the states of payments that were refused there
    while True:
        held = HeldAnswer(sink)
        try:
            end = await send(stated, sink if is_last else held)
        except PeerRefused as refused:
            if stated is None or _words(refused).isdisjoint(_UNUSED):
                raise
            if not _words(refused).isdisjoint(_UNPAID):
                unpaid.add(stated.state)
            stated, is_last = None, False
            continue
        waited_for = _among(unused, end)
        if not waited_for:
            if not is_last:
                await held.show()
            return explained(end, NOT_PAID, unpaid) if unpaid else end
        answer, *others = waited_for
        unused.remove(answer)
        stated = StatedResolution(answer.interrupt.state, answer.resolution)
        is_last = not others


def _among(unused: list[Answered], end: Ending) -> list[Answered]:
    """The answers that are waited for."""
    asked = end.interrupts if isinstance(end, Waiting) else ()
    states = {each.state for each in asked if each.state}
    return [each for each in unused if each.interrupt.state in states]


def _words(refused: PeerRefused) -> set[Fact]:
    """Why an answer was refused, in the words of whoever waits."""
    return {refused.facts.get("peer_code", ""), refused.facts.get("peer_reason", "")}


def explained(end: Ending, words: str, states: set[str] | None = None) -> Ending:
    """An end that says of what is asked for again why it is; `states` are those it is true of."""
    if not isinstance(end, Waiting):
        return end
    return Waiting(
        tuple(
            [
                replace(asked, message=f"{words} {asked.message}"[: policy.MOST_WORDS])
                if states is None or asked.state in states
                else asked
                for asked in end.interrupts
            ]
        )
    )


def surfaced(end: Ending, call: Call, domain: str) -> Ending:
    """An end as our own turn has it: what the callee waits for has a name of ours."""
    if not isinstance(end, Waiting):
        return end
    callee = call.agent if is_elsewhere(call.agent) else ""
    return policy.passed_on(end, key=call.record.key, callee=callee, domain=domain)


def asked_by(answer: HttpAnswer, currency: str) -> Waiting | None:
    """What the header of an answer asks for; raises what nobody can answer (R43)."""
    if answer.status not in policy.POLICY_STATUSES:
        return None
    asked = policy.read_header(answer.header(policy.INTERRUPT), currency=currency)
    if (over := policy.over_of(asked)) is not None:
        raise over
    return Waiting(asked) if asked else None


def with_agreed(carnet: Carnet, more: int) -> Carnet:
    """A document whose budget has room for what was agreed to be paid."""
    budget = carnet.budget
    if not more or budget is None or budget.money is None:
        return carnet
    return replace(carnet, budget=replace(budget, money=budget.money + more))
