"""Where a driver keeps what was spoken, so that its death loses none of it.

Law 1. What `append` has returned from is durable.
Law 2. A dialogue has one writer at a time. A writer that is gone, however that came, holds nobody
       up; one that was overtaken cannot write.
Law 3. A dialogue within a turn of another one is kept under that turn: `scope` is its id, and says
       which of several that are run in it.
Law 4. These are the dialogues of one owner: what others keep under the same run is another's.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from carnet.core.dialogue.events import DialogueEvent


class DialoguePages(Protocol):
    """The journal of one dialogue, held by who writes it."""

    async def read(self) -> Sequence[DialogueEvent]:
        """All its events but the text of attempts, in order."""

    async def append(self, events: Sequence[DialogueEvent]) -> None:
        """Write these after the others."""


class Dialogues(Protocol):
    """The journals of many dialogues."""

    def hold(self, run: str, scope: str) -> AbstractAsyncContextManager[DialoguePages]:
        """Be the one who writes a dialogue; InProgress while somebody else is."""
