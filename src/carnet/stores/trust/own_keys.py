"""Our own keys: the port `carnet.ports.trust.keys.OwnKeys`.

Law 1. A private key is sealed for its name before it is stored, and leaves this file as a `Signer`.
Law 2. At most one key is the last: the database refuses a second one, whoever writes it.
Law 3. Each step of a rotation is one transaction: after a crash it was begun or it was not, one key
       signs, and the old one is honoured in both cases (F09).
Law 4. A new key is shown before it signs, for as long as others may go by what they saw of us last
       (D11): until then the one before it signs, by the clock of each gateway. Only where that one
       is revoked does the new one sign at once.
Law 5. A key that cannot be opened signs nothing; nothing is sent unsigned instead (F33).
"""

import builtins
import logging
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Final, final

from msgspec import Struct

from carnet.errors import ConfigInvalid, StorageUnavailable, UsageInvalid
from carnet.faults import point
from carnet.ports.trust.keys import KeyState, OwnKey
from carnet.ports.world.clock import Clock
from carnet.stores.database import Database, Statement
from carnet.stores.secrets.seal import Seal, Unsealable, draw_key
from carnet.stores.secrets.secrets_file import Keys
from carnet.wire.crypto import ed25519

_log = logging.getLogger(__name__)

MOST_SHOWN: Final = 32  # what readers of cards accept; the oldest that were revoked are left out

_SECOND: Final = 1_000_000
_KID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)

_LOAD = (
    "SELECT kid, public, active, created, signs_from, signs_until, not_after, revoked, sealed"
    " FROM own_key ORDER BY n DESC"
)
_ADD = (
    "INSERT INTO own_key (kid, public, sealed, key_id, active, created, signs_from)"
    " VALUES (?, ?, ?, ?, 1, ?, ?) ON CONFLICT DO NOTHING"
)
_NO_LAST = "NOT EXISTS (SELECT 1 FROM own_key WHERE active = 1)"
_RETIRE = "UPDATE own_key SET active = 0, not_after = ? WHERE active = 1 AND kid = ?"
_SIGN_ON = f"UPDATE own_key SET signs_until = ?, not_after = ? WHERE kid = ? AND {_NO_LAST}"  # noqa: S608
_BEGIN = "UPDATE own_key SET signs_from = ? WHERE active = 1 AND kid = ?"
_END = "UPDATE own_key SET signs_until = NULL, not_after = ? WHERE signs_until > ?"
_REVOKE = "UPDATE own_key SET active = 0, revoked = ? WHERE kid = ? AND revoked IS NULL"
_RESTORE = (
    "UPDATE own_key SET active = 1, signs_until = NULL, not_after = NULL"  # noqa: S608
    f" WHERE signs_until > ? AND revoked IS NULL AND {_NO_LAST}"
)


class _Kept(Struct, frozen=True):
    """A row of the table."""

    kid: str
    public: bytes
    is_last: bool  # `active` in the table: nothing has taken its place
    created: int
    signs_from: int
    signs_until: int | None  # of one whose successor does not sign yet
    not_after: int | None
    revoked: int | None
    sealed: bytes


@final
class StoredSigner:
    """The key that signs now."""

    __slots__ = ("_kid", "_public", "_sign")

    def __init__(self, kid: str, public: bytes, sign: Callable[[bytes], bytes]) -> None:
        self._kid = kid
        self._public = public
        self._sign = sign

    def __repr__(self) -> str:
        return f"StoredSigner({self._kid}, ***)"

    @property
    def kid(self) -> str:
        return self._kid

    @property
    def public(self) -> bytes:
        return self._public

    def sign(self, message: bytes) -> bytes:
        return self._sign(message)


