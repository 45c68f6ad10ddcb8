"""Where the caller of a task wants to be told of it: named, shown, taken back.

Law 1. An address is judged when it is named, as that of any callback is, and again when it is
       dialled.
Law 2. The secret that is shown there is kept sealed and is never told again.
Law 3. Who names an address under a name that the task has already means another address.
"""

from collections.abc import Sequence
from typing import Protocol

from carnet.core.call import CallbackWish
from carnet.errors import OperationUnsupported, TaskNotFound
from carnet.ports.calls.tasks import MOST_CALLBACKS, Callback, StoredTask, Tasks
from carnet.ports.world.clock import Clock, Ids
from carnet.wire.dialects.dialect import (
    CallbackList,
    CallbackView,
    QuestionResult,
    Removed,
    TaskQuestion,
)


class Addresses(Protocol):
    """Judges where we may be made to call."""

    async def check(self, url: str, sender: str, /) -> None:
        """Raise CallbackForbidden, or return."""


class Callbacks:
    """The addresses of the tasks of one gateway."""

    def __init__(self, tasks: Tasks, addresses: Addresses, clock: Clock, ids: Ids) -> None:
        """`addresses` judges them, `ids` names those without a name."""
        self._tasks = tasks
        self._addresses = addresses
        self._clock = clock
        self._ids = ids

    async def answer(self, task: StoredTask, question: TaskQuestion) -> QuestionResult:
        """What is asked about the addresses of a task of the asker."""
        if question.about == "add_callback" and question.wish is not None:
            return await self._add(task, question.wish)
        known = await self._tasks.callbacks(task.id)
        if question.about == "callbacks":
            return _page(task, known, question)
        named = [each for each in known if _name(each) == question.name]
        if question.about == "callback":
            if not named:
                raise TaskNotFound
            return _view(task, named[0])
        for each in named:
            await self._tasks.remove_callback(task.id, each.place)
        return Removed()

    async def _add(self, task: StoredTask, wish: CallbackWish) -> CallbackView:
        await self._addresses.check(wish.url, task.sender)
        callback = Callback(
            url=wish.url,
            name=wish.name or self._ids.uuid(),
            dialect=wish.dialect,
            token=wish.token,
            authorization=wish.authorization,
            created=self._clock.wall_us(),
        )
        former = [
            each for each in await self._tasks.callbacks(task.id) if _name(each) == callback.name
        ]
        if not await self._tasks.add_callback(task.id, callback):
            raise OperationUnsupported(reason=f"it is told at {MOST_CALLBACKS} addresses already")
        for each in former:
            await self._tasks.remove_callback(task.id, each.place)
        return _view(task, callback)


def _page(task: StoredTask, known: Sequence[Callback], question: TaskQuestion) -> CallbackList:
    after = -1 if question.page is None else question.page[0]
    rest = [each for each in known if each.place > after]
    reported = rest[: question.limit]
    more = reported[-1].place if len(rest) > len(reported) else None
    return CallbackList(callbacks=tuple([_view(task, each) for each in reported]), after=more)


def _name(callback: Callback) -> str:
    return callback.name or str(callback.place)


def _view(task: StoredTask, callback: Callback) -> CallbackView:
    secret = callback.authorization
    return CallbackView(
        task=task.id,
        name=_name(callback),
        url=callback.url,
        token=callback.token,
        scheme=None if secret is None else secret.reveal().partition(" ")[0],
    )
