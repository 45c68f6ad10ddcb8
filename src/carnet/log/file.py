"""Where log lines go: to the file behind a stream, with nothing kept back.

A stream of Python keeps what it could not write, and tries it again when the process ends, which
then ends with 120 instead of its own code. And who writes through it to somebody that has stopped
reading holds its lock meanwhile, which the end of the process waits for.

Law 1. What cannot be written is lost, and whoever wrote it is told.
Law 2. What could be written of a line in part does not run into the next one.
Law 3. What others have printed to the stream before a line stands before it.
"""

import contextlib
import os
from typing import Final, TextIO

_LOST: Final = (OSError, ValueError)  # the second of a stream that was closed


class LogFile:
    """The file behind a stream, or the stream itself where there is none."""

    def __init__(self, stream: TextIO | None) -> None:
        """`stream` is None where the process was given none."""
        self._stream = stream
        self._file = _file_of(stream)
        self._is_cut = False  # what was written last ends in the midst of a line

    def isatty(self) -> bool:
        """Whether people read it as it is written."""
        return self._stream is not None and self._stream.isatty()

    def write(self, text: str) -> int:
        """Write all of it, or raise OSError."""
        if self._stream is None:
            raise OSError("there is no output")
        if self._file is None:
            return self._stream.write(text)
        with contextlib.suppress(*_LOST):
            self._stream.flush()
        rest = memoryview(f"\n{text}".encode() if self._is_cut else text.encode())
        while rest:
            written = os.write(self._file, rest)
            self._is_cut = written < len(rest)
            rest = rest[written:]
        return len(text)

    def flush(self) -> None:
        """Nothing is kept back, but by a stream without a file."""
        if self._file is None and self._stream is not None:
            self._stream.flush()


def _file_of(stream: TextIO | None) -> int | None:
    try:
        return None if stream is None else stream.fileno()
    except _LOST:
        return None
