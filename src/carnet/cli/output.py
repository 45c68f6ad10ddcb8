"""What a call prints for people: what an agent says, and what a skill gives in the end.

Law. A result looks the same whichever way it came, and is not shown twice: an answer that is read
as chat tells it once more as text, if nothing else was said.
"""

from typing import Any, Self

import click
import msgspec

from carnet.cli.invocation import visible
from carnet.runtime.agents.samvad_peer import as_text


def text_of(page: dict[str, Any], skill: str | None) -> str:
    """A whole answer: the result, if a skill was asked for, else what was said."""
    result = result_in(page)
    if skill is not None and result is not None:
        return as_text(result)
    choices = page.get("choices") or [{}]
    return str(choices[0].get("message", {}).get("content") or "")


def result_in(page: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a skill that an answer holds beside its text."""
    beside = page.get("carnet")
    result = beside.get("result") if isinstance(beside, dict) else None
    return result if isinstance(result, dict) else None


class Growing:
    """Prints an answer as it comes. A context, which leaves nothing unsaid."""

    def __init__(self, *, holds: bool = False) -> None:
        """`holds` for answers in which a result that nothing was said before is told as text."""
        self._holds = holds
        self._printed: list[str] = []
        self._held = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()

    def say(self, text: str) -> None:
        """Print what was said; what may be a result that is told as text waits for what follows."""
        if self._holds and not self._printed and not self._held and text.startswith("{"):
            self._held = text
        elif text:
            self.flush()
            self._print(text)

    def flush(self) -> None:
        """Print what waits."""
        self._print(self._held)
        self._held = ""

    def end(self, result: dict[str, Any] | None) -> None:
        """Print the result, unless it was said, and end the line."""
        if result is not None and _spells(self._held, result):
            self._held = ""
        self.flush()
        printed = "".join(self._printed)
        if result is not None and not _spells(printed, result):
            begins_line = not printed or printed.endswith("\n")
            self._print(("" if begins_line else "\n") + as_text(result))
        click.echo()

    def _print(self, text: str) -> None:
        if text:
            self._printed.append(text)
            click.echo(visible(text), nl=False)


def _spells(printed: str, result: dict[str, Any]) -> bool:
    """Whether a text tells this result and nothing else."""
    if printed == as_text(result):
        return True
    try:
        decoded = msgspec.json.decode(printed)
    except msgspec.DecodeError:
        return False
    return bool(decoded == result)
