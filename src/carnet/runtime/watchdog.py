"""Noticing that somebody holds the event loop, which everybody waits for, and who it was.

A thread looks at the stack of the loop. Whenever something runs there it asks the loop for a beat,
and while that is overdue it notes what it sees. What is told afterwards names the functions that
ran then and, if a call was among them, its run, turn and agent.

Law 1. It changes nothing: it looks, counts and writes a line of the log.
Law 2. The time of Python's collector of cycles is nobody's, and is left out.
Law 3. `seconds` is how long everybody waited; `cpu` is how much of that the loop itself worked.
       On a machine that is busy with something else the first is long and the second is not.
Law 4. A loop that has nothing to do is not woken.
"""

import asyncio
import contextlib
import gc
import inspect
import logging
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Final, NamedTuple, Self

from carnet.core.call import Call

logger = logging.getLogger("carnet.loop")

BEAT_SECONDS: Final = 0.2  # between two looks at whether anything runs
LOOK_SECONDS: Final = 0.05  # between two looks at the stack while a beat is overdue
HELD_SECONDS: Final = 0.25  # after it was asked for a beat is so late: then it is told
_FRAMES: Final = 12  # the innermost, of a stack that is told

_RUNNER: Final = asyncio.runners.__file__  # the frame of the loop itself
_PACKAGE: Final = str(Path(__file__).parents[1])


class Holding(NamedTuple):
    """What the stack of the loop was while a beat was overdue."""

    where: str
    call: Call | None


class Asked(NamedTuple):
    """What was so when a beat was asked for."""

    at: float
    cpu: float  # of the loop's thread
    collected: float


class Watchdog:
    """Watches the loop that it is entered on."""

    def __init__(self, note: Callable[[float], None]) -> None:
        """`note` counts how many seconds the loop was held, whenever it was."""
        self._note = note
        self._ending = threading.Lock()
        self._loop_thread = threading.get_ident()
        self._clock = time.pthread_getcpuclockid(self._loop_thread)
        self._collecting = self._collected = 0.0  # CPU time, of the collector in the loop's thread
        self._asked: Asked | None = None  # a beat, that has not come
        self._seen: dict[str, Holding] = {}  # since it was asked for, by where

    def __enter__(self) -> Self:
        """Begin to watch."""
        gc.callbacks.append(self._note_collection)
        self._ending.acquire()
        watching = (asyncio.get_running_loop(), runner_of(inspect.currentframe()))
        threading.Thread(
            target=self._look_on, args=watching, name="carnet-watchdog", daemon=True
        ).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Watch no more."""
        self._ending.release()
        gc.callbacks.remove(self._note_collection)

    def _beat(self, asked: Asked) -> None:
        """Say that the loop goes round, and tell if it has not for a while."""
        collected = self._collected - asked.collected
        seconds = time.monotonic() - asked.at - collected
        if seconds > HELD_SECONDS:
            self._tell(seconds, min(seconds, time.thread_time() - asked.cpu - collected))
        self._asked = None

    def _note_collection(self, phase: str, _: dict[str, int]) -> None:
        if threading.get_ident() != self._loop_thread:
            return
        if phase == "start":
            self._collecting = time.thread_time()
        else:
            self._collected += time.thread_time() - self._collecting

    def _tell(self, seconds: float, cpu: float) -> None:
        self._note(seconds)
        seen = list(self._seen.values())
        call = next((holding.call for holding in seen if holding.call is not None), None)
        fields: dict[str, object] = {"seconds": round(seconds, 3), "cpu": round(cpu, 3)}
        if seen:
            fields["detail"] = "; ".join(holding.where for holding in seen[-3:])
        if call is not None:
            fields |= {"run": call.carnet.run, "turn": call.carnet.turn, "agent": call.agent}
        logger.warning("the event loop was held", extra=fields)

    # From here on the watchdog's own thread.

    def _look_on(self, loop: asyncio.AbstractEventLoop, runner: CodeType | None) -> None:
        pause = BEAT_SECONDS
        while not self._ending.acquire(timeout=pause):
            frames = sys._current_frames()  # noqa: SLF001  the one way to see another thread
            frame = frames.pop(self._loop_thread, None)
            frames.clear()
            if frame is None:
                pause = BEAT_SECONDS
            elif self._asked is not None:
                holding = _holding(frame)
                self._seen[holding.where] = holding
            elif pause == LOOK_SECONDS:  # the beat has come
                pause = BEAT_SECONDS - LOOK_SECONDS
            elif frame.f_code is runner:
                pause = BEAT_SECONDS
            else:
                pause = LOOK_SECONDS
                self._ask(loop)

    def _ask(self, loop: asyncio.AbstractEventLoop) -> None:
        self._seen = {}
        self._asked = Asked(time.monotonic(), time.clock_gettime(self._clock), self._collected)
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(self._beat, self._asked)


def runner_of(frame: FrameType | None) -> CodeType | None:
    """What runs the loop that a coroutine is run by: the innermost function while nothing runs."""
    is_coroutine = False
    while frame is not None:
        was, is_coroutine = is_coroutine, bool(frame.f_code.co_flags & inspect.CO_COROUTINE)
        if was and not is_coroutine:
            return frame.f_code
        frame = frame.f_back
    return None


def _holding(innermost: FrameType) -> Holding:
    """Who runs, from the innermost function outwards, and for which call."""
    names: list[str] = []
    call: Call | None = None
    frame: FrameType | None = innermost
    while frame is not None and frame.f_code.co_filename != _RUNNER:
        if len(names) < _FRAMES:
            names.append(_named(frame))
        if call is None and "call" in frame.f_code.co_varnames:
            found = frame.f_locals.get("call")
            call = found if isinstance(found, Call) else None
        frame = frame.f_back
    return Holding(" < ".join(names), call)


def _named(frame: FrameType) -> str:
    code = frame.f_code
    file = code.co_filename.removeprefix(_PACKAGE).lstrip("/")
    place = file if not file.startswith("<") and file != code.co_filename else Path(file).name
    return f"{place}:{frame.f_lineno} {code.co_qualname}"
