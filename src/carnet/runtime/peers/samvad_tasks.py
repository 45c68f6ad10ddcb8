"""Tasks at a SAMVAD agent: begun by a signed request, asked for until they end, cancelled.

Law 1. Who has begun a task and cannot ask for it has not failed to begin it: whatever goes wrong
       after that is never told as if the request had not left.
Law 2. It is asked for unsigned, as the protocol has it; where that is answered with 401, signed
       from then on.
Law 3. The pauses grow while nothing changes. A peer that does not answer for a while is asked
       again, and one that says how long to wait is not asked sooner.
Law 4. A task of a Carnet that waits is no longer waited for: what it asks for is given instead.
Law 5. Who leaves a task that a Carnet runs for us asks for its end; nobody waits for that.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from carnet.core.messages.events import Waiting
from carnet.core.messages.output import Sink
from carnet.core.people.identity import Secret
from carnet.errors import (
    Cancelled,
    CarnetError,
    PeerBusy,
    ProviderError,
    ProviderTimeout,
    ProviderUnavailable,
    TaskNotFound,
    UsageInvalid,
)
from carnet.ports.world.http_client import HttpAnswer
from carnet.runtime.peers.answer_reader import read_some, tell
from carnet.runtime.peers.policies import Ending
from carnet.runtime.peers.samvad_client import RecipientClient
from carnet.runtime.peers.samvad_request import TASK, Form, SamvadRequest
from carnet.runtime.receipts.verification import ExpectedReceipt
from carnet.runtime.stream import closing
from carnet.wire import travel
from carnet.wire.dialects import policy, samvad
from carnet.wire.dialects.refusal import BY_PEER

SECRET_HEADER: Final = "carnet-webhook-secret"  # noqa: S105  the name of a header
FIRST_SECONDS: Final = 0.1
GROWTH: Final = 1.3
LONGEST_SECONDS: Final = 5.0
MOST_FAILURES: Final = 10  # in a row, before a peer counts as lost
GIVE_UP_SECONDS: Final = 5.0  # what asking for an end may take

_OK: Final = range(200, 300)
_UNAUTHORIZED: Final = 401
_NOT_FOUND: Final = 404
_MISSING: Final = frozenset({_NOT_FOUND, 405, 501})
_SERVER_FAULT: Final = 500
_TRANSIENT: Final = (PeerBusy, ProviderTimeout, ProviderUnavailable)

Sleep = Callable[[float], Awaitable[object]]


class Begun(Struct, frozen=True):
    """A task that the other side has taken on."""

    id: str
    webhook_secret: Secret | None  # of a Carnet that was given a callback
    form: Form


class SamvadTasks:
    """The tasks of one agent."""

    def __init__(
        self, client: RecipientClient, *, sleep: Sleep = asyncio.sleep, currency: str = ""
    ) -> None:
        """`client` sends the requests to it; `sleep` is where a cancellation finds who waits.

        `currency` is that of amounts which a task may ask for.
        """
        self._client = client
        self._currency = currency
        self._sleep = sleep
        self._signs = False  # whether it answers only those who sign
        self._leaving: set[asyncio.Task[Any]] = set()

    async def begin(self, request: SamvadRequest) -> Begun:
        """Hand the task over."""
        async with self._client.sent(request) as (answer, form):
            if answer.status not in _OK:
                raise await self._client.refusal(answer)
            secret = answer.header(SECRET_HEADER)
            task = samvad.read_accepted(await answer.read())
        return Begun(task, Secret(secret) if secret else None, form)

    async def look(self, task: str, receipt: ExpectedReceipt | None = None) -> samvad.TaskRecord:
        """How it goes; TaskNotFound if the other side does not know it, or no more."""
        path = f"{TASK}/{quote(task, safe='')}"
        async with self._client.asking("GET", path, signed=self._signs) as answer:
            if answer.status != _UNAUTHORIZED or self._signs:
                return await self._read(answer, task, receipt)
        self._signs = True
        async with self._client.asking("GET", path, signed=True) as answer:
            return await self._read(answer, task, receipt)

    async def cancel(self, task: str) -> samvad.TaskRecord:
        """Ask for its end; UsageInvalid where the other side has no word for that."""
        path = f"{TASK}/{quote(task, safe='')}/cancel"
        async with self._client.asking("POST", path, signed=True) as answer:
            if answer.status in _MISSING and not samvad.is_unknown_task(await read_some(answer)):
                raise UsageInvalid(
                    reason="The agent cannot cancel tasks: its protocol has no word for that.",
                    fix="Let the task end by itself; of Carnets they can be cancelled.",
                )
            return await self._read(answer, task, None)

    async def watch(
        self, task: str, *, every: float = FIRST_SECONDS, receipt: ExpectedReceipt | None = None
    ) -> AsyncIterator[samvad.TaskRecord]:
        """Its record whenever that has changed, the last one with its end."""
        pauses, failures = Pauses(every), 0
        last: samvad.TaskRecord | None = None
        while True:
            try:
                record = await self.look(task, receipt)
            except _TRANSIENT as error:
                failures += 1
                if failures > MOST_FAILURES:
                    raise lost(error) from None
                await self._sleep(max(pauses.next(), error.retry_after or 0))
                continue
            failures = 0
            if record != last:
                yield record
                pauses.begin_again()
            if record.is_over:
                return
            last = record
            await self._sleep(pauses.next())

    async def wait(
        self, task: str, *, every: float = FIRST_SECONDS, receipt: ExpectedReceipt | None = None
    ) -> samvad.TaskRecord:
        """Its last record, or the one that says what it waits for."""
        async with closing(self.watch(task, every=every, receipt=receipt)) as records:
            async for record in records:
                if record.is_over or record.interrupts:
                    return record
        raise ProviderError("the task ended without an end")

    async def run(self, request: SamvadRequest, sink: Sink, receipt: ExpectedReceipt) -> Ending:
        """Read the answer that the task ends with into a Sink, as a call puts its own.

        Who leaves before asks for its end.
        """
        begun = await self.begin(request)
        read = partial(self._read_end, begun.id, receipt)
        try:
            return await self._client.proven(read, begun.form, request, receipt, sink)
        except asyncio.CancelledError:
            self._leave(begun.id)
            raise

    async def _read_end(self, task: str, receipt: ExpectedReceipt, sink: Sink) -> Ending:
        try:
            record = await self.wait(task, receipt=receipt)
            if record.interrupts:
                return _waiting(record)
            events = samvad.task_events(record)
        except (TaskNotFound, Cancelled) as error:  # of their doing, and not of our caller's
            raise ProviderError(f"the task that it took on has no end: {error.code}") from None
        return await tell(events, sink)

    async def _read(
        self, answer: HttpAnswer, task: str, receipt: ExpectedReceipt | None
    ) -> samvad.TaskRecord:
        if answer.status == _NOT_FOUND:
            raise TaskNotFound
        if answer.status not in _OK:
            error = await self._client.refusal(answer)
            if answer.status >= _SERVER_FAULT and not isinstance(error, PeerBusy):
                raise ProviderUnavailable(error.detail)  # of the gateway, not of the task
            raise error
        if receipt is not None:
            receipt.presented = answer.header(travel.RECEIPT_HEADER)
        code = answer.header(samvad.CODE_HEADER)
        asked = policy.read_header(answer.header(policy.INTERRUPT), currency=self._currency)
        return samvad.read_task(await answer.read(), task=task, carnet_code=code, asked=asked)

    def _leave(self, task: str) -> None:
        leaving = asyncio.get_running_loop().create_task(self._give_up(task))
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)

    async def _give_up(self, task: str) -> None:
        try:
            async with asyncio.timeout(GIVE_UP_SECONDS):
                if await self._client.is_carnet():
                    await self.cancel(task)
        except (CarnetError, TimeoutError):
            pass  # it ends when it ends


class Pauses:
    """How long to wait between two looks: longer while nothing changes."""

    __slots__ = ("_first", "_longest", "_next")

    def __init__(self, first: float) -> None:
        self._first = self._next = first
        self._longest = max(first, LONGEST_SECONDS)

    def next(self) -> float:
        """The next pause."""
        pause = self._next
        self._next = min(pause * GROWTH, self._longest)
        return pause

    def begin_again(self) -> None:
        """Something changed: more may follow soon."""
        self._next = self._first


def _waiting(record: samvad.TaskRecord) -> Waiting:
    """What a task waits for; raises what nobody can answer (R43)."""
    if (over := policy.over_of(record.interrupts)) is not None:
        raise over
    return Waiting(record.interrupts)


def lost(error: CarnetError) -> CarnetError:
    """The same as an end: a look that never left is no task that was never begun."""
    detail = f"it took on a task and does not tell how it goes: {error.code}"
    is_late = isinstance(error, ProviderTimeout)
    kind = ProviderTimeout if is_late else ProviderUnavailable
    return kind(detail, by=BY_PEER)
