"""Tasks at a terminal: waiting for one, and saying how to come back to it.

Law 1. The result goes to stdout. How far it is, is told on stderr, and to a person only.
Law 2. Who stops waiting is told that the task goes on, and the commands that show and cancel it.
Law 3. A gateway that was there and does not answer now is waited for, as long as the task is.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, TypeGuard
from urllib.parse import quote

from msgspec import Struct

from carnet.cli.failures import GATEWAY_TROUBLE, GatewayError, error_object
from carnet.cli.invocation import Invocation, find_begun, in_line, visible
from carnet.cli.progress import ProgressLine
from carnet.cli.reach.gateway import Credential
from carnet.cli.reach.pages import Pages
from carnet.cli.reach.request import CallOptions
from carnet.errors import (
    BY_CODE,
    CircuitOpen,
    ProviderError,
    ProviderTimeout,
    ProviderUnavailable,
    TaskNotFound,
    Unreachable,
)
from carnet.runtime.agents.samvad_peer import as_text
from carnet.runtime.peers.samvad_client import RecipientClient
from carnet.runtime.peers.samvad_request import SamvadRequest
from carnet.runtime.peers.samvad_tasks import SamvadTasks
from carnet.runtime.stream import closing
from carnet.wire.dialects.policy import interrupt_object
from carnet.wire.dialects.samvad import TaskRecord

MOST_TASKS: Final = 200  # that are looked through for the beginning of an id
FIRST_SECONDS: Final = 0.2
GROWTH: Final = 1.3
LONGEST_SECONDS: Final = 3.0
_DEFAULT_STATUS: Final = 502
_AWAY: Final = (Unreachable, ProviderUnavailable, ProviderTimeout, ProviderError, CircuitOpen)


class TaskStatus(Struct, frozen=True, kw_only=True):
    """How a task stands, wherever it runs."""

    status: str
    progress: float | None = None
    note: str | None = None
    result: dict[str, Any] | None = None
    error: Exception | None = None
    waits: str | None = None  # what for, in words

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.status in {"done", "failed"}

    @property
    def text(self) -> str:
        """For people."""
        if self.is_over:  # what was noted on the way is of no use any more
            return self.status
        share = "" if self.progress is None else f" {self.progress:.0%}"
        words = self.waits or self.note
        return f"{self.status}{share}" + (f"  {in_line(words)}" if words else "")


class SilenceNote:
    """Says once that nobody answers, and that this is waited for."""

    def __init__(self, invocation: Invocation, text: str) -> None:
        """`text` is what is said."""
        self._invocation = invocation
        self._text = text
        self._is_shown = False

    def __call__(self) -> None:
        """Nobody answers just now."""
        if not self._is_shown:
            self._is_shown = True
            ProgressLine().say("")  # the line with the progress
            self._invocation.note(self._invocation.spell(self._text))

    @classmethod
    def here(cls, invocation: Invocation) -> "SilenceNote":
        """That of our own gateway."""
        text = "The gateway does not answer. The task is kept: waiting for it (carnet serve)."
        return cls(invocation, text)

    @classmethod
    def elsewhere(cls, invocation: Invocation) -> "SilenceNote":
        """That of an agent elsewhere."""
        return cls(invocation, "The agent does not answer. It has the task: waiting for it.")


class Named(Struct, frozen=True):
    """A task, and how it is named at the command line."""

    id: str
    at: str = ""  # the address of an agent elsewhere, and the key that we signed with

    @classmethod
    def elsewhere(cls, task: str, address: str, key: str | None) -> "Named":
        """A task of an agent elsewhere."""
        return cls(task, f" --at {address}" + (f" --key {key}" if key else ""))

    def command(self, verb: str) -> str:
        """The command that does something about it."""
        return f"carnet tasks {verb} {self.id}{self.at}"

    @property
    def goes_on(self) -> str:
        """What to say to somebody who stops waiting."""
        return (
            f"The task goes on. See it: {self.command('show')}\n"
            f"Wait for it: {self.command('wait')}   Cancel it: {self.command('cancel')}"
        )


async def print_task(
    invocation: Invocation, asked: CallOptions, client: RecipientClient, request: SamvadRequest
) -> None:
    """Hand a task over to an agent elsewhere, wait for it and print its result."""
    tasks = SamvadTasks(client)
    begun = await tasks.begin(request)
    named = Named.elsewhere(begun.id, asked.address, asked.key)
    ids = {"taskId": begun.id, "run": request.trace_id, "turn": request.span_id}
    if begun.webhook_secret is not None:
        ids["webhook_secret"] = begun.webhook_secret.reveal()
    if asked.no_wait:
        _print_begun(invocation, named, ids)
        return
    _note(invocation, ids)
    seen = seen_there(tasks, begun.id, SilenceNote.elsewhere(invocation), is_known=True)
    result = await follow(invocation, named, seen, asked.timeout)
    print_result(invocation, result, ids)


async def print_own_task(
    invocation: Invocation, asked: CallOptions, page: dict[str, Any], by: Credential
) -> None:
    """The same for a task that our own gateway has taken on, from somebody with this credential."""
    named = Named(str(page.get("taskId")))
    words = ("run", "turn", "webhook_secret")
    ids = {"taskId": named.id, **{word: page[word] for word in words if page.get(word)}}
    if asked.no_wait:
        _print_begun(invocation, named, ids)
        return
    _note(invocation, ids)
    async with Pages(invocation, asked.token, by, was_there=True) as pages:
        seen = seen_here(pages, named.id, SilenceNote.here(invocation))
        result = await follow(invocation, named, seen, asked.timeout)
    print_result(invocation, result, ids)


async def follow(
    invocation: Invocation, named: Named, seen: AsyncIterator[TaskStatus], seconds: float | None
) -> dict[str, Any]:
    """Wait for the end of a task, and give its result or raise what it failed with."""
    try:
        async with asyncio.timeout(seconds):
            end = await _end(seen)
    except TimeoutError:
        raise _too_late(named, seconds or 0) from None
    except asyncio.CancelledError:
        invocation.note(invocation.spell(named.goes_on))
        raise
    if end.error is not None:
        raise end.error
    return end.result or {}


async def _end(seen: AsyncIterator[TaskStatus]) -> TaskStatus:
    with ProgressLine() as line:
        async with closing(seen) as states:
            async for state in states:
                if state.is_over:
                    return state
                line.say(state.text)
    raise AssertionError("the last state of a task is its end")


async def seen_there(
    tasks: SamvadTasks, task: str, silence: Callable[[], None], *, is_known: bool
) -> AsyncIterator[TaskStatus]:
    """A task of an agent elsewhere, whenever it has changed.

    Who never answered is not waited for, unless it is known to be there.
    """
    while True:
        try:
            async with closing(tasks.watch(task, every=FIRST_SECONDS)) as records:
                async for record in records:
                    is_known = True
                    yield TaskStatus(
                        status=record.status,
                        progress=record.progress,
                        result=record.result,
                        error=record.error,
                        waits=waits_for([interrupt_object(one) for one in record.interrupts]),
                    )
        except (ProviderUnavailable, ProviderTimeout):  # it was asked several times
            if not is_known:
                raise
            silence()
        else:
            return


def page_of(record: TaskRecord) -> dict[str, Any]:
    """A record as JSON shows it, with the error in the one shape that errors have here."""
    page: dict[str, Any] = {"taskId": record.id, "status": record.status}
    if record.progress is not None:
        page["progress"] = record.progress
    if record.result is not None:
        page["result"] = record.result
    if record.error is not None:
        page["error"] = error_object(record.error)
    if record.interrupts:
        page["interrupts"] = [interrupt_object(asked) for asked in record.interrupts]
    return page


def waits_for(interrupts: object) -> str | None:
    """What a task waits for, in words; None if it does not."""
    asked = [one for one in interrupts if isinstance(one, dict)] if _is_list(interrupts) else []
    words = [
        " ".join(str(one[name]) for name in ("kind", "amount", "currency") if one.get(name))
        + (f" for {one['origin']}" if one.get("origin") else "")
        for one in asked
    ]
    return f"waits for {', '.join(words)}" if words else None


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


async def find_page(pages: Pages, task: str) -> dict[str, Any]:
    """The page of a task of our gateway, by its id or the beginning of it."""
    try:
        return await pages.read(task_path(task))
    except (TaskNotFound, GatewayError) as error:
        return await pages.read(task_path(await find_begun_task(pages, task, error)))


async def find_id(pages: Pages, task: str) -> str:
    """The id of a task, of which the beginning may be given; as it is if nobody can tell now."""
    try:
        return str((await find_page(pages, task))["taskId"])
    except GatewayError as failure:
        if failure.status not in GATEWAY_TROUBLE:
            raise
    except _AWAY:
        pass  # it was there a moment ago
    return task


async def find_begun_task(pages: Pages, task: str, error: TaskNotFound | GatewayError) -> str:
    """The id of the only task that begins so; what was met if there is none, or if it was else."""
    if isinstance(error, GatewayError) and error.facts.get("code") != TaskNotFound.code:
        raise error
    newest = (await pages.read(f"/tasks?limit={MOST_TASKS}"))["tasks"]
    found = find_begun(task, (entry["taskId"] for entry in newest), "task")
    if found is None:
        raise error
    return found


async def seen_here(
    pages: Pages, task: str, silence: Callable[[], None]
) -> AsyncIterator[TaskStatus]:
    """A task of our own gateway, whenever it has changed."""
    pause, last = FIRST_SECONDS, None
    while True:
        state = await _look(pages, task)
        if state is None or (pages.is_stored and not state.is_over):
            silence()
        if state is not None and state != last:
            yield state
            if state.is_over:
                return
            pause, last = FIRST_SECONDS, state
        await asyncio.sleep(pause)
        pause = min(pause * GROWTH, LONGEST_SECONDS)


async def _look(pages: Pages, task: str) -> TaskStatus | None:
    """How a task stands; None if nobody can tell just now."""
    try:
        return seen_in(await pages.read(task_path(task)))
    except GatewayError as failure:
        if failure.status not in GATEWAY_TROUBLE:
            raise
    except _AWAY:
        await pages.find_again()
    return None


def task_path(task: str, tail: str = "") -> str:
    """Where our gateway tells about a task."""
    return f"/tasks/{quote(task, safe='')}{tail}"


def seen_in(page: dict[str, Any]) -> TaskStatus:
    """What a page of our gateway says about a task."""
    error = page.get("error")
    result = page.get("result")
    return TaskStatus(
        status=str(page.get("status")),
        progress=page.get("progress"),
        note=page.get("note"),
        result=result if isinstance(result, dict) else None,
        error=_failure(error) if page.get("status") == "failed" else None,
        waits=waits_for(page.get("interrupts")),
    )


def _failure(error: object) -> GatewayError:
    facts = error if isinstance(error, dict) else {}
    kind = BY_CODE.get(str(facts.get("code")))
    status = _DEFAULT_STATUS if kind is None else kind.status
    return GatewayError(
        {"code": "agent_failed", "message": "The task has failed.", **facts}, status
    )


def print_result(invocation: Invocation, result: dict[str, Any], ids: dict[str, Any]) -> None:
    """The result of a task, as that of a call is printed."""
    invocation.result({"result": result, **ids}, lambda: visible(as_text(result)))


def _note(invocation: Invocation, ids: dict[str, Any]) -> None:
    """Name the task before it is waited for: who stops can come back to it."""
    if invocation.format == "text":
        words = {"task": ids["taskId"], **ids}
        del words["taskId"]
        invocation.note("  ".join(f"{word} {value}" for word, value in words.items()))


def _print_begun(invocation: Invocation, named: Named, ids: dict[str, Any]) -> None:
    invocation.result({**ids, "status": "accepted"}, lambda: named.id)
    if invocation.format == "text":
        invocation.note(invocation.spell(named.goes_on))


def _too_late(named: Named, seconds: float) -> GatewayError:
    facts = {
        "code": ProviderTimeout.code,
        "message": f"The task has not ended within {seconds:g} s (--timeout).",
        "hint": named.goes_on,
        "taskId": named.id,
    }
    return GatewayError(facts, ProviderTimeout.status)
