"""Is a task asked about by whoever asked for it?

Law 1. Whatever can be judged without looking the task up is judged before that, so that a refusal
       tells nothing about tasks: whether there is a signature, its form and its time.
Law 2. The key is one of the task's own sender. Who has another is told what everybody is told about
       a task that does not exist, after as much work.
"""

from contextlib import suppress
from typing import Final

from carnet.core.people.address import may_be_fetched
from carnet.core.people.proof import SECOND_US, WINDOWS, Asking
from carnet.errors import CarnetError, SignatureExpired, TimestampOutOfWindow
from carnet.ports.trust.keys import KeyRing, NotLearned
from carnet.wire.crypto import ed25519


def check_time(asking: Asking, now: int) -> None:
    """Refuse a signature that was not made just now."""
    window = WINDOWS[asking.profile]
    if not -window.future * SECOND_US <= now - asking.at <= window.past * SECOND_US:
        raise TimestampOutOfWindow
    if asking.expires is not None and asking.expires * SECOND_US <= now:
        raise SignatureExpired


NOBODYS_KEY: Final = bytes.fromhex(  # that a signature is judged by where there is no sender
    "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
)


class Owners:
    """Knows the keys of those who asked for tasks."""

    def __init__(self, keys: KeyRing) -> None:
        """`keys` are the senders'."""
        self._keys = keys

    async def is_signed_by(self, sender: str | None, asking: Asking, now: int) -> bool:
        """Whether a request is signed with a key of this sender; False if there is none.

        The signature is judged in any case: the time tells not whether there is a task, nor whose
        key its sender has.
        """
        key = None
        if sender is not None:
            with suppress(CarnetError, NotLearned):  # unknown, revoked, or not to be learned now
                key = await self._key(sender, asking.keyid, now)
        judged = [
            ed25519.holds(key or NOBODYS_KEY, base, asking.signature) for base in asking.bases
        ]
        return key is not None and any(judged)  # security:a67:timing

    async def _key(self, sender: str, keyid: str, now: int) -> bytes:
        try:
            return self._keys.find(sender, keyid, now)
        except NotLearned:
            if not may_be_fetched(sender):
                raise
        await self._keys.learn(sender)
        return self._keys.find(sender, keyid, now)
