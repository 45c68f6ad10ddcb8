"""Is a task asked about by whoever asked for it?

Law 1. Whatever can be judged without looking the task up is judged before that, so that a refusal
       tells nothing about tasks: whether there is a signature, its form and its time.
Law 2. The key is one of the task's own sender. Who has another is told what everybody is told about
       a task that does not exist.
"""

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


class Owners:
    """Knows the keys of those who asked for tasks."""

    def __init__(self, keys: KeyRing) -> None:
        """`keys` are the senders'."""
        self._keys = keys

    async def is_signed_by(self, sender: str, asking: Asking, now: int) -> bool:
        """Whether a request is signed with a key of this sender."""
        try:
            key = await self._key(sender, asking.keyid, now)
        except (CarnetError, NotLearned):  # unknown, revoked, or nowhere to be learned now
            return False
        return any(ed25519.holds(key, base, asking.signature) for base in asking.bases)

    async def _key(self, sender: str, keyid: str, now: int) -> bytes:
        try:
            return self._keys.find(sender, keyid, now)
        except NotLearned:
            if not may_be_fetched(sender):
                raise
        await self._keys.learn(sender)
        return self._keys.find(sender, keyid, now)
