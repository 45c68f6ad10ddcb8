"""Log lines as people read them on a terminal: one for a call, with its level in colour.

The fields are those of the JSON lines, by the same allow list (`telemetry`).

Law 1. One record is one line; the lines of a traceback follow it, indented, so that nothing in them
       can pass for a record.
Law 2. Nothing that somebody put into a value moves the cursor or changes a colour.
"""

import logging
import os
from collections.abc import Iterator
from datetime import datetime
from typing import Final, Literal, TextIO

from msgspec import structs

from carnet.log.file import LogFile
from carnet.telemetry import FIELDS, MOST_DETAIL, CallNote, JsonLines, Lines, cut, redact

Form = Literal["auto", "text", "json"]

_PLAIN: Final = "\x1b[0m"
_DIM: Final = "\x1b[2m"
_COLORS: Final = {"debug": _DIM, "info": "\x1b[32m", "warning": "\x1b[33m", "error": "\x1b[31m"}
_WIDTH: Final = 7  # of the longest of these words
_WELL: Final = frozenset({"done", "accepted"})  # how a call ends that nobody need look at


class TextLines(Lines):
    """A log record as a line of text."""

    def __init__(self, *, in_color: bool) -> None:
        """`in_color` for a terminal."""
        super().__init__()
        self._in_color = in_color

    def format(self, record: logging.LogRecord) -> str:
        """When, how grave, what, and the fields that are set."""
        run, named = getattr(record, "run", None), getattr(record, "correlation_id", None)
        fields = {name: getattr(record, name, None) for name in FIELDS}
        fields |= {"run": run, "request": None if run else named}
        level = "error" if record.levelno >= logging.ERROR else record.levelname.lower()
        line = self._line(record.created, level, record.getMessage(), fields)
        if record.exc_info:
            trace = cut(self.formatException(record.exc_info), MOST_DETAIL)
            line = "\n    ".join([line, *map(_visible, trace.split("\n"))])
        return redact(line)

    def note(self, note: CallNote) -> str:
        """A call that was answered; one that was not answered well is a warning to the eye."""
        fields = structs.asdict(note)
        took = f"{1000 * note.seconds:.0f} ms"
        fields = {name: fields.get(name) for name in FIELDS} | {"seconds": took, "run": note.run}
        level = "info" if note.state in _WELL else "warning"
        return redact(self._line(note.at / 1_000_000, level, note.message, fields))

    def _line(self, at: float, level: str, message: str, fields: dict[str, object]) -> str:
        when = datetime.fromtimestamp(at).astimezone().strftime("%H:%M:%S.%f")[:-3]
        word = self._colored(f"{level:<{_WIDTH}}", _COLORS.get(level, ""))
        pairs = [f"{self._colored(name + '=', _DIM)}{value}" for name, value in _shown(fields)]
        return "  ".join([self._colored(when, _DIM), word, _visible(cut(message)), " ".join(pairs)])

    def _colored(self, text: str, color: str) -> str:
        return f"{color}{text}{_PLAIN}" if self._in_color else text


def _shown(fields: dict[str, object]) -> Iterator[tuple[str, str]]:
    for name, value in fields.items():
        if value is not None:
            text = _visible(cut(str(value)))
            yield name, text if text and " " not in text else f'"{text}"'


def _visible(text: str) -> str:
    if text.isprintable():
        return text
    return "".join([sign if sign.isprintable() else f"\\u{ord(sign):04x}" for sign in text])


def lines_for(form: Form, stream: TextIO | LogFile) -> Lines:
    """How lines are written to a stream: for people on a terminal, else as JSON, unless told."""
    is_terminal = stream.isatty()
    if form == "json" or (form == "auto" and not is_terminal):
        return JsonLines()
    return TextLines(in_color=is_terminal and not os.environ.get("NO_COLOR"))
