"""Lines that a person types, with the editing that her terminal has."""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Final

MORE: Final = "... "  # before a line that goes on


class Prompt:
    """Reads lines. None is the end of what she types (Ctrl-D)."""

    def __init__(self, commands: Sequence[str] = ()) -> None:
        """`commands` are completed by the tabulator."""
        self._readline = _readline()
        if self._readline is not None:
            self._readline.set_completer(_completer(commands))
            self._readline.set_completer_delims(" ")
            self._readline.parse_and_bind("tab: complete")

    def line(self, prompt: str, filled: str = "") -> str | None:
        """One line; `filled` stands in it to be changed. Raises KeyboardInterrupt."""
        if self._readline is not None and filled:
            self._readline.set_startup_hook(lambda: _insert(self._readline, filled))
        try:
            return input(prompt)
        except EOFError:
            return None
        finally:
            if self._readline is not None:
                self._readline.set_startup_hook(None)

    def text(self, prompt: str) -> str | None:
        """What is to be said: a line, and those after it as long as one ends with a backslash."""
        lines: list[str] = []
        while True:
            line = self.line(MORE if lines else prompt)
            if line is None:
                return None
            if not line.endswith("\\"):
                return "\n".join([*lines, line])
            lines.append(line[:-1])

    @property
    def typed(self) -> str:
        """What stood in the line that Ctrl-C has ended, as far as that is known."""
        return self._readline.get_line_buffer() if self._readline is not None else ""


def _readline() -> ModuleType | None:
    try:
        import readline  # not on every system
    except ImportError:
        return None
    return readline


def _insert(readline: ModuleType | None, text: str) -> None:
    if readline is not None:
        readline.insert_text(text)
        readline.redisplay()


def _completer(commands: Sequence[str]) -> Callable[[str, int], str | None]:
    def complete(text: str, state: int) -> str | None:
        found = [each for each in commands if text.startswith("/") and each.startswith(text)]
        return found[state] if state < len(found) else None

    return complete
