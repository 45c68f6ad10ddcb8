"""What agents raise that a command runs itself, told in a line.

Law. No traceback reaches a person who has not asked for one; CARNET_DEBUG=1 does.
"""

import logging
import os
import traceback
from pathlib import Path
from types import TracebackType
from typing import Self

import carnet
from carnet.cli.invocation import Invocation, in_line

LOGGER = "carnet"
_OURS = Path(carnet.__file__).parent


class AgentLog(logging.Handler):
    """Takes the log of agents while it is entered."""

    def __init__(self, invocation: Invocation) -> None:
        """What is told is told as a note."""
        super().__init__(logging.WARNING)
        self._invocation = invocation

    def __enter__(self) -> Self:
        if os.environ.get("CARNET_DEBUG", "") in {"", "0"}:
            logging.getLogger(LOGGER).addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger(LOGGER).removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Say who has raised what, and where."""
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            text = record.getMessage()
        else:
            text = f"{getattr(record, 'agent', 'an agent')} raised {in_a_line(error)}"
        self._invocation.note(in_line(text))


def in_a_line(error: BaseException) -> str:
    """An error of somebody's code in a line: its kind, what it says, and where."""
    message = str(error)
    where = _place(error.__traceback__)
    return f"{type(error).__name__}{f': {message}' if message else ''}{where}"


def is_theirs(error: BaseException) -> bool:
    """Whether somebody's own code has raised it, or has given what we cannot use."""
    frames = traceback.extract_tb(error.__traceback__)
    is_elsewhere = bool(frames) and not Path(frames[-1].filename).is_relative_to(_OURS)
    return is_elsewhere or isinstance(error, TypeError | ValueError)


def _place(trace: TracebackType | None) -> str:
    """Where in a file it was raised, if that is not ours."""
    frames = traceback.extract_tb(trace)
    if not frames or Path(frames[-1].filename).is_relative_to(_OURS):
        return ""
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"
