"""The endpoints of tasks: to those who asked for them, by their id, and to tokens.

Law 1. An id that is unknown, of another agent, or of a task that is no longer kept gets the same
       bytes. Who polls proves nothing unless the operator wants it; who cancels always does. What
       was asked for with a token is told to tokens alone.
Law 2. What can be refused without looking a task up is refused before that.
Law 3. A token sees the tasks it asked for; an operator sees all.
"""

from collections.abc import Awaitable, Callable
from typing import Any, get_args
from urllib.parse import parse_qs

from carnet.core.address import is_agent_uri
from carnet.core.call import Call
from carnet.core.carnet import DepthLimits
from carnet.core.events import Done, Event, Failed, read_events
from carnet.errors import CarnetError, InvalidRequest, TaskNotFound
from carnet.faults import point
from carnet.gateway import pages
from carnet.gateway.answering import RECEIPT_FIELD, Answering
from carnet.gateway.inbound import read_later, read_stamps, request_of
from carnet.gateway.runs import MOST_LINES, Access, read_number, reader_of, reply_json
from carnet.guards.owner import Owners, check_time
from carnet.http.exchange import Exchange, RawHeaders
from carnet.ports.clock import Clock
from carnet.ports.tasks import Task, Tasks, TaskState
from carnet.ports.turns import Turns
from carnet.wire import json, samvad

TASK = "/agent/task"
CODE = samvad.CODE_HEADER.encode()
SECRET = b"carnet-webhook-secret"
MOST_CANCEL_BYTES = 64 * 1024

_STATES: dict[str, TaskState] = {state: state for state in get_args(TaskState)}

Receipt = Callable[[Task], Awaitable[str | None]]
Secrets = Callable[[str], str]  # what we share with whoever asked for a task


class TaskRecords:
    """What is told about tasks, whoever asks."""

    def __init__(self, tasks: Tasks, turns: Turns, clock: Clock, *, kept_hours: int) -> None:
        """A task is told about for so many hours after its end."""
        self._tasks = tasks
        self._turns = turns
        self._clock = clock
        self._kept_us = kept_hours * 3600 * 1_000_000

    async def find(self, task: str) -> Task:
        """A task that is kept, or TaskNotFound."""
        found = await self._tasks.find(task, kept_since=self._clock.wall_us() - self._kept_us)
        if found is None:
            raise TaskNotFound
        return found

    async def cancel(self, task: Task) -> Task:
        """Ask for its end, and give it as it is then."""
        await self._tasks.cancel(task.id, self._clock.wall_us())
        return await self.find(task.id)

    async def end(self, task: Task) -> tuple[dict[str, Any] | None, CarnetError | None]:
        """The result or the error of a task that has ended; neither of any other."""
        if task.state not in {"done", "failed"}:
            return None, None
        batches = await self._turns.events(task.turn)
        events: list[Event] = [event for data in batches for event in read_events(data)]
        last = events[-1] if events else None
        if isinstance(last, Failed):
            return None, last.error()
        if isinstance(last, Done):
            return samvad.result_of(events), None
        raise TaskNotFound  # its events are forgotten before the task is

    async def newest(self, *, limit: int, **chosen: Any) -> tuple[list[Task], int | None]:
        """Some of those that are kept, the newest first, and where the next ones begin."""
        since = self._clock.wall_us() - self._kept_us
        found = await self._tasks.list(limit=limit, **chosen)
        kept = [task for task in found if task.turn.ended is None or task.turn.ended >= since]
        return kept, found[-1].turn.n if len(found) == limit else None


class TaskDoor:
    """Tasks for those who asked for them: GET /agent/task/{id} and its cancel."""

    def __init__(
        self,
        records: TaskRecords,
        *,
        agent_of: Callable[[Exchange, str | None], str],
        owners: Owners,
        clock: Clock,
        polling: str,
        wake: Callable[[], None],
        receipt: Receipt,
    ) -> None:
        """`agent_of` gives the agent that is asked; `polling` is "open" or "signed".

        `wake` is told of a task whose end was asked for; `receipt` gives the proof of one that has
        ended, to whoever is owed it.
        """
        self._records = records
        self._agent_of = agent_of
        self._owners = owners
        self._clock = clock
        self._is_open = polling == "open"
        self._wake = wake
        self._receipt = receipt

    async def show(self, exchange: Exchange, task: str) -> None:
        """GET /agent/task/{id}, of the agent at the root."""
        await self._show(exchange, None, task)

    async def show_of(self, exchange: Exchange, agent: str, task: str) -> None:
        """GET /agents/{name}/agent/task/{id}."""
        await self._show(exchange, agent, task)

    async def cancel(self, exchange: Exchange, task: str) -> None:
        """POST /agent/task/{id}/cancel, of the agent at the root."""
        await self._cancel(exchange, None, task)

    async def cancel_of(self, exchange: Exchange, agent: str, task: str) -> None:
        """POST /agents/{name}/agent/task/{id}/cancel."""
        await self._cancel(exchange, agent, task)

    async def _show(self, exchange: Exchange, agent: str | None, task: str) -> None:
        asking = None if self._is_open else self._asking(exchange, b"")
        found = await self._find(exchange, agent, task, asking)
        await self._reply(exchange, 200, found)

    async def _cancel(self, exchange: Exchange, agent: str | None, task: str) -> None:
        body = await exchange.read(MOST_CANCEL_BYTES)
        asking = self._asking(exchange, body)
        found = await self._find(exchange, agent, task, asking)
        found = await self._records.cancel(found)
        self._wake()
        await self._reply(exchange, 202, found)

    def _asking(self, exchange: Exchange, body: bytes) -> samvad.Asking:
        """The signature of a request about a task, in its form and time."""
        short = exchange.path.decode("latin-1")
        short = short[short.rindex(f"{TASK}/") :]  # as it was written, not as it was read
        asking = samvad.read_asking(request_of(exchange), body, short_path=short)
        check_time(asking, self._clock.wall_us())
        return asking

    async def _find(
        self, exchange: Exchange, agent: str | None, task: str, asking: samvad.Asking | None
    ) -> Task:
        found = await self._records.find(task)
        try:
            name = self._agent_of(exchange, agent)
        except CarnetError:  # no such agent, so no such task of it
            raise TaskNotFound from None
        if found.turn.agent != name or not is_agent_uri(found.sender):  # a token asked for it
            raise TaskNotFound
        now = self._clock.wall_us()
        if asking is not None and not await self._owners.is_signed_by(found.sender, asking, now):
            raise TaskNotFound
        return found

    async def _reply(self, exchange: Exchange, status: int, task: Task) -> None:
        result, error = await self._records.end(task)
        body = samvad.write_record(
            task.id, task.state, progress=task.progress, result=result, error=error
        )
        headers = _plain_headers()
        if error is not None:  # the nine codes of the protocol are few
            headers.append((CODE, error.code.encode()))
        receipt = await self._receipt(task)
        if receipt is not None:
            headers.append((RECEIPT_FIELD, receipt.encode()))
        await exchange.reply(status, headers, body)


