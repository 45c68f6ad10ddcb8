"""Our own keys: the port `carnet.ports.keys.OwnKeys`.

Law 1. A private key is sealed for its name before it is stored, and leaves this file as a `Signer`.
Law 2. At most one key is active: the database refuses a second one, whoever writes it.
Law 3. Switching is one transaction: after a crash the old key signs or the new one, and the old
       one is honoured in both cases (F09).
Law 4. A key that cannot be opened signs nothing; nothing is sent unsigned instead (F33).
"""

import builtins
import logging
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from hashlib import sha256
from typing import Final, final

from carnet.errors import ConfigInvalid, StorageUnavailable, UsageInvalid
from carnet.faults import point
from carnet.ports.keys import KeyState, OwnKey
from carnet.stores.database import Database, Row, Statement
from carnet.stores.sealing import Seal, Unsealable, draw_key
from carnet.stores.secrets_file import Keys
from carnet.wire import ed25519

_log = logging.getLogger(__name__)

_SECOND: Final = 1_000_000
_KID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)

_LOAD = (
    "SELECT kid, public, active, created, not_after, revoked, sealed FROM own_key ORDER BY n DESC"
)
_ADD = (
    "INSERT INTO own_key (kid, public, sealed, key_id, active, created)"
    " VALUES (?, ?, ?, ?, 1, ?) ON CONFLICT DO NOTHING"
)
_RETIRE = "UPDATE own_key SET active = 0, not_after = ? WHERE active = 1"
_REVOKE = "UPDATE own_key SET active = 0, revoked = ? WHERE kid = ? AND revoked IS NULL"


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
        """Its name in our cards."""
        return self._kid

    @property
    def public(self) -> bytes:
        """What others verify with."""
        return self._public

    def sign(self, message: bytes) -> bytes:
        """Sixty-four bytes."""
        return self._sign(message)


class StoredKeys:
    """Our keys in one store."""

    def __init__(self, database: Database, keys: Keys) -> None:
        self._database = database
        self._key_id = keys.key_id
        self._seal = Seal(keys.seal)
        self._known: builtins.list[OwnKey] = []
        self._signer: StoredSigner | None = None

    def signer(self) -> StoredSigner:
        """The key that signs now; there is always one while a gateway serves."""
        if self._signer is None:
            raise StorageUnavailable("there is no key to sign with")
        return self._signer

    def published(self, now: int) -> builtins.list[OwnKey]:
        """What cards show: active and retiring keys, and revoked ones marked so; newest first."""
        return [key for key in self._known if not is_over(key, now)]

    async def ensure(self, now: int) -> None:
        """Make a first key if there is none, whoever else starts at the same time."""
        await self.refresh()
        if not any(key.state == "active" for key in self._known):
            await self._database.transact([self._drawn(now)[1]])
            await self.refresh()
        if self._signer is None:
            raise ConfigInvalid(
                key="[store] secrets",
                reason="the signing key was sealed with another secrets file; put that file back,"
                " or replace the key with: carnet keys rotate",
            )

    async def create(self, now: int, *, kid: str | None = None) -> OwnKey:
        """Make the first key; refused where one is active."""
        kid, add = self._drawn(now, kid)
        (made,) = await self._database.transact([add])
        await self.refresh()
        if made:
            return self._named(kid)
        active = [key.kid for key in self._known if key.state == "active"]
        if not active:
            raise _taken(kid)
        raise UsageInvalid(
            reason=f"There is a key that signs already: {active[0]}.",
            fix="Replace it, with a time in which both are honoured: carnet keys rotate",
        )

    async def rotate(self, now: int, *, overlap_seconds: int) -> OwnKey:
        """Sign with a new key from now on; the old one is honoured until the overlap has passed."""
        kid, add = self._drawn(now)
        point("rotate.before_switch")
        retire = (_RETIRE, (now + overlap_seconds * _SECOND,))
        _, _, made = await self._database.transact([self._locked(), retire, add])
        point("rotate.after_switch")
        await self.refresh()
        if not made:
            raise UsageInvalid(
                reason="Somebody else rotated the key at the same moment.",
                fix="'carnet keys list' shows which key signs now.",
            )
        return self._named(kid)

    async def revoke(self, kid: str, now: int) -> bool:
        """End a key at once, everywhere; False if there is none. The active one is replaced."""
        await self.refresh()
        if not any(key.kid == kid and key.state != "revoked" for key in self._known):
            return False
        # Where another key is active, a second one cannot be added: nothing happens then.
        end, add = (_REVOKE, (now, kid)), self._drawn(now)[1]
        _, ended, _ = await self._database.transact([self._locked(), end, add])
        await self.refresh()
        return ended > 0

    async def list(self) -> builtins.list[OwnKey]:
        """All of them, newest first."""
        await self.refresh()
        return self._known

    async def refresh(self) -> None:
        """Read the table again."""
        rows = await self._database.fetch(_LOAD)
        self._known = [_read(row) for row in rows]
        self._signer = self._opened(next((row for row in rows if row[2]), None))

    def _opened(self, row: Row | None) -> StoredSigner | None:
        if row is None:
            return None
        kid, public, sealed = row[0], row[1], row[-1]
        if self._signer is not None and self._signer.kid == kid:
            return self._signer
        try:
            seed = b64decode(self._seal.open(sealed, label=_label(kid)))
        except (Unsealable, ValueError):
            seed = b""
        if seed and ed25519.public_of(seed) == public:
            return StoredSigner(kid, public, ed25519.signer(seed))
        _log.warning(
            "the signing key %s was sealed with another secrets file; nothing is signed until"
            " that file is put back, or the key is replaced: carnet keys rotate",
            kid,
        )
        return None

    def _locked(self) -> Statement:
        """All keys, from the oldest on: whoever else changes them waits at the first one."""
        return f"SELECT n FROM own_key ORDER BY n{self._database.row_lock}", ()  # noqa: S608  our own words

    def _drawn(self, now: int, kid: str | None = None) -> tuple[str, Statement]:
        """A new key: its name, and the statement that makes it the active one if there is none."""
        seed = draw_key()
        public = ed25519.public_of(seed)
        name = f"k-{sha256(public).hexdigest()[:12]}" if kid is None else _checked(kid)
        sealed = self._seal.seal(b64encode(seed).decode(), label=_label(name))
        return name, (_ADD, (name, public, sealed, self._key_id, now))

    def _named(self, kid: str) -> OwnKey:
        return next(key for key in self._known if key.kid == kid)


def is_over(key: OwnKey, now: int) -> bool:
    """Whether the time in which a replaced key is still honoured has passed."""
    return key.state == "retiring" and key.not_after is not None and key.not_after <= now


def _read(row: Row) -> OwnKey:
    kid, public, active, created, not_after, revoked, _ = row
    state: KeyState = "active" if active else "retiring"
    if revoked is not None:
        state = "revoked"
    return OwnKey(kid=kid, public=public, state=state, created=created, not_after=not_after)


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
