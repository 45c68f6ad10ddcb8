"""Keys of senders in memory, for tests that ask about a guard and not about a card."""

from carnet.errors import KeyRevoked, KeyUnknown
from carnet.ports.trust.keys import NotLearned


class MemoryRing:
    """The KeyRing port over dictionaries."""

    def __init__(self) -> None:
        self._keys: dict[tuple[str, str], bytes] = {}
        self._cards: dict[str, dict[str, bytes]] = {}
        self._learned: set[str] = set()
        self._pinned: set[str] = set()
        self._revoked: set[tuple[str, str]] = set()
        self.learns: list[str] = []  # whose card was looked for, in order

    def pin(self, sender: str, keyid: str, public: bytes) -> None:
        """Know a key, as if the operator had written it down."""
        self._keys[sender, keyid] = public
        self._learned.add(sender)
        self._pinned.add(sender)

    def is_pinned(self, sender: str) -> bool:
        """Whether a key of this sender was pinned."""
        return sender in self._pinned

    def publish(self, sender: str, keyid: str, public: bytes) -> None:
        """Have a key shown in the sender's card, which is not known before it is learned."""
        self._cards.setdefault(sender, {})[keyid] = public

    def revoke(self, sender: str, keyid: str) -> None:
        self._revoked.add((sender, keyid))

    def find(self, sender: str, keyid: str, now: int) -> bytes:
        """The key, if it is known."""
        del now
        key = self._keys.get((sender, keyid))
        if (sender, keyid) in self._revoked:
            raise KeyRevoked
        if key is not None:
            return key
        if sender in self._learned:
            raise KeyUnknown(sender=sender)
        raise NotLearned

    def every(self, sender: str, now: int) -> list[bytes]:
        """The keys of a sender that are known and hold."""
        if sender not in self._learned:
            raise NotLearned
        known = [keyid for name, keyid in self._keys if name == sender]
        return [
            self.find(sender, keyid, now) for keyid in known if (sender, keyid) not in self._revoked
        ]

    async def learn(self, sender: str) -> None:
        """Look at the sender's card."""
        self.learns.append(sender)
        self._learned.add(sender)
        for keyid, public in self._cards.get(sender, {}).items():
            self._keys[sender, keyid] = public

    async def need(self, sender: str) -> None:
        """The same, for a call of ours."""
        await self.learn(sender)
