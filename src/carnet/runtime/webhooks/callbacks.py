"""The webhooks to the callbacks of a task, written when the task has ended, or waits.

Law 1. A delivery is a function of the end that it tells: its body is what a caller who waited would
       have got in the dialect that it asked in, of a success and of a failure alike.
Law 2. Every end is delivered, and only to addresses that the sender of the task named: to those
       that the task has when its end is recorded (`TurnFinish.tell`).
Law 3. An address is judged when it is named, and again whenever it is dialled.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

from carnet.core.call import Call
from carnet.core.messages.events import (
    End,
    Event,
    Failed,
    Usage,
    Waiting,
    is_terminal,
    joined_text,
)
from carnet.core.messages.interrupt import Interrupt
from carnet.core.money.amount import format_amount
from carnet.core.people.address import asker
from carnet.core.people.person import Person
from carnet.errors import CallbackForbidden, EgressRefused
from carnet.ports.calls.tasks import Callback
from carnet.ports.world.outbox import Delivery, Outbox
from carnet.runtime.egress.addresses import LEARNED_PORTS, read_destination
from carnet.wire.dialects import samvad
from carnet.wire.dialects.dialect import Dialect, GatewayFacts
from carnet.wire.grammar import json

PREFIX: Final = "msg_"
ASKED: Final = "approval.requested"
NOTIFY: Final = "notify"  # whose secret signs notices to the operator
UNNAMED: Final = samvad.NAME  # of a call that was sealed before calls kept their dialect
NOT_PUBLIC: Final = "it is not a public address"
MOST_URL: Final = 2048
MOST_WAITING: Final = 10_000  # deliveries for one receiver; then no task may name it


class CallbackDeliveries:
    """Writes the webhook deliveries that tell of the end of a call."""

    def __init__(
        self,
        dialects: Sequence[Dialect],
        gateway: GatewayFacts,
        new_id: Callable[[], str],
        person_of: Callable[[str], Person | None] = lambda _: None,
    ) -> None:
        """`new_id` gives a name that nobody had before, without dots; `person_of` who owns."""
        self._dialects = {dialect.name: dialect for dialect in dialects}
        self._gateway = gateway
        self._new_id = new_id
        self._person_of = person_of
        self.notify: Sequence[str] = ()  # where those are told who have no address of their own

    def asked(self, call: Call, asked: Sequence[Interrupt]) -> tuple[Delivery, ...]:
        """What tells that a call which began here waits for an answer; of each owner by itself."""
        return tuple([notice for each in asked for notice in self._notices(call, each)])

    def _notices(self, call: Call, asked: Interrupt) -> Iterator[Delivery]:
        owner = call.owner_of(asked)
        if owner is None:
            return
        person = self._person_of(owner)
        own = None if person is None else person.notice_address
        body = self._notice(call, asked, owner if person is None else person.name)
        for url in self.notify if own is None else (own,):
            yield Delivery(
                id=PREFIX + self._new_id(),
                kind="notice",
                url=url,
                receiver=queue_of(url, owner),
                body=body,
                secret_of=NOTIFY if own is None else owner,
                learned=own is not None,
                turn=call.record.n,
            )

    def _notice(self, call: Call, asked: Interrupt, owner: str) -> bytes:
        """What is asked, without the secret that answers it."""
        data = {
            "id": asked.id,
            "kind": asked.kind,
            "message": asked.message,
            "asked_by": asker(asked.origin, call.agent, self._gateway.domain),
            "amount": None if asked.amount is None else format_amount(asked.amount),
            "currency": asked.currency,
            "other_amount": asked.other_amount,
            "owner": owner,
            "agent": call.agent,
            "run": call.carnet.run,
            "expires_at": asked.expires_at,
        }
        return json.write({"type": ASKED, "data": data})

    def __call__(
        self,
        call: Call,
        events: Sequence[Event],
        end: End,
        usage: Usage | None,
        callbacks: Sequence[Callback],
    ) -> tuple[Delivery, ...]:
        """One to each address, in the dialect in which it was named.

        Args:
            call: What was asked, and the attempt it ran as.
            events: All that was said, with or without the end.
            end: How it ended.
            usage: What it has cost; what its run has cost is known later.
            callbacks: Where it is told.
        """
        caller, standing = call.caller, call.caller.standing
        sender = caller.actor.name if standing is None else standing.sender
        return tuple(
            Delivery(
                id=PREFIX + self._new_id(),
                kind="callback",
                url=callback.url,
                receiver=queue_of(callback.url, sender),
                body=self._body(call, events, end, usage, callback.dialect or call.dialect),
                task=call.task,
                secret_of=sender,
            )
            for callback in callbacks
        )

    def _body(
        self,
        call: Call,
        events: Sequence[Event],
        end: End,
        usage: Usage | None,
        name: str,
    ) -> bytes:
        dialect = self._dialects.get(name) or self._dialects[UNNAMED]
        writer = dialect.writer(call, self._gateway)
        if isinstance(end, Failed):
            return writer.refusal(end, usage).body
        if isinstance(end, Waiting):
            return writer.waiting(end, usage, joined_text(events)).body
        content = [event for event in events if not is_terminal(event) and type(event) is not Usage]
        return writer.whole([*content, *(() if usage is None else (usage,)), end])


def receiver_of(url: str) -> str:
    """Whom a URL leads to: its scheme, host and port."""
    try:
        at = read_destination(url)
    except EgressRefused:  # it has a queue of its own, and is refused there
        return url
    return f"{at.scheme}://{at.authority}"


def queue_of(url: str, sender: str) -> str:
    """The queue of the deliveries to a URL that a sender has named.

    Senders do not share a queue: one that names a URL which always fails holds up nobody else.
    """
    return f"{receiver_of(url)} {sender}"


def _why(url: str) -> str:
    """What is wrong with an address that may not be dialled, as far as the address itself says.

    What a name leads to is not told: that is known to us alone.
    """
    if not url.lower().startswith("https://"):
        return "it does not begin with https://"
    try:
        at = read_destination(url)
    except EgressRefused as error:  # its detail is a phrase of ours
        return error.detail
    return NOT_PUBLIC if at.port in LEARNED_PORTS else "its port is neither 443 nor 8443"


class AddressJudge(Protocol):
    """Knows which addresses we may be made to dial."""

    async def judge(self, url: str) -> None:
        """Raise EgressRefused, or return."""
        ...


class CallbackAddresses:
    """Checks the addresses that callers name for callbacks."""

    def __init__(self, judge: AddressJudge, outbox: Outbox) -> None:
        """`outbox` remembers the addresses that have answered 410."""
        self._judge = judge
        self._outbox = outbox

    async def check(self, url: str, sender: str, /) -> None:
        """Raise CallbackForbidden for an address to which nothing will be sent."""
        if len(url) > MOST_URL:
            raise CallbackForbidden(reason=f"it is longer than {MOST_URL} characters")
        try:
            await self._judge.judge(url)
        except EgressRefused as error:
            raise CallbackForbidden(error.detail, reason=_why(url)) from None
        if await self._outbox.waiting(queue_of(url, sender), most=MOST_WAITING) >= MOST_WAITING:
            raise CallbackForbidden(reason=f"{MOST_WAITING} of your deliveries wait for it already")
        if await self._outbox.is_gone(url, sender):
            raise CallbackForbidden(reason="it has answered 410, that it takes nothing any more")
