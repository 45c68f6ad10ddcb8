"""The process of a gateway: the event loop that it runs on, for as long as it lives.

Law 1. A signal ends the process, and what is raised does not. asyncio lets KeyboardInterrupt and
       SystemExit out of the loop, whoever raises them: an agent, a task that it began, a callback.
       What had raised has failed then; the loop is entered again, and goes on with the rest.
Law 2. A process that was told to stop ends: drain, grace, exit. Tasks and threads that have not
       ended by then are left behind. Who holds the loop or the interpreter, so that nothing else
       comes to its turn, is written down and ended with the process.
Law 3. What an agent forks is none of us: it has neither our port nor our callers, a signal ends it
       and does not reach us, and it ends where it would come back to the loop.
"""

import asyncio
import concurrent.futures.thread as pools
import faulthandler
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TextIO, TypeVar

import uvloop

logger = logging.getLogger("carnet.process")

Main = Callable[[], Coroutine[Any, Any, int]]
Descriptors = Callable[[], Iterable[int]]
T = TypeVar("T")

STOPPING: Final = (signal.SIGTERM, signal.SIGINT)
OURS: Final = (*STOPPING, signal.SIGHUP)  # those that a child of ours must not take for us
GRACE_SECONDS: Final = 10.0
# That a thread which computes keeps the interpreter from the loop and the store, each time they ask
# for it: some forty times a call.
SWITCH_SECONDS: Final = 0.0001
RECORD_SECONDS: Final = 10.0  # for recording the end of calls that the drain did not wait for
LAST_SECONDS: Final = 2.0  # beyond the grace: whoever comes to its turn ends well
LOOK_SECONDS: Final = 0.05
MOST_NAMED: Final = 10  # of those that are left behind


class Process:
    """One run of a gateway, from its first task to the end of the process."""

    def __init__(self, *, drain_seconds: float = 0.0, grace_seconds: float = GRACE_SECONDS) -> None:
        """`drain_seconds` is what calls have to end in, `grace_seconds` whatever runs then."""
        self._drain_seconds = drain_seconds
        self._grace_seconds = grace_seconds
        self._loop = uvloop.new_event_loop()
        self._is_stopping = False
        self._until: float | None = None  # by when all must have ended, in the time of the loop
        self._left_behind: list[str] = []
        self._own: list[Descriptors] = []

    def run(self, main: Main) -> int:
        """Run the main coroutine, and end whatever it leaves; its exit code."""
        loop = self._loop
        sys.setswitchinterval(SWITCH_SECONDS)
        _current[:] = [self]
        task = loop.create_task(main())
        with _interrupting(loop, task) as was_interrupted:
            try:
                return _outlive(loop, task)
            except asyncio.CancelledError:
                if was_interrupted():
                    raise KeyboardInterrupt from None
                raise
            finally:
                self._end()
                _current.clear()

    def own(self, descriptors: Descriptors) -> None:
        """No child of ours is to have these; they are asked for when there is one."""
        self._own.append(descriptors)

    def forget(self) -> None:
        """This is a child that was forked: be none of the gateway."""
        signal.set_wakeup_fd(-1)  # it leads into the gateway's own loop
        for number in OURS:
            signal.signal(number, signal.SIG_DFL)
        _give_up({each for own in self._own for each in own()})
        self._loop.call_soon(os._exit, 1)  # should it ever come back there

    def stop(self) -> None:
        """It was told to stop; the second time, to stop now. A signal may call this anywhere."""
        if self._is_stopping:
            self.drained()
            return
        self._is_stopping = True
        self._arm(self._drain_seconds + RECORD_SECONDS + self._grace_seconds)

    def drained(self) -> None:
        """No call is waited for any more: from now on there is the grace alone."""
        self._is_stopping = True
        self._arm(self._grace_seconds)

    def leave(self, code: int) -> int:
        """End the process, without those that did not end; else give its code to who ends it."""
        _end_at_last(self._grace_seconds)  # also what Python itself waits for at its end
        _let_go(sys.stdout)
        _let_go(sys.stderr)
        if self._left_behind:
            os._exit(code)
        return code

    def _arm(self, seconds: float) -> None:
        self._until = self._loop.time() + seconds
        _end_at_last(seconds)

    def _end(self) -> None:
        """End what has not ended, and wait for it no longer than the grace allows."""
        if self._until is None:
            self.drained()
        tasks = asyncio.all_tasks(self._loop)
        for each in tasks:
            each.cancel()
        tasks.add(self._loop.create_task(self._loop.shutdown_default_executor()))
        late = _outlive(self._loop, self._loop.create_task(self._late(tasks)))
        self._left_behind += [f"task {each.get_name()}" for each in late]
        if not late:
            self._left_behind += [f"thread {each.name}" for each in _late_threads(self._left)]
            self._loop.close()
        if self._left_behind:
            names = ", ".join(self._left_behind[:MOST_NAMED])
            logger.warning("some do not end and are left behind", extra={"detail": names})
        faulthandler.cancel_dump_traceback_later()

    def _left(self) -> float:
        """Seconds that are left."""
        return 0.0 if self._until is None else max(0.0, self._until - self._loop.time())

    async def _late(self, tasks: "set[asyncio.Task[Any]]") -> "set[asyncio.Task[Any]]":
        """Those of the tasks that have not ended in time."""
        _, late = await asyncio.wait(tasks, timeout=self._left())
        return late


_current: Final[list[Process]] = []  # the one that runs
_masks: Final[list[set[int | signal.Signals]]] = []  # of the thread that forks, while it does


def _before_fork() -> None:
    """A child that is told to end before it has put our ways aside is told afterwards."""
    if _current:
        _masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, OURS))


def _after_fork() -> None:
    if _masks:
        signal.pthread_sigmask(signal.SIG_SETMASK, _masks.pop())


def _after_fork_in_child() -> None:
    for process in _current:
        process.forget()
    _current.clear()
    _after_fork()


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child
)


def _give_up(descriptors: Iterable[int]) -> None:
    """Let go of files without freeing their numbers: who knows them might close another's."""
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for each in descriptors:
        if each >= 0:
            os.dup2(nothing, each, inheritable=False)
    os.close(nothing)


def _late_threads(left: Callable[[], float]) -> list[threading.Thread]:
    """The threads that Python would wait for at its end, and that have not ended in time.

    Those of a pool that have nothing to do are not waited for: Python ends them.
    """
    others = [
        each
        for each in threading.enumerate()
        if not each.daemon and each is not threading.main_thread()
    ]
    for each in others:
        while each.is_alive() and not _is_idle(each) and left():
            each.join(min(left(), LOOK_SECONDS))
    return [each for each in others if each.is_alive() and not _is_idle(each)]


def _is_idle(thread: threading.Thread) -> bool:
    """Whether a thread is one of a pool, and waits for work."""
    frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001  documented so
    return frame is not None and frame.f_code is pools._worker.__code__  # noqa: SLF001  only compared


def _end_at_last(seconds: float) -> None:
    """End the process when the time is over, though nobody here comes to do it.

    A thread of the interpreter's own does, which needs no turn of ours: who held the process is
    written to its errors, and the exit code is 1.
    """
    errors = sys.__stderr__ if sys.__stderr__ is not None else 2
    faulthandler.dump_traceback_later(seconds + LAST_SECONDS, exit=True, file=errors)


def _let_go(stream: TextIO | None) -> None:
    """Write what was printed. What cannot be is given up, or Python ends with a code of its own."""
    if stream is None:
        return
    try:
        stream.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def _outlive(loop: asyncio.AbstractEventLoop, task: "asyncio.Task[T]") -> T:
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
