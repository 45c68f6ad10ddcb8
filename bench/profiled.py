"""A launcher: `python -m bench.profiled FILE ARGUMENT...` is `carnet ARGUMENT...`, watched.

Every few milliseconds of CPU time a signal looks at each thread and gives the time that it has used
since the last look to the Python function it is in. What C code does counts for its Python caller,
and a thread beside the main one is always seen where it last let go of the interpreter.
SIGUSR1 forgets what was seen so far: the start is over.

Law. Watching costs a few percent and weighs small and large functions alike. A deterministic
profiler made this gateway six times slower, and small functions look like the large ones.
"""

import json
import signal
import sys
import threading
import time
from asyncio import runners
from collections import defaultdict
from pathlib import Path
from types import CodeType, FrameType

from carnet.cli.main import main

EVERY_SECONDS = 0.002  # of CPU time
AT_ITS_START = 4  # bytes of code before a plain function's first own instruction


class Watch:
    """Seconds of CPU time, by function."""

    def __init__(self) -> None:
        self._own: defaultdict[CodeType, float] = defaultdict(float)  # seconds
        self._last: dict[int, float] = {}

    def start(self) -> None:
        signal.signal(signal.SIGPROF, self._look)
        signal.signal(signal.SIGUSR1, self._forget)
        signal.setitimer(signal.ITIMER_PROF, EVERY_SECONDS, EVERY_SECONDS)

    def stop(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _forget(self, _: int, __: FrameType | None) -> None:
        self._own.clear()

    def _look(self, _: int, frame: FrameType | None) -> None:
        me = threading.get_ident()
        frames = sys._current_frames()  # noqa: SLF001 - the documented way to see other threads
        for thread in threading.enumerate():
            number = thread.ident or 0
            at = frame if number == me else frames.get(number)
            if at is not None:
                self._add(number, at)

    def _add(self, thread: int, frame: FrameType) -> None:
        try:
            now = time.clock_gettime(time.pthread_getcpuclockid(thread))
        except OSError:  # it has just ended
            return
        self._own[where(frame)] += now - self._last.get(thread, now)
        self._last[thread] = now

    def write(self, path: Path) -> None:
        rows = [
            (code.co_filename, code.co_firstlineno, code.co_qualname, seconds)
            for code, seconds in sorted(self._own.items(), key=lambda each: -each[1])
        ]
        path.write_text(json.dumps(rows))


def where(frame: FrameType) -> CodeType:
    """The function a sample belongs to.

    A signal that arrives inside the event loop's own code is seen when the loop next enters Python:
    at the first instruction of a callback. That time is the loop's.
    """
    caller = frame.f_back
    if caller is not None and frame.f_lasti <= AT_ITS_START and _is_loop(caller):
        return caller.f_code
    return frame.f_code


def _is_loop(frame: FrameType) -> bool:
    return frame.f_code is runners.Runner.run.__code__


if __name__ == "__main__":
    out = Path(sys.argv[1])
    sys.argv = ["carnet", *sys.argv[2:]]
    watch = Watch()
    watch.start()
    try:
        main()
    finally:
        watch.stop()
        watch.write(out)
