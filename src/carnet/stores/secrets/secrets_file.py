"""The secrets of a store, in one file that only its owner may read.

pepper   keys the hashes of our tokens: the database alone gives nobody a token (A71)
seal     seals the tokens that peers gave us, and our signing keys
names    keys the names we give to other people's credentials; it is never rotated, because
         accounts are called by those names. The key of the ledger's chain is derived from it

`key_id` is written beside every hash and seal, so that rows made with another file are recognised.
Replicas share the file.
"""

import os
from base64 import b64decode, b64encode
from pathlib import Path
from shlex import quote
from typing import Final, final

import msgspec
from msgspec import Struct

from carnet.errors import ConfigInvalid
from carnet.stores.secrets.seal import KEY_BYTES, draw_key

_KEY: Final = "[store] secrets"
_MODE: Final = 0o600
_OTHERS: Final = 0o077
_MOST_BYTES: Final = 4096


@final
class Keys:
    """What the file holds."""

    __slots__ = ("key_id", "names", "pepper", "seal")

    def __init__(self, *, key_id: str, pepper: bytes, seal: bytes, names: bytes) -> None:
        self.key_id = key_id
        self.pepper = pepper
        self.seal = seal
        self.names = names

    def __repr__(self) -> str:
        return f"Keys({self.key_id}, ***)"


class _File(Struct, forbid_unknown_fields=True, kw_only=True):
    version: int
    key_id: str
    pepper: str
    seal: str
    names: str


def create(path: Path) -> Keys:
    """Draw new secrets and write them. An existing file is never replaced."""
    drawn = [draw_key() for _ in range(3)]
    key_id = draw_key()[:4].hex()
    keys = Keys(key_id=key_id, pepper=drawn[0], seal=drawn[1], names=drawn[2])
    pepper, seal, names = (b64encode(key).decode() for key in drawn)
    content = _File(version=1, key_id=key_id, pepper=pepper, seal=seal, names=names)
    draft = path.with_name(f".{path.name}.{key_id}")
    try:
        _write(draft, msgspec.json.format(msgspec.json.encode(content)) + b"\n")
        try:
            path.hardlink_to(draft)  # unlike a rename, it fails if the file exists
        finally:
            draft.unlink()
    except FileExistsError:
        raise _invalid(f"{path} exists already; it is not replaced") from None
    except OSError as error:
        raise _invalid(f"{path} cannot be written: {error.strerror}") from None
    return keys


def _write(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)


def load(path: Path) -> Keys:
    """Read the file, or say what is wrong with it without quoting it."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        raise _invalid(
            f"{path} does not exist; put back the copy that was kept with the store, or, where"
            " there is no store yet, make one with: carnet init"
        ) from None
    except OSError as error:
        raise _invalid(f"{path} cannot be read: {error.strerror}") from None
    if mode & _OTHERS:
        raise _invalid(f"{path} can be read by other users; run: chmod 600 {quote(str(path))}")
    try:
        return _read(data)
    except ValueError:  # msgspec's errors are ValueErrors too
        raise _invalid(
            f"{path} is not a secrets file of this version; restore it from a backup"
        ) from None


def _read(data: bytes) -> Keys:
    content = msgspec.json.decode(data, type=_File)
    if content.version != 1 or not content.key_id:
        raise ValueError
    return Keys(
        key_id=content.key_id,
        pepper=_decoded(content.pepper),
        seal=_decoded(content.seal),
        names=_decoded(content.names),
    )


def _decoded(text: str) -> bytes:
    key = b64decode(text, validate=True)
    if len(key) != KEY_BYTES:
        raise ValueError
    return key


def _invalid(reason: str) -> ConfigInvalid:
    return ConfigInvalid(key=_KEY, reason=reason)
