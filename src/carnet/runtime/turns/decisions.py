"""A person's answer to what a call asked for, and the call that runs on with it.

Law 1. The same answer again changes nothing and is well; another one is refused, and so is one that
       comes too late.
Law 2. A rule answers only the question that it was made for: of that kind, by that agent, on that
       way; a payment only as far as its ceiling goes.
Law 3. What could not be brought to whoever asks is refused when it is given, and the question stays
       open: a value that no header can carry to an agent elsewhere, a payment without room.
Law 4. An answer is durable, with the turn that runs on, before it is acknowledged. The turn is run
       as a task: whoever asked may be gone, and it survives the end of this process. What a rule
       answers somebody still waits for: it is run on where it waits, unless it is a task.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from carnet.core.call import Call
from carnet.core.messages.interrupt import (
    PAYMENT,
    Interrupt,
    Resolution,
    StatedResolution,
    chain_of,
    grant_of,
    hash_state,
    question_of,
)
from carnet.core.money.amount import format_amount
from carnet.core.people.address import is_elsewhere
from carnet.core.sealed_call import read_sealed_call
from carnet.errors import (
    AnsweredOtherwise,
    CarnetError,
    InProgress,
    Internal,
    InterruptExpired,
    InterruptNotFound,
    InvalidRequest,
    SpendingLimitReached,
)
from carnet.faults import point
from carnet.ports.calls.agent import Router
from carnet.ports.calls.inbox import NOT_AGREED, Inbox, InboxEntry, Rules
from carnet.ports.calls.tasks import TaskClaim
from carnet.ports.calls.turns import Answer, Claimed, Denied, TurnClaim, Turns, Verdict
from carnet.ports.money.budgets import exceeded
from carnet.ports.world.clock import Clock, Ids
from carnet.runtime.skills.answers import check_answer
from carnet.wire.dialects.policy import MOST_SENT_BYTES, write_resolution

_GOES_ON: Final = ("running", "queued")


class Decisions:
    """Takes the answers of people."""

    def __init__(
        self,
        *,
        inbox: Inbox,
        turns: Turns,
        clock: Clock,
        ids: Ids,
        currency: str,
        rules: Rules,
        wake: Callable[[], None],
        router: Router,
    ) -> None:
        """`rules` are answers for the future; `wake` is told when a turn is to be run on.

        `router` knows which agents are elsewhere.
        """
        self._inbox = inbox
        self._turns = turns
        self._clock = clock
        self._ids = ids
        self._currency = currency
        self._rules = rules
        self._wake = wake
        self._router = router

    async def remember(self, entry: InboxEntry, ceiling: int | None) -> None:
        """Give the same answer to the same question of the same agent from now on."""
        asked = entry.record.interrupt
        await self._rules.add(
            owner=entry.owner,
            agent=chain_of(asked, entry.turn.agent),
            kind=asked.kind,
            ceiling=ceiling,
            now=self._clock.wall_us(),
            question=question_of(asked),
        )

    async def by_rule(self, call: Call, asked: Sequence[Interrupt]) -> Call | None:
        """Answer what a call asks for by the rules of who is asked; how it runs on, if it does."""
        runs_on = None
        for each in asked:
            runs_on = await self._answer_by_rule(call, each) or runs_on
        return runs_on

    async def _answer_by_rule(self, call: Call, asked: Interrupt) -> Call | None:
        owner, amount = call.owner_of(asked), asked.amount or 0
        is_unknown = asked.kind == PAYMENT and asked.currency != self._currency
        # Nobody knows how much that is; and a budget that is always raised bounds nothing.
        if owner is None or is_unknown or asked.raises is not None:
            return None
        chain = chain_of(asked, call.agent)
        n = await self._rules.use(
            owner=owner, agent=chain, kind=asked.kind, amount=amount, question=question_of(asked)
        )
        if n is None:
            return None
        try:
            entry = await self._inbox.find(asked.id, owner=owner)
            if entry is None or entry.record.status != "open":
                raise InterruptNotFound
            return await self._run_on(call, entry, f"rule:{n}")
        except NOT_AGREED:  # there is no room for it, or somebody was faster
            await self._rules.give_back(n, amount)
        except CarnetError:  # whether it was agreed to is not known
            return None
        return None

    async def _run_on(self, call: Call, entry: InboxEntry, resolver: str) -> Call | None:
        """Accept what a call asks for; as what it runs on, or None while it asks for more."""
        resolution = Resolution(outcome="accepted", resolver=resolver)
        await asyncio.to_thread(check_answer, entry.record.interrupt, resolution)
        verdict = await self._claim(entry, resolution, is_here=not call.is_queued)
        if verdict is None or isinstance(verdict, Denied):
            raise InterruptNotFound
        if not isinstance(verdict, Claimed):
            return None
        kept = read_sealed_call(entry.call_bytes).admitted
        reserve = kept.reserve if verdict.reserved is None else verdict.reserved
        return msgspec.structs.replace(
            call, record=verdict.turn, reserve=reserve, set_aside=kept.set_aside
        )

    async def decide(self, entry: InboxEntry, resolution: Resolution) -> InboxEntry:
        """Answer a question; it as it is then."""
        if entry.record.status == "open":
            await asyncio.to_thread(check_answer, entry.record.interrupt, resolution)
            self._check_size(entry, resolution)
            verdict = await self._claim(entry, resolution)
            if isinstance(verdict, Denied) and verdict.reason == "spending":
                left = format_amount(verdict.amount)
                raise SpendingLimitReached(needed=format_amount(verdict.needed), left=left)
            if isinstance(verdict, Denied) and verdict.short is not None:
                raise exceeded(verdict.short)
        found = await self._inbox.find(entry.record.interrupt.id, owner=entry.owner)
        if found is None:
            raise InterruptNotFound
        _check_same(found, resolution)
        return found

    def _check_size(self, entry: InboxEntry, resolution: Resolution) -> None:
        """Refuse a value that is too long for the way to whoever asks."""
        asked = entry.record.interrupt
        if resolution.value is None or not any(map(self._leaves, (entry.turn.agent, *asked.via))):
            return
        if len(write_resolution(StatedResolution(asked.state, resolution))) > MOST_SENT_BYTES:
            most = MOST_SENT_BYTES * 3 // 4 - len(asked.state)
            raise InvalidRequest("value", f"has more than {most} bytes, for an agent elsewhere")

    def _leaves(self, agent: str) -> bool:
        """Whether a call to an agent leaves this gateway."""
        try:
            return self._router.find(agent).is_remote
        except CarnetError:  # it is there no more, or cannot be called at present
            return is_elsewhere(agent)

    async def _claim(
        self, entry: InboxEntry, resolution: Resolution, *, is_here: bool = False
    ) -> Verdict | None:
        """Use the answer; what came of it, None if nothing waits for it any more.

        The turn is run as a task then, unless who asks runs it `is_here` itself.
        """
        if not entry.call_bytes:
            if entry.turn.state == "waiting":
                raise Internal("what is kept of the call cannot be opened")
            return None
        admitted = read_sealed_call(entry.call_bytes).admitted
        admitted = msgspec.structs.replace(admitted, agent=entry.turn.agent)
        value = None if resolution.value is None else msgspec.json.encode(resolution.value)
        task = TaskClaim(
            id=self._ids.uuid(),
            sender=entry.turn.actor,
            skill=admitted.ask.skill,
            callback=None,
            call_bytes=b"",  # it is kept already
        )
        point("answer.begin")
        verdict = await self._turns.claim(
            TurnClaim(
                admitted=admitted,
                key=entry.turn.key,
                digest=entry.digest,
                most_run_calls=0,
                now=self._clock.wall_us(),
                request=b"",
                task=None if is_here else task,
                resolution=Answer(
                    state_hash=hash_state(entry.record.interrupt.state),
                    outcome=resolution.outcome,
                    resolver=resolution.resolver,
                    value=value,
                    grant=grant_of(resolution.value),
                    interrupt=entry.record.interrupt.id,
                ),
            )
        )
        point("answer.done")
        if isinstance(verdict, Claimed) and not is_here:
            self._wake()
        return verdict


def _check_same(found: InboxEntry, resolution: Resolution) -> None:
    record = found.record
    if record.status == "expired" and found.turn.state in _GOES_ON:
        raise InProgress(retry_after=1)  # it is about to wait, and to ask again
    if record.status != "resolved":
        raise InterruptExpired
    kept = None if record.value is None else msgspec.json.decode(record.value)
    if (record.outcome, kept) != (resolution.outcome, resolution.value):
        raise AnsweredOtherwise
