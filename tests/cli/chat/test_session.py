"""What Ctrl-C and the end of what is typed mean at the prompt."""

import asyncio

import pytest

from carnet.cli.chat.commands import converse
from carnet.cli.chat.screen import Screen
from carnet.cli.chat.session import ChatSession
from carnet.cli.invocation import Invocation


class Keys:
    """A prompt at which somebody presses Ctrl-C, with something in the line or nothing."""

    def __init__(self, *lines: str | None) -> None:
        self._lines = iter(lines)
        self.typed = ""
        self.reads = 0

    def text(self, prompt: str) -> str | None:
        del prompt
        self.reads += 1
        line = next(self._lines)
        if line is None or not line.endswith("^C"):
            return line
        self.typed = line.removesuffix("^C")
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("lines", "reads"),
    [(("^C",), 1), ((None,), 1), (("not sent^C", "^C"), 2), (("", "  ", "not sent^C", None), 4)],
)
def test_an_interrupt_clears_the_line_and_leaves_where_there_is_none(
    lines: tuple[str | None, ...], reads: int
) -> None:
    keys = Keys(*lines)
    with asyncio.Runner() as runner:
        screen = Screen(Invocation())
        session = ChatSession(runner, None, screen, keys, None)  # type: ignore[arg-type]
        assert converse(session) == 0
    assert keys.reads == reads
