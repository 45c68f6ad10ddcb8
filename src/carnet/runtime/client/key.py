"""The key of a client: kept in a file of its own, made when it is needed first.

Law 1. The file is readable by its owner alone, from the moment that it has a name.
Law 2. The key is named by what it is: two clients have the same keyid only if they have one key.
"""

import os
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from hashlib import sha256
from pathlib import Path
from shlex import quote
from typing import Final

from carnet.errors import ConfigInvalid
from carnet.ports.trust.keys import Signer
from carnet.runtime.system import SystemIds, new_seed
from carnet.wire.crypto import ed25519

DEFAULT_FILE: Final = Path("~/.carnet/client.key")

_OTHERS: Final = 0o077
_MOST_BYTES: Final = 256


class ClientKey:
    """A private key in memory. It is its own keeper: there is one, and it signs."""

    __slots__ = ("_sign", "kid", "public")

    def __init__(self, seed: bytes, *, kid: str | None = None) -> None:
        """`kid` is its name; by default the beginning of its fingerprint."""
        self._sign = ed25519.signer(seed)
        self.public = ed25519.public_of(seed)
        self.kid = kid or sha256(self.public).hexdigest()[:12]

    def __repr__(self) -> str:
        return f"ClientKey(kid={self.kid!r}, public={self.public_text!r})"

    @property
    def public_text(self) -> str:
        """The public half in base64, as `carnet peers add` takes it."""
        return ed25519.write_public_key(self.public)

    def sign(self, message: bytes) -> bytes:
        return self._sign(message)

    def signer(self) -> Signer:
        return self


def load_key(path: Path | str | None = None, *, kid: str | None = None) -> ClientKey:
    """The key in a file (by default `~/.carnet/client.key`), made if there is none."""
    file = Path(path or DEFAULT_FILE).expanduser()
    if not file.exists():
        if file.parent == DEFAULT_FILE.parent.expanduser():
            _make_folder(file)
        _make(file)
    return ClientKey(_read(file), kid=kid)


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            is_private = not os.fstat(opened.fileno()).st_mode & _OTHERS
            text = opened.read(_MOST_BYTES).strip()
    except OSError as error:
        why = (error.strerror or "unknown reason").lower()
        raise ConfigInvalid(key=str(file), reason=f"cannot be read: {why}.") from None
    if not is_private:
        close = f"chmod 600 {quote(str(file))}"
        raise ConfigInvalid(
            key=str(file), reason=f"can be read by others: make it yours with {close}."
        )
    try:
        seed = b64decode(text, validate=True)
    except NotBase64:
        seed = b""
    if len(seed) != ed25519.SEED_BYTES:
        raise ConfigInvalid(key=str(file), reason="holds no Ed25519 key: 32 bytes in base64.")
    return seed


def _make_folder(file: Path) -> None:
    """Make the folder of our own; any other is the caller's, and a typo should not become one."""
    try:
        file.parent.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise _unwritten(file, error) from None


def _make(file: Path) -> None:
    """Write a new key. Whoever comes at the same time finds a whole file or none."""
    draft = file.with_name(f".{file.name}.{SystemIds().uuid()}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(b64encode(new_seed()) + b"\n")
        try:
            os.link(draft, file)
        except FileExistsError:
            pass  # somebody was faster, and it is their key that counts
        finally:
            draft.unlink()
    except FileNotFoundError:
        reason = f"cannot be written: there is no folder {file.parent}; make it first."
        raise ConfigInvalid(key=str(file), reason=reason) from None
    except OSError as error:
        raise _unwritten(file, error) from None


def _unwritten(file: Path, error: OSError) -> ConfigInvalid:
    why = (error.strerror or "unknown reason").lower()
    return ConfigInvalid(key=str(file), reason=f"cannot be written: {why}.")
