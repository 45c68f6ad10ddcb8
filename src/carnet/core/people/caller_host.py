"""A host whose word about its own agents and users is believed, once it has shown who it is.

Law 1. A host is one URL: scheme, name, port and path. Two spellings of one place are the same host;
       a place below another is another host.
Law 2. It is verified by a key that it shares with us, or by the certificate that a trusted proxy of
       ours has verified. Only a keyed hash of the key is kept.
"""

import re
from typing import Any, Final

from msgspec import Struct

MOST_URL: Final = 2048

_SITE: Final = re.compile(
    r"(https?)://([A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?(/[!-~]*)?", re.ASCII
)
_PORTS: Final = {"http": "80", "https": "443"}


class CallerHost(Struct, frozen=True, kw_only=True):
    """A host that calls us."""

    url: str  # as `site_of` writes it
    certificate: str | None = None  # "sha256:HEX" of it, or the subject that the proxy tells
    metadata: dict[str, Any] = {}  # of the operator here; shown to agents and policies
    rate_calls: int | None = None  # of all its tokens together; None: as [limits] says
    rate_seconds: int = 60
    added: int = 0
    ended: int | None = None
    has_key: bool = False
    former_until: int | None = None  # so long the key before the last rotation holds
    from_file: bool = False  # written in carnet.toml, so read-only to the program


def site_of(url: str) -> str | None:
    """The one spelling of a host's URL; None where it is none."""
    match = _SITE.fullmatch(url) if len(url) <= MOST_URL else None
    if match is None or "?" in url or "#" in url:
        return None
    scheme, host, port, path = match.groups()
    at = "" if port is None or port == _PORTS[scheme] else f":{port}"
    return f"{scheme}://{host.lower()}{at}{(path or '').rstrip('/')}"
