"""What a person is told of conversations that began while she was away (R44).

Law 1. She is told at an https address that was verified to be hers, else where the operator wants
       notices. A notice names the conversation, and holds nothing of what was said.
Law 2. How often something is tried to be told, it is told once: the id of a notice follows from it.
"""

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Final

from carnet.core.people.identity import owner_of
from carnet.ports.calls.triggers import Firing, FiringEnd
from carnet.ports.trust.people import People
from carnet.ports.world.outbox import Delivery
from carnet.runtime.webhooks.callbacks import NOTIFY, PREFIX, queue_of
from carnet.wire.grammar import json

# What a notice is called, by how a conversation stands.
TYPES: Final = {
    "done": "conversation.ended",
    "failed": "conversation.failed",
    "waiting": "conversation.waits",
}


class TriggerNotices:
    """Makes notices."""

    def __init__(self, people: People, notify: Callable[[], Sequence[str]]) -> None:
        """`notify` tells where the operator wants notices."""
        self._people = people
        self._notify = notify

    def __call__(self, firing: Firing, end: FiringEnd, /) -> tuple[Delivery, ...]:
        """What tells of one that has ended, or waits."""
        person = self._people.numbered(firing.person)
        if person is None or person.ended is not None:
            return ()
        own, owner = person.notice_address, owner_of(firing.person, "")
        body = json.write(
            {
                "type": TYPES[end.state],
                "data": {
                    "conversation": end.conversation,
                    "trigger": firing.kind,
                    "name": firing.name,
                    "agent": firing.agent,
                    "owner": person.name,
                    "code": end.code,
                },
            }
        )
        return tuple(
            Delivery(
                id=_id(firing, end, url),
                kind="notice",
                url=url,
                receiver=queue_of(url, owner),
                body=body,
                secret_of=NOTIFY if own is None else owner,
                learned=own is not None,
            )
            for url in (self._notify() if own is None else (own,))
        )


def _id(firing: Firing, end: FiringEnd, url: str) -> str:
    text = f"{firing.person}\0{firing.key}\0{end.state}\0{url}"
    return PREFIX + blake2b(text.encode(), digest_size=16).hexdigest()
