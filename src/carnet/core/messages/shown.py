"""What a reader was shown of a turn that says everything again when it runs on.

Law 1. Who was shown a part of it is shown the rest, in whatever pieces it comes now.
Law 2. If it says something else now, there is no rest: nobody is shown two answers as one.
"""

from collections import deque
from collections.abc import Iterable, Sequence

from carnet.core.messages.events import Done, Event, Extension, Text, Usage, is_terminal


class Shown:
    """What was shown of a turn before it ran on."""

    def __init__(self, events: Iterable[Event]) -> None:
        """Texts run together: they may come in other pieces now."""
        self._left: deque[Event] = deque()
        for event in events:
            last = self._left[-1] if self._left else None
            if type(event) is Text and type(last) is Text:
                self._left[-1] = Text(last.text + event.text)
            elif type(event) is not Extension:
                self._left.append(event)

    def rest(self, batch: Sequence[Event]) -> list[Event] | None:
        """What of a batch was not shown; None if it is not what was shown."""
        rest: list[Event] = []
        for event in batch:
            if not self._left:
                rest.append(event)
            elif type(event) is Done:
                return None
            elif type(event) is Usage or is_terminal(event):
                rest.append(event)
            elif type(event) is Text:
                more = self._beyond(event.text)
                if more is None:
                    return None
                rest += [Text(more)] if more else []
            elif type(event) is not Extension and self._left.popleft() != event:
                return None
        return rest

    def _beyond(self, text: str) -> str | None:
        """What of a text goes beyond what was shown; None if it differs from that."""
        first = self._left.popleft()
        known = first.text if type(first) is Text else ""
        if known and known.startswith(text):
            if known != text:
                self._left.appendleft(Text(known[len(text) :]))
            return ""
        is_longer = bool(known) and text.startswith(known) and not self._left
        return text[len(known) :] if is_longer else None
