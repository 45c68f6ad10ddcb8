"""The answers to what callers ask about their own tasks.

Law 1. Everything is asked of tasks that are the asker's, and read from the record: any process on
       the same store answers alike.
Law 2. What is read is bounded by the readers' room of whoever asks, until it has left.
Law 3. What is long is written beside the loop, in its asker's turn as `gateway.bodies` says.
Law 4. A task that is cancelled is stopped before it is told, with what it has called, here and at
       other organisations; one asker has so many of them going on at a time.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from carnet.core.call import Claim
from carnet.core.messages.events import Event
from carnet.core.people.identity import Caller
from carnet.errors import RouteNotFound, TaskNotCancelable, TaskNotFound
from carnet.gateway.bodies import LARGE_BYTES, LargeBodies
from carnet.gateway.own_tasks.asker import Asker, Askers
from carnet.gateway.own_tasks.callbacks import Callbacks
from carnet.gateway.own_tasks.continuation import Continuations
from carnet.gateway.own_tasks.hub import Hub
from carnet.gateway.own_tasks.subscription import Subscriptions
from carnet.gateway.partners.askers import Walks
from carnet.gateway.published import Published
from carnet.gateway.questions import Receipt
from carnet.gateway.tasks import ENDED, TaskRecords, view_of
from carnet.http.exchange import Exchange
from carnet.ports.calls.cancellation import CancelAsk, Cancels
from carnet.ports.calls.tasks import ChangedTasks, StoredTask
from carnet.wire.dialects.dialect import (
    Arrival,
    CardView,
    Dialect,
    GatewayFacts,
    Question,
    QuestionResult,
    Removed,
    Reply,
    TaskPage,
    TaskQuestion,
    TaskView,
)

READ: Final = "run:read"
CANCEL: Final = "run:cancel"
CANCEL_SECONDS: Final = 10.0
FIRST_LOOK: Final = 0.02  # seconds, until it is looked whether a task has stopped
LATER_LOOK: Final = 0.5
MOST_LISTED_BYTES: Final = 2 * 1024 * 1024  # of what was asked and said, in all tasks of a page
EVENT_BYTES: Final = 128  # that an event costs at the least to be told


class OwnTaskParts(Struct, frozen=True, kw_only=True, eq=False):
    """What questions are answered with."""

    askers: Askers
    records: TaskRecords
    published: Published
    callbacks: Callbacks
    subscriptions: Subscriptions
    cancels: Cancels
    bodies: LargeBodies
    gateway: GatewayFacts
    card: Callable[[str, Caller], dict[str, Any]]  # of an agent, for a caller
    walks: Walks = field(default_factory=Walks)  # that cancel


class OwnTasks:
    """Answers the questions of one dialect."""

    def __init__(
        self,
        dialect: Dialect,
        parts: OwnTaskParts,
        continuations: Continuations,
        receipt: Receipt,
    ) -> None:
        """`parts` are the same for all dialects; `receipt` proves a task to who is owed that."""
        self._dialect = dialect
        self._receipt = receipt
        self._continuations = continuations
        self._parts = parts
        self._askers = parts.askers
        self._records = parts.records
        self._hub = Hub(parts.askers, parts.records, parts.published)

    async def continued(self, exchange: Exchange, claim: Claim, arrival: Arrival, /) -> Claim:
        """The call of a task that a message goes on with."""
        asker = await self._askers.who(exchange, arrival, uses=False)
        return await self._continuations.claim(claim, asker, arrival)

    async def routed(self, exchange: Exchange, claim: Claim, arrival: Arrival, /) -> Claim:
        """The same call, for whom it is: neither its path nor its host has named anybody."""
        return await self._hub.route(exchange, claim, arrival)

    async def ask(self, exchange: Exchange, question: Question, arrival: Arrival, /) -> None:
        """Answer a question, once it is known who asks."""
        if not isinstance(question, TaskQuestion):
            raise RouteNotFound
        await self._answer(exchange, question, await self._askers.who(exchange, arrival))

    async def _answer(self, exchange: Exchange, question: TaskQuestion, asker: Asker) -> None:
        if question.about == "subscribe":
            asker.check(READ, question.about)
            task = await self._own(question, asker)
            await self._parts.subscriptions.follow(exchange, self._dialect, task, question, asker)
            return
        async with AsyncExitStack() as held:
            try:
                result = await self._result(question, asker, held)
            except TaskNotFound:
                if not question.or_nothing:
                    raise
                result = Removed()
            await exchange.reply(*await self._written(result, question, asker))

    async def _written(self, result: QuestionResult, question: TaskQuestion, asker: Asker) -> Reply:
        def tell(shown: QuestionResult) -> Reply:
            return self._dialect.tell(question.about, shown, question)

        if _weight(result) <= LARGE_BYTES:
            return tell(result)
        sender = result.sender if isinstance(result, TaskView) else ""  # tokens alone list them
        body = await self._parts.bodies.enter(_name(asker, sender))
        try:
            return await body.read(tell, result)
        finally:
            body.leave()

    async def _result(
        self, question: TaskQuestion, asker: Asker, held: AsyncExitStack
    ) -> QuestionResult:
        if question.about == "extended_card":  # whoever has shown a token may know what it may do
            return CardView(self._parts.card(question.agent or "", self._askers.known(asker)))
        asker.check(CANCEL if question.about == "cancel" else READ, question.about)
        match question.about:
            case "changed":
                return await self._list(question, asker, held)
            case "task":
                task = await self._own(question, asker)
                return await self._shown(task, question, asker, held)
            case "cancel":
                task = await self._own(question, asker)
                return await self._cancel(task, question, asker, held)
            case "callbacks" | "callback" | "add_callback" | "remove_callback":
                task = await self._own(question, asker)
                return await self._parts.callbacks.answer(task, question)
        raise RouteNotFound

    async def _own(self, question: TaskQuestion, asker: Asker) -> StoredTask:
        return await self._askers.find(question.task, question.agent or "", asker)

    async def _shown(
        self, task: StoredTask, question: TaskQuestion, asker: Asker, held: AsyncExitStack
    ) -> TaskView:
        wanted = _wants_history(question)
        asked = await self._records.request_size(task) if wanted else 0
        await held.enter_async_context(self._records.room(task, asker.caller, more=asked))
        view = await self._view(task, await self._records.events(task), history=wanted)
        owed = None if asker.asking is None else await self._receipt(task)
        return view if owed is None else replace(view, receipt=owed)

    async def _view(
        self, task: StoredTask, events: Sequence[Event] = (), *, history: bool = True
    ) -> TaskView:
        gateway = self._parts.gateway
        asked = await self._records.interrupts(task, domain=gateway.domain, is_owner=True)
        more: dict[str, Any] = {"interrupts": asked}
        if history:
            more["request"] = await self._records.request(task)
            more["answered"] = await self._records.answered(task)
        return view_of(task, gateway.currency, events, **more)

    async def _cancel(
        self, task: StoredTask, question: TaskQuestion, asker: Asker, held: AsyncExitStack
    ) -> TaskView:
        turn = task.turn
        if turn.state in {*ENDED, "unknown"}:
            raise TaskNotCancelable
        asked = CancelAsk(
            run=turn.run,
            reader=turn.actor,
            turns=frozenset({turn.turn}),
            only=turn,
            seconds=CANCEL_SECONDS,
        )
        await self._records.cancel(task)  # also where it waits to be run, by whichever process
        with self._parts.walks.one(_name(asker, task.sender)):
            await self._parts.cancels(asked)
        now = await self._ended(task)
        if now.turn.state == "done":  # it was faster
            raise TaskNotCancelable
        return await self._shown(now, question, asker, held)

    async def _ended(self, task: StoredTask) -> StoredTask:
        """A task that is being stopped, once it is, or as it is when that takes too long."""
        now = await self._records.find(task.id)
        pause, left = FIRST_LOOK, CANCEL_SECONDS
        while now.turn.state in {"queued", "running"} and left > 0:
            await asyncio.sleep(pause)
            left -= pause
            pause = min(2 * pause, LATER_LOOK)
            now = await self._records.find(task.id)
        return now

    async def _list(self, question: TaskQuestion, asker: Asker, held: AsyncExitStack) -> TaskPage:
        caller = self._askers.known(asker)
        agent = self._parts.published.target(question.agent or "").name
        found = await self._records.changed(
            ChangedTasks(
                sender=asker.name,
                agent=agent,
                limit=question.limit,
                before=question.page,
                context=question.context,
                states=question.states,
                codes=question.codes,
                other_codes=question.other_codes,
                since=question.since,
            )
        )
        views = await self._listed(found.tasks, question, caller, held)
        return TaskPage(
            tasks=tuple(views),
            size=question.limit,
            total=found.total,
            following=found.following,
        )

    async def _listed(
        self,
        tasks: Sequence[StoredTask],
        question: TaskQuestion,
        caller: Caller,
        held: AsyncExitStack,
    ) -> list[TaskView]:
        """Each task of a page, with what was asked and said as far as it is wanted and fits."""
        has_artifacts = question.form.get("artifacts", True)
        has_history, left = _wants_history(question), MOST_LISTED_BYTES
        if has_artifacts or has_history:
            await held.enter_async_context(self._records.reading(caller, left))
        views: list[TaskView] = []
        for task in tasks:
            size = await self._records.size(task) if has_artifacts else 0
            events: Sequence[Event] = ()
            if size and size <= left:
                events = await self._records.events(task)
                left -= size
            asked = await self._records.request_size(task) if has_history else 0
            fits = has_history and asked <= left
            left -= asked if fits else 0
            views.append(await self._view(task, events, history=fits))
        return views


def _wants_history(question: TaskQuestion) -> bool:
    return question.form.get("history") != 0


def _name(asker: Asker, sender: str) -> str:
    """Whose turn it is: of those who sign, the sender of the task that is theirs."""
    return sender if asker.caller is None else asker.caller.actor.name


def _weight(result: QuestionResult) -> int:
    """About how many bytes are read to write it."""
    views = result.tasks if isinstance(result, TaskPage) else (result,)
    return sum(
        len(view.request) + EVENT_BYTES * len(view.events)
        for view in views
        if isinstance(view, TaskView)
    )
