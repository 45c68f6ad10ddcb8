"""The process of a gateway: the event loop that it runs on, for as long as it lives.

Law. A signal ends the process, and what is raised does not. asyncio lets KeyboardInterrupt and
     SystemExit out of the loop, whoever raises them: an agent, a task that it began, a callback.
     What had raised has failed then; the loop is entered again, and goes on with the rest.
"""

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import uvloop

logger = logging.getLogger("carnet.process")

Main = Callable[[], Coroutine[Any, Any, int]]


def run(main: Main) -> int:
    """Run a gateway's main coroutine on the event loop it is built for."""
    loop = uvloop.new_event_loop()
    try:
        task = loop.create_task(main())
        with _interrupting(loop, task) as was_interrupted:
            try:
                return _outlive(loop, task)
            except asyncio.CancelledError:
                if was_interrupted():
                    raise KeyboardInterrupt from None
                raise
            finally:
                _end_tasks(loop)
    finally:
        loop.close()


def _outlive(loop: asyncio.AbstractEventLoop, task: "asyncio.Task[int]") -> int:
    """Run the loop until the task has ended, however often it is left before."""
    while True:
        loop.call_soon(_unlist)
        try:
            return loop.run_until_complete(task)
        except (KeyboardInterrupt, SystemExit) as error:
            if task.done():
                raise
            logger.exception("%s was raised beside a call", type(error).__name__)


def _unlist() -> None:
    """Keep no list of the generators that are begun.

    The loop does, to close them all at its end. Ours are closed by whoever listens
    (`runtime.stream`), and the list costs a tenth of a hop. One that is dropped is still closed by
    the loop: its finalizer stays.
    """
    sys.set_asyncgen_hooks(firstiter=None, finalizer=sys.get_asyncgen_hooks().finalizer)


@contextmanager
def _interrupting(
    loop: asyncio.AbstractEventLoop, task: "asyncio.Task[int]"
) -> Iterator[Callable[[], bool]]:
    """While nobody else listens to Ctrl-C it cancels the task, and the second one interrupts."""
    interrupted = False

    def interrupt(_: int, __: object) -> None:
        nonlocal interrupted
        if interrupted or task.done():
            raise KeyboardInterrupt
        interrupted = True
        loop.call_soon_threadsafe(task.cancel)

    former = signal.signal(signal.SIGINT, interrupt)
    try:
        yield lambda: interrupted
    finally:
        signal.signal(signal.SIGINT, former)


def _end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """End what has not ended."""
    left = asyncio.all_tasks(loop)
    for each in left:
        each.cancel()
    if left:
        _outlive(loop, loop.create_task(_ended(left)))
    loop.run_until_complete(loop.shutdown_default_executor())


async def _ended(tasks: "set[asyncio.Task[Any]]") -> int:
    await asyncio.wait(tasks)
    return 0
