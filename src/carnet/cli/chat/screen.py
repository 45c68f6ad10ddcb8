"""What a chat shows: answers as they come, tools as rows, and what is said beside them.

Law 1. What agents, tools and other people have written is data: nothing of it steers the terminal.
Law 2. What an agent says goes to standard output, everything else to standard error.
"""

from typing import Any, Final

import click

from carnet.cli.chat.answer import AnswerPiece, handle
from carnet.cli.invocation import Invocation, in_line, to_json, visible

MOST_ROW: Final = 100  # characters of what a tool is given, or gives
CUT: Final = " ..."
_DECISIONS: Final = {"approved": "Approved.", "denied": "Denied."}


class Screen:
    """A terminal, and where its cursor stands."""

    def __init__(self, invocation: Invocation) -> None:
        """`invocation` knows whether there are colours."""
        self._invocation = invocation
        self._is_in_line = False

    def show(self, piece: AnswerPiece) -> None:
        """Show what is new in an answer."""
        match piece.kind:
            case "text":
                self.say(piece.text)
            case "anew":
                self.note("(It begins anew.)")
                self.say(piece.text)
            case "relay":
                self.note(f"{handle(in_line(piece.text))}:")
                if piece.data.get("code"):
                    self.note(f"  (It has not answered: {in_line(str(piece.data['code']))}.)")
            case "call":
                self.note(f"  · {_call(piece.data)}")
            case "result":
                self.note(f"  {_result(piece.data)}")
            case "decision":
                self.note(f"  {_DECISIONS.get(str(piece.data.get('decision')), 'Answered.')}")

    def say(self, text: str) -> None:
        """Print what an agent says."""
        if text:
            click.echo(visible(text), nl=False)
            self._is_in_line = not text.endswith("\n")

    def note(self, text: str) -> None:
        """Say something beside it, on lines of its own."""
        self.end_line()
        for line in self._invocation.spell(text).splitlines():
            self._invocation.note(in_line(line))

    def print(self, text: str) -> None:
        """Print a result that was asked for."""
        self.end_line()
        click.echo(visible(text))

    def failure(self, facts: dict[str, Any]) -> None:
        """Tell that something went wrong, and what to do."""
        self.note(f"Error: {facts.get('message') or facts.get('code')}")
        if facts.get("hint"):
            self.note(f"  {facts['hint']}")

    def end_line(self) -> None:
        """Begin a line, if something stands in this one."""
        if self._is_in_line:
            click.echo()
            self._is_in_line = False


def _call(call: dict[str, Any]) -> str:
    """A tool that is used: by the words for people if it has some."""
    if call.get("label"):
        return in_line(str(call["label"]))
    given = call.get("input") or {}
    words = [f"{name}={_word(value)}" for name, value in given.items()]
    return short(" ".join([str(call.get("name")), *words]))


def _result(call: dict[str, Any]) -> str:
    mark = "✓" if call.get("status") == "ok" else "✗"
    return short(f"{mark} {call.get('name')}: {_word(call.get('output'))}")


def _word(value: object) -> str:
    return value if isinstance(value, str) else to_json(value)


def short(text: str) -> str:
    """The beginning of a text, as a part of a line."""
    line = in_line(" ".join(text[: 4 * MOST_ROW].split()))
    return line if len(line) <= MOST_ROW else line[: MOST_ROW - len(CUT)] + CUT
