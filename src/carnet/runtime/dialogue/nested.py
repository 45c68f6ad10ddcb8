"""Conversations that a function has others speak in, in a driver without a gateway.

Law 1. One is kept under the turn that it is had in, by its place among those of the function: an
       attempt that comes later goes on with it, and whoever has spoken is not asked again.
Law 2. What it has come to is counted in that turn, once, however often the turn is tried.
Law 3. It may cost what is left of the run above, at the most.
"""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from carnet.core.call import Call
from carnet.core.dialogue.events import ConversationResult
from carnet.core.messages.output import Output
from carnet.runtime.dialogue.attempt import attempt_of, conversation_name
from carnet.runtime.dialogue.definition import conversation_of
from carnet.runtime.dialogue.parts import DialogueParts
from carnet.runtime.dialogue.place import place_of
from carnet.runtime.dialogue.run import DialogueRun


class NestedConversations:
    """What `visit.conversation` does in a driver."""

    def __init__(self, parts: DialogueParts) -> None:
        self._parts = parts

    async def __call__(
        self, call: Call, out: Output, participants: Any, options: Mapping[str, Any], ordinal: int
    ) -> ConversationResult:
        """Run it within the turn that the call is."""
        given = dict(options)
        seed, on_event = given.pop("seed", ""), given.pop("on_event", None)
        conversation = conversation_of(participants, given)
        conversation.refuse_names()
        attempt, name = attempt_of(out), conversation_name(ordinal)
        place = replace(place_of(call), ordinal=ordinal, most=attempt.most_of(name))
        parts = replace(self._parts, streams=on_event is not None)
        run = DialogueRun(conversation, place, parts, seed=seed)
        try:
            return await run.tell(on_event)
        finally:
            attempt.converse(name, run.record.usage(), is_kept=parts.journal is not None)