class TaskPages:
    """Tasks for tokens: made, listed, shown and cancelled."""

    def __init__(
        self,
        records: TaskRecords,
        answering: Answering,
        *,
        access: Access,
        depths: DepthLimits,
        accept: "Accepting",
    ) -> None:
        """`answering` takes requests in; `accept` says that a task was taken on."""
        self._records = records
        self._answering = answering
        self._access = access
        self._depths = depths
        self._accept = accept

    async def create(self, exchange: Exchange) -> None:
        """POST /tasks: a chat request that is answered later."""
        answering = self._answering
        began = answering.begin()
        stamps = read_stamps(exchange.headers, self._depths)
        body = await answering.receive(exchange)
        claim = read_later(exchange.headers, stamps, body)
        call = await answering.admit(claim)
        page = {"taskId": call.task, "status": "accepted"}
        ids = {"run": call.carnet.run, "turn": call.carnet.turn}
        await self._accept(exchange, call, began, json.write(page | ids))

    async def list(self, exchange: Exchange) -> None:
        """GET /tasks."""
        caller = await self._access.check(exchange, "run:read")
        query = parse_qs(exchange.query.decode("latin-1"))
        limit = max(1, min(read_number(query, "limit", 50), MOST_LINES))
        found, following = await self._records.newest(
            limit=limit,
            reader=reader_of(caller),
            before=read_number(query, "before", 0) or None,
            state=_state(query),
            agent=_word(query, "agent"),
        )
        page = {"tasks": [pages.task_line(task) for task in found], "next": following}
        await reply_json(exchange, page)

    async def show(self, exchange: Exchange, task: str) -> None:
        """GET /tasks/{id}."""
        found = await self._seen(exchange, task, "run:read")
        await reply_json(exchange, await self._page(found))

    async def cancel(self, exchange: Exchange, task: str) -> None:
        """POST /tasks/{id}/cancel."""
        found = await self._seen(exchange, task, "run:cancel")
        found = await self._records.cancel(found)
        self._accept.wake()
        await reply_json(exchange, await self._page(found), 202)

    async def _seen(self, exchange: Exchange, task: str, permission: str) -> Task:
        caller = await self._access.check(exchange, permission)
        found = await self._records.find(task)
        reader = reader_of(caller)
        if reader is not None and found.turn.actor != reader:
            raise TaskNotFound
        return found

    async def _page(self, task: Task) -> pages.Page:
        return pages.task_page(task, *await self._records.end(task))


class Accepting:
    """Says that a task was taken on, and has it looked for."""

    def __init__(
        self, answering: Answering, *, wake: Callable[[], None], secret: Secrets | None
    ) -> None:
        """`wake` is told of a new task; `secret` gives what callbacks are signed with."""
        self._answering = answering
        self._secret = secret
        self.wake = wake

    async def __call__(
        self, exchange: Exchange, call: Call, began: float, body: bytes | None = None
    ) -> None:
        """Answer with 202; who named a callback is told the secret that signs its letters.

        `body` is what is said in place of the protocol's two words.
        """
        self.wake()
        headers = [*_plain_headers(), (b"x-tangle-runid", call.carnet.run.encode())]
        if call.callback is not None and self._secret is not None:
            headers.append((SECRET, self._secret(_sender(call)).encode()))
        told = samvad.write_accepted(call.task or "") if body is None else body
        point("reply.before_write")
        await exchange.reply(202, headers, told)
        point("reply.after_write")
        self._answering.note_accepted(exchange, call, began)


def _sender(call: Call) -> str:
    standing = call.caller.standing
    return call.caller.actor.name if standing is None else standing.sender


def _plain_headers() -> RawHeaders:
    return [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]


def _state(query: dict[str, list[str]]) -> TaskState | None:
    word = _word(query, "state")
    if word is not None and word not in _STATES:
        raise InvalidRequest("state", f"must be one of {', '.join(_STATES)}")
    return None if word is None else _STATES[word]


def _word(query: dict[str, list[str]], name: str) -> str | None:
    values = query.get(name)
    if values is None:
        return None
    if len(values) > 1:
        raise InvalidRequest(name, "must stand once")
    if not values[0].isprintable():  # no store need hold a NUL
        raise InvalidRequest(name, "holds control characters")
    return values[0]
