"""A task of an agent elsewhere, in the hands of whoever began it.

    task = await agent.task("summarise", {"text": "..."})
    result = await task.result(on_progress=print)

Law 1. It goes on whether anybody waits for it or not: who leaves has lost nothing but time, and
       comes back with `Client.task_of(id)`.
Law 2. A task that failed is the error of ours that a call would have raised, with its `peer_code`.
Law 3. One that waits for an answer is not waited for: its result is an error with `interrupts`, and
       `answer` lets it go on.
Law 4. An error that nobody catches says what to do about it: its next step is a note beneath it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from msgspec.structs import replace

from carnet.core.messages.events import Waiting
from carnet.core.messages.interrupt import Interrupt, Resolution, StatedResolution
from carnet.core.people.identity import Secret
from carnet.errors import CarnetError, ProviderTimeout, UsageInvalid
from carnet.runtime.peers.samvad_request import SamvadRequest
from carnet.runtime.peers.samvad_tasks import SamvadTasks
from carnet.runtime.stream import closing
from carnet.wire.dialects.policy import RESOLUTION, write_resolution
from carnet.wire.dialects.samvad import TaskRecord, is_task_id

EVERY_SECONDS: Final = 0.5

OnProgress = Callable[[TaskRecord], Awaitable[None] | None]


@contextmanager
def advised() -> Iterator[None]:
    """Note the next step on whatever goes wrong within: a traceback shows it."""
    try:
        yield
    except CarnetError as error:
        if error.next_step not in getattr(error, "__notes__", ()):
            error.add_note(error.next_step)
        raise


class Task:
    """Work that an agent has taken on."""

    def __init__(
        self,
        tasks: SamvadTasks,
        task: str,
        *,
        webhook_secret: Secret | None = None,
        request: SamvadRequest | None = None,
    ) -> None:
        """Use `Client.task`, or `Client.task_of` to come back to one."""
        if not is_task_id(task):
            raise UsageInvalid(
                reason="That is no id of a task.", fix="Give the id that the agent gave."
            )
        self.id = task
        self.webhook_secret = webhook_secret  # a Carnet signs what it sends to the callback with it
        self._tasks = tasks
        self._request = request  # that it was begun with, if we know it

    def __repr__(self) -> str:
        return f"Task({self.id!r})"

    async def status(self) -> TaskRecord:
        """How it goes now: `status`, `progress`, `result`, `error`."""
        with advised():
            return await self._tasks.look(self.id)

    async def watch(self, every: float = EVERY_SECONDS) -> AsyncIterator[TaskRecord]:
        """Its record now and whenever that has changed; the last one is its end.

        It is looked at after `every` seconds, and less often the longer nothing changes.
        """
        with advised():
            async with closing(self._tasks.watch(self.id, every=_positive(every))) as records:
                async for record in records:
                    yield record

    async def result(
        self,
        timeout: float | None = None,  # noqa: ASYNC109  what becomes of the task is not what ends
        *,
        on_progress: OnProgress | None = None,
        every: float = EVERY_SECONDS,
    ) -> dict[str, Any]:
        """Wait for its end and give its result, or raise what it failed with.

        One that waits for an answer raises what it asks for, as `interrupts`. After `timeout`
        seconds it is `ProviderTimeout`, and the task goes on.
        """
        try:
            async with asyncio.timeout(timeout):
                record = await self._end(on_progress, every)
        except TimeoutError:
            late = f"the task has not ended within {timeout:g} s; it goes on"
            raise ProviderTimeout(late) from None
        with advised():
            if record.error is not None:
                raise record.error
            if record.interrupts:
                raise Waiting(record.interrupts).error()
        return record.result or {}

    async def answer(
        self, question: Interrupt, *, accepted: bool = True, value: Any = None
    ) -> None:
        """Answer what it asks for, by one of its `interrupts`: it goes on then.

        Args:
            question: What it asks for.
            accepted: Whether that is granted.
            value: What is asked for: a text, one of the options, arguments that were changed.
        """
        if self._request is None:
            raise UsageInvalid(
                reason="Who comes back to a task by its id cannot answer for it.",
                fix="Answer with the task that 'Client.task' gave, or hand the work over anew.",
            )
        with advised():
            await self._tasks.begin(
                answered(self._request, question, accepted=accepted, value=value)
            )

    async def _end(self, on_progress: OnProgress | None, every: float) -> TaskRecord:
        async with closing(self.watch(every)) as records:
            async for record in records:
                if record.is_over or record.interrupts:
                    return record
                waiting = None if on_progress is None else on_progress(record)
                if waiting is not None:
                    await waiting
        raise AssertionError("the last record of a task is its end")

    async def cancel(self) -> TaskRecord:
        """Ask for its end, which may come a moment later. Of Carnets alone: no SDK knows it."""
        with advised():
            return await self._tasks.cancel(self.id)


def answered(
    request: SamvadRequest, question: Interrupt, *, accepted: bool, value: object
) -> SamvadRequest:
    """The same request with an answer to what it asked for."""
    given = Resolution(outcome="accepted" if accepted else "rejected", value=value)
    written = write_resolution(StatedResolution(question.state, given))
    return replace(request, secrets={**request.secrets, RESOLUTION: Secret(written)})


def _positive(seconds: float) -> float:
    if seconds > 0:
        return seconds
    raise UsageInvalid(reason="There is no pause of 0 seconds.", fix="Give a longer one.")
