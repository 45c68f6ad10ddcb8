"""What a person is told of conversations while she is away, and of what begins them.

Law 1. She is told (R44) at an https address that was verified to be hers, else where the operator
       wants notices. A notice names the conversation, and holds nothing of what was said.
Law 2. How often something is tried to be told, it is told once: the id of a notice follows from it.
"""

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Final

from carnet.core.money.amount import format_amount
from carnet.core.people.identity import owner_of
from carnet.errors import TooManyFirings
from carnet.ports.calls.conversations import AnswerEnd
from carnet.ports.calls.triggers import (
    EndReason,
    Firing,
    FiringEnd,
    Resting,
    Schedule,
    TriggerKind,
)
from carnet.ports.money.budgets import BudgetRecord
from carnet.ports.trust.people import People
from carnet.ports.world.outbox import Delivery
from carnet.runtime.webhooks.callbacks import NOTIFY, PREFIX, queue_of
from carnet.wire.grammar import json
from carnet.wire.grammar.times import when

# What a notice is called, by how a conversation stands.
TYPES: Final = {
    "done": "conversation.ended",
    "failed": "conversation.failed",
    "waiting": "conversation.waits",
}
DROPPED: Final = "trigger.dropped"  # a tick
RESTS: Final = "trigger.paused"  # by nobody: its token has ended
BUDGET: Final = "budget.warning"  # most of one is used


class TriggerNotices:
    """Makes notices."""

    def __init__(self, people: People, notify: Callable[[], Sequence[str]]) -> None:
        """`notify` tells where the operator wants notices."""
        self._people = people
        self._notify = notify

    def __call__(self, firing: Firing, end: FiringEnd, /) -> tuple[Delivery, ...]:
        """What tells of one that has ended, or waits."""
        more = {"conversation": end.conversation, "code": end.code}
        name = f"{firing.key}\0{end.state}"
        return self._notices(firing, firing.kind, TYPES[end.state], more, name)

    def dropped(self, schedule: Schedule, tick: int, /) -> tuple[Delivery, ...]:
        """What tells of a tick which begins nothing."""
        more = {"code": TooManyFirings.code, "at": when(tick)}
        name = f"{DROPPED}\0{schedule.n}.{schedule.created}\0{tick}"
        return self._notices(schedule, "schedule", DROPPED, more, name)

    def resting(self, trigger: Resting, reason: EndReason, /) -> tuple[Delivery, ...]:
        """What tells of a trigger which rests, since its token has ended."""
        name = f"{RESTS}\0{trigger.kind}\0{trigger.name}\0{trigger.token}"
        return self._notices(trigger, trigger.kind, RESTS, {"code": reason}, name)

    def answered(self, end: AnswerEnd, /) -> tuple[Delivery, ...]:
        """What tells of an answer to a message of hers that nobody was reading."""
        data = {
            "trigger": "message",
            "agent": end.agent,
            "conversation": end.conversation,
            "message": end.message,
            "code": end.code,
        }
        return self._to(end.person, TYPES[end.state], data, f"answer\0{end.mark}\0{end.state}")

    def budget(self, one: BudgetRecord, /) -> tuple[Delivery, ...]:
        """What tells the operator of a budget of which most is used (R32)."""
        used = {
            "money": (one.spent.money, one.limits.money),
            "calls": (one.spent.calls, one.limits.calls),
            "tokens": (one.spent.tokens, one.limits.tokens),
        }
        parts = {part: f"{spent} of {most}" for part, (spent, most) in used.items() if most}
        if one.limits.money:
            spent, most = format_amount(one.spent.money), format_amount(one.limits.money)
            parts["money"] = f"{spent} of {most} {one.limits.currency}"
        data = {"budget": one.name, **parts}
        body = json.write({"type": BUDGET, "data": data})
        return tuple(
            Delivery(
                id=_id(f"{BUDGET}\0{one.name}\0{one.since}\0{url}"),
                kind="notice",
                url=url,
                receiver=queue_of(url, NOTIFY),
                body=body,
                secret_of=NOTIFY,
                learned=False,
            )
            for url in self._notify()
        )

    def _notices(
        self,
        trigger: Firing | Schedule | Resting,
        kind: TriggerKind,
        type: str,
        more: Mapping[str, str | None],
        name: str,
    ) -> tuple[Delivery, ...]:
        whose = {"trigger": kind, "name": trigger.name, "agent": trigger.agent}
        return self._to(trigger.person, type, {**whose, **more}, name)

    def _to(
        self, number: int, type: str, data: Mapping[str, str | None], name: str
    ) -> tuple[Delivery, ...]:
        """The notices for one person; `name` is what is told, the same each time."""
        person = self._people.numbered(number)
        if person is None or person.ended is not None:
            return ()
        own, owner = person.notice_address, owner_of(person.n, "")
        body = json.write({"type": type, "data": {**data, "owner": person.name}})
        return tuple(
            Delivery(
                id=_id(f"{person.n}\0{name}\0{url}"),
                kind="notice",
                url=url,
                receiver=queue_of(url, owner),
                body=body,
                secret_of=NOTIFY if own is None else owner,
                learned=own is not None,
            )
            for url in (self._notify() if own is None else (own,))
        )


def _id(text: str) -> str:
    return PREFIX + blake2b(text.encode(), digest_size=16).hexdigest()
