"""What an agent asks for, shown to a person in the middle of a chat, and her answer.

Law 1. What is asked is read from the gateway, and not from the stream: it says all that there is.
Law 2. Nothing is approved by an empty line, by Ctrl-C or by the end of what is typed: it is left
       for later.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from carnet.cli.call.answers import example
from carnet.cli.chat.prompt import Prompt
from carnet.cli.chat.screen import Screen, short
from carnet.cli.invocation import in_line, to_json
from carnet.cli.times import short as short_time
from carnet.cli.times import until
from carnet.runtime.system import SystemClock

PAYMENT: Final = "payment"
INPUT: Final = "input"
APPROVED: Final = "accepted"
DENIED: Final = "rejected"
LATER: Final = "l"
DONE: Final = "done"  # of somebody who was sent to a page (R43)

Decision = dict[str, Any]


class QuestionForm:
    """Asks a person, in a terminal."""

    def __init__(self, prompt: Prompt, screen: Screen) -> None:
        """`prompt` reads what she types."""
        self._prompt = prompt
        self._screen = screen

    def ask(self, question: dict[str, Any]) -> Decision | None:
        """Her answer; None if she leaves it for later."""
        for line in question_lines(question, SystemClock().wall_us()):
            self._screen.note(line)
        while True:
            try:
                typed = self._prompt.line(_choices(question))
                word = "" if typed is None else typed.strip()
                if word in {"", LATER, "later"}:
                    return None
                decision = self._read(question, word)
            except KeyboardInterrupt:
                return None
            if decision is not None:
                return decision

    def _read(self, question: dict[str, Any], word: str) -> Decision | None:
        """What a word means; None if she is to be asked again."""
        if word in {"d", "deny"} and word not in (question.get("options") or ()):
            return {"outcome": DENIED}
        if _wants_value(question):
            return self._value(question, word)
        return self._approval(question, word)

    def _approval(self, question: dict[str, Any], word: str) -> Decision | None:
        if word in {"a", "approve"} or (word == DONE and question.get("url")):
            return {"outcome": APPROVED}
        if word in {"e", "edit"} and question.get("arguments"):
            return self._edited(question)
        if word in {"r", "remember"}:
            return self._remembered(question)
        self._screen.note("That is none of them; nothing was answered.")
        return None

    def _value(self, question: dict[str, Any], word: str) -> Decision | None:
        if options := question.get("options"):
            return self._chosen(options, word)
        schema = question.get("schema") or {}
        if not schema or schema.get("type") == "string":
            return {"outcome": APPROVED, "value": word}
        return self._json(word)

    def _chosen(self, options: list[str], word: str) -> Decision | None:
        is_number = word.isdecimal() and word not in options and 1 <= int(word) <= len(options)
        chosen = options[int(word) - 1] if is_number else word
        if chosen in options:
            return {"outcome": APPROVED, "value": chosen}
        self._screen.note("It asks for one of them; nothing was answered.")
        return None

    def _edited(self, question: dict[str, Any]) -> Decision | None:
        """An approval with other arguments, which the tool is given in place of its own."""
        filled = json.dumps(question["arguments"], ensure_ascii=False)
        typed = self._prompt.line("with: ", filled)
        return None if not typed else self._json(typed)

    def _json(self, typed: str) -> Decision | None:
        try:
            return {"outcome": APPROVED, "value": json.loads(typed)}
        except ValueError:
            self._screen.note("That is no JSON; nothing was answered.")
            return None

    def _remembered(self, question: dict[str, Any]) -> Decision | None:
        """An approval of this and of the same from now on."""
        ceiling = None
        if question["kind"] == PAYMENT:
            typed = self._prompt.line(f"up to how much in all ({question['currency']})? ")
            if not typed or not typed.strip():
                return None
            ceiling = typed.strip()
        return {"outcome": APPROVED, "remember": {"ceiling": ceiling}}


def _wants_value(question: dict[str, Any]) -> bool:
    return bool(question.get("options") or question.get("schema") or question["kind"] == INPUT)


def question_lines(question: dict[str, Any], now: int | None = None) -> Iterator[str]:
    """A question for people: all of what is asked for, since nobody approves what is not shown.

    With `now`, in microseconds, it says how long is left.
    """
    asked_by = in_line(str(question.get("asked_by") or ""))
    if question.get("title"):
        yield f"? {in_line(question['title'])}"
    yield f"? {asked_by} asks ({in_line(question['kind'])}): {in_line(question['message'])}"
    other = question.get("other_amount")
    if question.get("amount"):
        yield f"  amount: {question['amount']} {question['currency']}"
    elif other:
        yield f"  amount: {other['amount']} {other['currency']}, which is not paid here"
    for name, value in (question.get("arguments") or {}).items():
        yield f"  {in_line(f'{name}: {value if isinstance(value, str) else to_json(value)}')}"
    for number, option in enumerate(question.get("options") or (), 1):
        yield f"  {number}  {short(option)}"
    if question.get("schema") and not question.get("options"):
        yield f"  as JSON, such as {short(to_json(example(question['schema'])))}"
    yield from _way(question, now)


def _way(question: dict[str, Any], now: int | None) -> Iterator[str]:
    """Where it is given, and until when."""
    if question.get("url"):
        yield f"  {in_line(question.get('action_label') or 'at')}: {in_line(question['url'])}"
    if question.get("note"):
        yield f"  {in_line(question['note'])}"
    if question.get("expires"):
        ends = question["expires"]
        yield f"  until: {short_time(ends) if now is None else until(ends, now)}"


def _choices(question: dict[str, Any]) -> str:
    if question.get("options"):
        words = ["its number or text"]
    elif _wants_value(question):
        words = ["a value"]
    else:
        words = [f"'{DONE}' when you have been there"] if question.get("url") else []
        words.append("[a]pprove")
    words.append("[d]eny")
    if not _wants_value(question):
        words += ["[e]dit"] if question.get("arguments") else []
        words.append("[r]emember")
    return f"{', '.join(words)}, [l]ater? "