class StoredKeys:
    """Our keys in one store."""

    def __init__(self, database: Database, keys: Keys, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._key_id = keys.key_id
        self._seal = Seal(keys.seal)
        self._kept: builtins.list[_Kept] = []
        self._opened: dict[str, StoredSigner] = {}
        self._signer: StoredSigner | None = None
        self._next: StoredSigner | None = None
        self._switch: int | None = None  # when the next one signs

    def signer(self) -> StoredSigner:
        """The key that signs now; there is always one while a gateway serves."""
        switched = self._switch is not None and self._clock.wall_us() >= self._switch
        signer = self._next if switched else self._signer
        if signer is None:
            raise StorageUnavailable("there is no key to sign with")
        return signer

    def published(self, now: int) -> builtins.list[OwnKey]:
        """What cards show: keys that are honoured, newest first; then revoked ones, marked so."""
        shown = [key for key in _as_own_keys(self._kept, now) if not is_over(key, now)]
        return sorted(shown, key=lambda key: key.state == "revoked")[:MOST_SHOWN]

    async def ensure(self, now: int) -> None:
        """Make a first key if there is none, whoever else starts at the same time."""
        await self.refresh()
        if _last(self._kept) is None:
            await self._database.transact([self._drawn(now)[1]])
            await self.refresh()
        if self._signer is None:
            raise ConfigInvalid(
                key="[store] secrets",
                reason="the signing key was sealed with another secrets file; put that file back,"
                " or replace the key with: carnet keys rotate",
            )

    async def create(self, now: int, *, kid: str | None = None) -> OwnKey:
        """Make the first key; refused where there is one."""
        kid, add = self._drawn(now, kid)
        (made,) = await self._database.transact([add])
        await self.refresh()
        if made:
            return self._named(kid)
        signing = _signing(self._kept, now)
        if signing is None:
            raise _taken(kid)
        raise UsageInvalid(
            reason=f"There is a key that signs already: {signing.kid}.",
            fix="Replace it, with a time in which both are honoured: carnet keys rotate",
        )

    async def rotate(self, now: int, *, overlap_seconds: int, lead_seconds: int = 0) -> OwnKey:
        """Show a new key, and sign with it when the lead has passed.

        The old one is honoured until the overlap has passed after that. Without a lead, a key that
        is shown already and does not sign yet is the one that takes over. Where the key that signs
        cannot be opened, nobody waits for it.
        """
        await self.refresh()
        overlap = overlap_seconds * _SECOND
        if self._next is not None:
            return await self._hurry(self._next.kid, now, overlap, lead_seconds)
        lead = 0 if self._signer is None else lead_seconds * _SECOND
        kid, add = self._drawn(now, signs_from=now + lead)
        replace = self._replacing(now + lead, now + lead + overlap, signs_on=lead > 0)
        point("rotate.before_switch")
        *_, made = await self._database.transact([self._locked(), *replace, add])
        point("rotate.after_switch")
        await self.refresh()
        if not made:
            raise _disturbed()
        return self._named(kid)

    def _replacing(self, switch: int, end: int, *, signs_on: bool) -> builtins.list[Statement]:
        """Make room for a new last key; the one that signs now goes on until the switch."""
        signing, last = _signing(self._kept, self._clock.wall_us()), _last(self._kept)
        if signing is None or last is None:
            return []
        sign_on = (_SIGN_ON, (switch if signs_on else None, end, signing.kid))
        return [(_RETIRE, (end, last.kid)), sign_on]

    async def _hurry(self, kid: str, now: int, overlap: int, lead_seconds: int) -> OwnKey:
        """Sign now with the key that was to sign soon."""
        if lead_seconds:
            raise UsageInvalid(
                reason=f"A new key is shown already, and will sign soon: {kid}.",
                fix="'carnet keys list' shows when; to sign with it now: "
                "carnet keys rotate --at-once",
            )
        begin, end = (_BEGIN, (now, kid)), (_END, (now + overlap, now))
        point("rotate.before_switch")
        _, begun, _ = await self._database.transact([self._locked(), begin, end])
        point("rotate.after_switch")
        await self.refresh()
        if not begun:
            raise _disturbed()
        return self._named(kid)

    async def revoke(self, kid: str, now: int) -> bool:
        """Revoke a key at once, everywhere; False if there is none.

        If it is the one that signs, the next one does from now on, or else a new one. If it is the
        next one, the one that signs is not replaced after all.
        """
        await self.refresh()
        if not any(key.kid == kid and key.revoked is None for key in self._kept):
            return False
        end, restore = (_REVOKE, (now, kid)), (_RESTORE, (now,))
        # Where there is a last key, another one cannot be added: nothing happens then.
        add = self._drawn(now)[1]
        _, ended, _, _ = await self._database.transact([self._locked(), end, restore, add])
        await self.refresh()
        return ended > 0

    async def list(self) -> builtins.list[OwnKey]:
        await self.refresh()
        return _as_own_keys(self._kept, self._clock.wall_us())

    async def refresh(self) -> None:
        self._kept = [_Kept(*row) for row in await self._database.fetch(_LOAD)]
        signing, last = _signing(self._kept, self._clock.wall_us()), _last(self._kept)
        opened = {key.kid: self._open(key) for key in (signing, last) if key is not None}
        self._opened = {kid: signer for kid, signer in opened.items() if signer is not None}
        self._signer = self._opened.get(signing.kid) if signing else None
        self._next = self._opened.get(last.kid) if last and last is not signing else None
        self._switch = signing.signs_until if signing else None

    def _open(self, key: _Kept) -> StoredSigner | None:
        if key.kid in self._opened:
            return self._opened[key.kid]
        try:
            seed = b64decode(self._seal.open(key.sealed, label=_label(key.kid)))
        except (Unsealable, ValueError):
            seed = b""
        if seed and ed25519.public_of(seed) == key.public:
            return StoredSigner(key.kid, key.public, ed25519.signer(seed))
        _log.warning(
            "the signing key %s was sealed with another secrets file; nothing is signed with it"
            " until that file is put back, or the key is replaced: carnet keys rotate",
            key.kid,
        )
        return None

    def _locked(self) -> Statement:
        """All keys, from the oldest on: whoever else changes them waits at the first one."""
        return f"SELECT n FROM own_key ORDER BY n{self._database.row_lock}", ()  # noqa: S608  our own words

    def _drawn(
        self, now: int, kid: str | None = None, *, signs_from: int | None = None
    ) -> tuple[str, Statement]:
        """A new key: its name, and the statement that makes it the last one if there is none."""
        seed = draw_key()
        public = ed25519.public_of(seed)
        name = f"k-{sha256(public).hexdigest()[:12]}" if kid is None else _checked(kid)
        sealed = self._seal.seal(b64encode(seed).decode(), label=_label(name))
        begins = now if signs_from is None else signs_from
        return name, (_ADD, (name, public, sealed, self._key_id, now, begins))

    def _named(self, kid: str) -> OwnKey:
        own = _as_own_keys(self._kept, self._clock.wall_us())
        return next(key for key in own if key.kid == kid)


def is_over(key: OwnKey, now: int) -> bool:
    """Whether the time in which a replaced key is still honoured has passed."""
    return key.state == "retiring" and key.not_after is not None and key.not_after <= now


def _disturbed() -> UsageInvalid:
    return UsageInvalid(
        reason="Somebody else changed the keys at the same moment.",
        fix="'carnet keys list' shows which key signs now.",
    )


def _last(kept: Sequence[_Kept]) -> _Kept | None:
    return next((key for key in kept if key.is_last), None)


def _signing(kept: Sequence[_Kept], now: int) -> _Kept | None:
    """The one whose successor does not sign yet, or else the last one."""
    for key in kept:
        if key.revoked is None and key.signs_until is not None and key.signs_until > now:
            return key
    return _last(kept)


def _as_own_keys(kept: Sequence[_Kept], now: int) -> list[OwnKey]:
    """The keys, each with what it does now."""
    signing = _signing(kept, now)
    return [_read(key, _state(key, signing)) for key in kept]


def _state(key: _Kept, signing: _Kept | None) -> KeyState:
    if key.revoked is not None:
        return "revoked"
    if key is signing:
        return "active"
    return "next" if key.is_last else "retiring"


def _read(key: _Kept, state: KeyState) -> OwnKey:
    return OwnKey(
        kid=key.kid,
        public=key.public,
        state=state,
        created=key.created,
        signs_from=key.signs_from,
        not_after=key.not_after,
        revoked=key.revoked,
    )


def _label(kid: str) -> str:
    return f"key:{kid}"


def _checked(kid: str) -> str:
    if not _KID.fullmatch(kid):
        raise UsageInvalid(
            reason="That is no name for a key.",
            fix="Use 1 to 64 letters, digits, '.', '_' or '-', a letter or digit first.",
        )
    return kid


def _taken(kid: str) -> UsageInvalid:
    return UsageInvalid(
        reason=f"There was a key named '{kid}' before; a name is given once.",
        fix="Choose another name, or none: then the key names itself.",
    )
