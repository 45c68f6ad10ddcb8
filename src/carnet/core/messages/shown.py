"""What a reader was shown of a turn that says everything again when it runs on.

Law 1. Who was shown a part of it is shown the rest, in whatever pieces it comes now.
Law 2. If it says something else now, there is no rest: nobody is shown two answers as one.
Law 3. It is as small for a long answer as for a short one: what was shown is kept as a digest.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final

from carnet.core.messages.events import (
    FILE,
    RESULT,
    Done,
    Event,
    Extension,
    Text,
    Usage,
    is_terminal,
    write_event,
)

_CONTENT: Final = frozenset({FILE, RESULT})  # extensions that are part of an answer
_BETWEEN: Final = b"\xff"  # no byte of a text, or of an event, is this


class _Digest:
    """What was said, however its texts were cut: of everything, and how much there was."""

    __slots__ = ("characters", "others", "sha")

    def __init__(self) -> None:
        self.sha = sha256()
        self.others = 0  # events that are no text
        self.characters = 0  # of the text after the last of them

    def add_text(self, text: str) -> None:
        self.sha.update(text.encode("utf-8", "surrogatepass"))
        self.characters += len(text)

    def add_other(self, event: Event) -> None:
        self.sha.update(_BETWEEN + write_event(event) + _BETWEEN)
        self.others += 1
        self.characters = 0

    def copy(self) -> "_Digest":
        same = _Digest()
        same.sha = self.sha.copy()
        same.others, same.characters = self.others, self.characters
        return same

    def is_same(self, other: "_Digest") -> bool:
        return self.sha.digest() == other.sha.digest()


class Shown:
    """What was shown of a turn before it ran on."""

    __slots__ = ("_again", "_is_beyond", "_known")

    def __init__(self, events: Iterable[Event] = (), known: _Digest | None = None) -> None:
        """Texts run together: they may come in other pieces now."""
        self._known = known or _Digest()
        self._again = _Digest()  # what it has said since it ran on
        self._is_beyond = False  # that is all that was shown, and more may follow
        self.add(events)

    def add(self, events: Iterable[Event]) -> None:
        """This was shown as well."""
        for event in events:
            if type(event) is Text:
                self._known.add_text(event.text)
            elif _is_content(event):
                self._known.add_other(event)

    def copy(self) -> "Shown":
        """The same, before anything is said again."""
        return Shown(known=self._known.copy())

    def rest(self, batch: Sequence[Event]) -> list[Event] | None:
        """What of a batch was not shown; None if it is not what was shown."""
        rest: list[Event] = []
        for event in batch:
            more = [event] if self._has_caught_up() else self._more(event)
            if more is None or self._is_ahead():
                return None
            rest += more
        return rest

    def _more(self, event: Event) -> list[Event] | None:
        """What of an event was not shown, while not all is said again."""
        if type(event) is Done:
            return None
        if type(event) is Usage or is_terminal(event):
            return [event]
        if type(event) is Text:
            more = self._beyond(event.text)
            return None if more is None else [Text(more)] if more else []
        if _is_content(event):
            self._again.add_other(event)
        return []

    def _has_caught_up(self) -> bool:
        if not self._is_beyond and self._is_as_much():
            self._is_beyond = self._again.is_same(self._known)
        return self._is_beyond

    def _is_as_much(self) -> bool:
        known, again = self._known, self._again
        return (again.others, again.characters) == (known.others, known.characters)

    def _is_ahead(self) -> bool:
        """Whether as much was said as was shown, or more, and not the same."""
        if self._is_beyond:
            return False
        is_more = self._again.others > self._known.others
        return is_more or (self._is_as_much() and not self._again.is_same(self._known))

    def _beyond(self, text: str) -> str | None:
        """What of a text goes beyond what was shown; None if it differs from that."""
        known, again = self._known, self._again
        if again.others < known.others:
            again.add_text(text)
            return ""
        left = known.characters - again.characters
        again.add_text(text[:left])
        if not text[left:]:
            return ""
        return text[left:] if self._has_caught_up() else None


def _is_content(event: Event) -> bool:
    """Whether an event is part of what is said, beside its texts."""
    if type(event) is Extension:
        return event.name in _CONTENT
    return type(event) is not Usage and not is_terminal(event)
