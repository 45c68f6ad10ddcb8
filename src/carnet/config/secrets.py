"""Opening a reference: the one place where a configured secret becomes a `Secret`.

Law. The value goes into the `Secret` and nowhere else; a complaint names the reference only.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from carnet.config.readers import SecretRef
from carnet.core.people.identity import Secret
from carnet.errors import ConfigInvalid

MOST_BYTES = 64 * 1024


def resolve_secret(
    ref: SecretRef, base: Path, *, key: str = "secret", env: Mapping[str, str] | None = None
) -> Secret:
    """The secret that a reference names; files are looked for beside `carnet.toml`."""
    if ref.env is not None:
        value = (os.environ if env is None else env).get(ref.env, "").strip()
        if not value:
            raise ConfigInvalid(
                key=key, reason=f"the environment variable {ref.env} is not set; set it"
            )
        return Secret(_visible(value, key, f"the environment variable {ref.env}"))
    path = secret_path(ref, base)
    try:
        data = path.read_bytes()
    except OSError as error:
        why = error.strerror or "it cannot be read"
        raise ConfigInvalid(key=key, reason=f"the file {path} cannot be read ({why})") from None
    if len(data) > MOST_BYTES:
        raise ConfigInvalid(key=key, reason=f"the file {path} is too large to be a secret")
    return Secret(_visible(data.decode("latin-1").strip("\r\n\t "), key, f"the file {path}"))


def secret_path(ref: SecretRef, base: Path) -> Path:
    """The file a reference names."""
    return base / Path(ref.file or "").expanduser()


def _visible(value: str, key: str, where: str) -> str:
    if not value:
        raise ConfigInvalid(key=key, reason=f"{where} is empty; put the secret into it")
    if not (value.isascii() and value.isprintable()):
        raise ConfigInvalid(key=key, reason=f"{where} does not hold one line of visible characters")
    return value
