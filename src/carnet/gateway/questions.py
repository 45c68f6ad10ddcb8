"""Questions about what exists: tasks and agents, in the words of the dialect that asks.

Law. Who polls proves nothing unless the operator wants it; who cancels always does. Which tasks an
asker sees, `tasks` says.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack

from carnet.core.people.identity import Caller
from carnet.errors import Internal, RouteNotFound
from carnet.gateway.endpoint import request_of
from carnet.gateway.published import Published
from carnet.gateway.tasks import TaskAccess, view_of
from carnet.http.exchange import Exchange, reader_of
from carnet.ports.calls.tasks import StoredTask
from carnet.wire.dialects.dialect import (
    AgentList,
    Arrival,
    Dialect,
    GatewayFacts,
    Question,
    QuestionResult,
    Reply,
    TaskList,
    TaskView,
    Way,
)
from carnet.wire.stamps.stamp import Stamps

MOST_BYTES = 64 * 1024  # of a question

Receipt = Callable[[StoredTask], Awaitable[str | None]]


class Questions:
    """Answers the questions of one dialect."""

    def __init__(
        self,
        dialect: Dialect,
        tasks: TaskAccess,
        *,
        gateway: GatewayFacts,
        published: Published,
        polling: str,
        wake: Callable[[], None],
        receipt: Receipt,
        stamps: Stamps,
    ) -> None:
        """`polling` is "open" or "signed"; `wake` is told of a task whose end was asked for.

        `receipt` gives the proof of a task that has ended, to whoever is owed it.
        """
        self._dialect = dialect
        self._tasks = tasks
        self._records = tasks.records
        self._gateway = gateway
        self._published = published
        self._is_open = polling == "open"
        self._wake = wake
        self._receipt = receipt
        self._stamps = stamps

    async def ask(
        self,
        way: Way,
        exchange: Exchange,
        caller: Caller | None,
        *,
        agent: str | None,
        names: Mapping[str, str],
    ) -> None:
        """Answer a question; `caller` has shown a token where the way asks for one."""
        arrival = Arrival(
            way,
            exchange.headers,
            head=lambda: request_of(exchange),
            stamps=self._stamps,
            agent=agent,
            names=names,
            by_host=lambda: self._published.named(exchange),
            must_prove=way.auth == "signature" or (way.auth == "polling" and not self._is_open),
        )
        if way.auth == "signature":  # it covers the body, also one that says nothing
            arrival.body = await exchange.read(MOST_BYTES)
        question = self._dialect.read(arrival)
        if not isinstance(question, Question):
            raise Internal("a dialect has read a call where questions come in")
        async with AsyncExitStack() as held:
            status, headers, body = await self._answer(way, question, caller, held)
            await exchange.reply(status, headers, body)

    async def _answer(
        self, way: Way, question: Question, caller: Caller | None, held: AsyncExitStack
    ) -> Reply:
        """What is asked for; what is read for it is `held` until it has left."""
        result: QuestionResult
        match question.about:
            case "task":
                found = await self._tasks.find(question, caller)
                await held.enter_async_context(self._records.room(found, caller))
                result = await self._task(found, caller)
            case "cancel":
                found = await self._records.cancel(await self._tasks.find(question, caller))
                self._wake()
                await held.enter_async_context(self._records.room(found, caller))
                result = await self._task(found, caller, is_cancel=True)
            case "tasks":
                result = await self._list(question, caller)
            case "agent":
                result = self._published.view(question.agent or "")
            case "agents":
                result = AgentList(names=self._names(caller, question.agent), gateway=self._gateway)
        return self._dialect.tell(way.name, result, question)

    async def _task(
        self, task: StoredTask, caller: Caller | None, *, is_cancel: bool = False
    ) -> TaskView:
        events = await self._records.events(task)
        is_owner = caller is None or caller.actor.name == task.turn.actor
        asked = await self._records.interrupts(task, domain=self._gateway.domain, is_owner=is_owner)
        # Who came with a token is no peer, and is owed none.
        receipt = await self._receipt(task) if caller is None else None
        more = {"receipt": receipt, "is_cancel": is_cancel, "interrupts": asked}
        return view_of(task, self._gateway.currency, events, **more)

    async def _list(self, question: Question, caller: Caller | None) -> TaskList:
        if caller is None:
            raise RouteNotFound
        found, following = await self._records.newest(
            limit=question.limit,
            reader=reader_of(caller),
            before=question.before,
            state=question.state,
            agent=question.of_agent,
        )
        currency = self._gateway.currency
        tasks = tuple([view_of(task, currency) for task in found])
        return TaskList(tasks=tasks, following=following)

    def _names(self, caller: Caller | None, wanted: str | None) -> tuple[str, ...]:
        """The agents that a caller may call, or the one of them that is wanted."""
        local = self._published.local()
        return tuple(
            [
                one.name
                for one in local
                if wanted in {None, one.name} and caller is not None and caller.may(one.needs)
            ]
        )
