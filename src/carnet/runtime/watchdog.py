"""Noticing that somebody holds the event loop, which everybody waits for, and who it was.

A beat on the loop says that it goes round; a thread beside it looks at the stack of the loop while
a beat is overdue. What is told afterwards names the functions that ran then and, if a call was
among them, its run, turn and agent.

Law 1. It changes nothing: it looks, counts and writes a line of the log.
Law 2. The time of Python's collector of cycles is nobody's, and is left out.
Law 3. `seconds` is how long everybody waited; `cpu` is how much of that the loop itself worked.
       On a machine that is busy with something else the first is long and the second is not.
"""

import asyncio
import gc
import logging
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Final, NamedTuple, Self

from carnet.core.call import Call

logger = logging.getLogger("carnet.loop")

BEAT_SECONDS: Final = 0.2  # a gateway that has nothing to do wakes up seldom
LOOK_SECONDS: Final = 0.05  # between two looks at the stack while a beat is overdue
REST_SECONDS: Final = 0.15  # and while none is: less than the time after which it is told
HELD_SECONDS: Final = 0.25  # beyond the time of a beat: then it is told
_FRAMES: Final = 12  # the innermost, of a stack that is told

_RUNNER: Final = asyncio.runners.__file__  # the frame of the loop itself
_PACKAGE: Final = str(Path(__file__).parents[1])


class Holding(NamedTuple):
    """What the stack of the loop was while a beat was overdue."""

    where: str
    call: Call | None


class Watchdog:
    """Watches the loop that it is entered on."""

    def __init__(self, note: Callable[[float], None]) -> None:
        """`note` counts how many seconds the loop was held, whenever it was."""
        self._note = note
        self._ending = threading.Event()
        self._loop_thread = threading.get_ident()
        self._beat = time.monotonic()
        self._cpu = time.thread_time()
        self._collecting = self._collected = 0.0  # CPU time, of the collector in the loop's thread
        self._seen: dict[str, Holding] = {}  # since the beat, by where
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        """Begin to watch."""
        gc.callbacks.append(self._note_collection)
        self._pulse()
        threading.Thread(target=self._look_on, name="carnet-watchdog", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Watch no more."""
        self._ending.set()
        gc.callbacks.remove(self._note_collection)
        if self._timer is not None:
            self._timer.cancel()

    def _pulse(self) -> None:
        """Say that the loop goes round, and tell if it has not for a while."""
        now, cpu = time.monotonic(), time.thread_time()
        seconds = now - self._beat - BEAT_SECONDS - self._collected
        if seconds > HELD_SECONDS:
            self._tell(seconds, min(seconds, cpu - self._cpu - self._collected))
        self._beat, self._cpu, self._collected = now, cpu, 0.0
        self._seen = {}
        self._timer = asyncio.get_running_loop().call_later(BEAT_SECONDS, self._pulse)

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

    def _look_on(self) -> None:
        pause = REST_SECONDS
        while not self._ending.wait(pause):
            seen, pause = self._seen, REST_SECONDS
            if time.monotonic() - self._beat > BEAT_SECONDS + LOOK_SECONDS:
                pause = LOOK_SECONDS
                frames = sys._current_frames()  # noqa: SLF001  the one way to see another thread
                frame = frames.pop(self._loop_thread, None)
                frames.clear()
                if frame is not None:
                    holding = _holding(frame)
                    seen[holding.where] = holding


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
