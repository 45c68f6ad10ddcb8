"""Keys: our own, with which we sign, and those of others, with which we verify.

Law 1. A private key never leaves its store but as a `Signer`.
Law 2. What is looked up in memory is at most a second old: a revoked key ends everywhere.
Law 3. Every public key was checked when it was registered or fetched: no weak one gets in.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

KeyState = Literal["next", "active", "retiring", "revoked"]


class OwnKey(Struct, frozen=True, kw_only=True):
    """One of our keys, as `carnet keys list` and our cards show it."""

    kid: str
    public: bytes  # 32 bytes
    # next: will sign; active: signs; retiring: honoured until `not_after`; revoked: none of it
    state: KeyState
    created: int  # microseconds since the epoch
    signs_from: int = 0  # until then the one before it signs
    not_after: int | None = None  # of one that is being replaced
    revoked: int | None = None


class Signer(Protocol):
    """The key that signs now."""

    @property
    def kid(self) -> str:
        """Its name in our cards."""

    @property
    def public(self) -> bytes:
        """What others verify with."""

    def sign(self, message: bytes) -> bytes:
        """Sixty-four bytes."""


class SigningKeys(Protocol):
    """Whoever knows the key that signs: a keeper of several, or a key that is its own keeper."""

    def signer(self) -> Signer:
        """The key that signs now; there is always one while a gateway serves."""


class OwnKeys(SigningKeys, Protocol):
    """Our keys."""

    def published(self, now: int) -> Sequence[OwnKey]:
        """What cards show: keys that are honoured, newest first; then revoked ones, marked so."""

    async def ensure(self, now: int) -> None:
        """Make a first key if there is none, whoever else starts at the same time."""

    async def create(self, now: int, *, kid: str | None = None) -> OwnKey:
        """Make the first key; refused where there is one (rotate it)."""

    async def rotate(self, now: int, *, overlap_seconds: int, lead_seconds: int = 0) -> OwnKey:
        """Show a new key, and sign with it when the lead has passed.

        The old one is honoured until the overlap has passed after that. Without a lead, a key that
        is shown already and does not sign yet is the one that takes over.
        """

    async def revoke(self, kid: str, now: int) -> bool:
        """Revoke a key at once, everywhere; False if there is none.

        If it is the one that signs, the next one does from now on, or else a new one. If it is the
        next one, the one that signs is not replaced after all.
        """

    async def list(self) -> Sequence[OwnKey]:
        """All of them, newest first."""


class PinnedKey(Struct, frozen=True, kw_only=True):
    """A key of a sender that the operator wrote down. Without `kid` it matches any keyid."""

    sender: str  # "agent://globex.example", "agent://client-x"
    public: bytes
    kid: str | None = None
    added: int = 0
    revoked: int | None = None
    from_file: bool = False  # written in carnet.toml, so read-only to the program


class PinnedKeys(Protocol):
    """The keys that the operator wrote down."""

    def of(self, sender: str) -> Sequence[PinnedKey]:
        """The keys of a sender, revoked ones too; from memory, at most a second old."""

    async def pin(self, key: PinnedKey) -> None:
        """Add one; the same sender and kid again replaces it."""

    async def revoke(self, sender: str, kid: str | None, now: int) -> int:
        """Revoke the keys of a sender (one of them, with a kid); how many."""

    async def remove(self, sender: str) -> int:
        """Forget a sender's keys; how many there were."""

    async def list(self) -> Sequence[PinnedKey]:
        """All of them, by sender."""


class NotLearned(Exception):
    """The key may be in the sender's card, which has not been fetched: `learn` it, ask again."""


class KeyRing(Protocol):
    """The keys of senders: pinned, or learned from their cards (R14)."""

    def find(self, sender: str, keyid: str, now: int) -> bytes:
        """The public key. Raises KeyUnknown, KeyRevoked, or NotLearned."""

    def every(self, sender: str, now: int) -> Sequence[bytes]:
        """All public keys that hold, for what names none of them. Raises as `find` does."""

    def is_pinned(self, sender: str) -> bool:
        """Whether the operator wrote a key down for this very sender."""

    async def learn(self, sender: str) -> None:
        """Fetch the card of a sender, once for all who ask at the same time.

        Whatever comes of it is remembered: `find` does not raise NotLearned for it again before
        the card's time, or the negative cache's, has passed. Raises Overloaded when too many wait.
        """

    async def need(self, sender: str) -> None:
        """The same for a call of ours: asked again also a second after it was asked in vain.

        What strangers send never leads here.
        """
