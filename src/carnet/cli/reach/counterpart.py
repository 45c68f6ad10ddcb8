"""A gateway elsewhere, as it shows itself: its name, and whether it takes our token.

Law 1. What does not answer, or is no Carnet, says nothing, and nothing is held against it.
Law 2. A token goes to the peer that it is for, and to nobody else.
"""

from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from carnet.core.people.identity import Secret
from carnet.errors import Upstream
from carnet.ports.world.http_client import Bounds, HttpClient, Outbound

SHORT: Final = Bounds(
    connect_seconds=2,
    first_byte_seconds=3,
    idle_seconds=3,
    total_seconds=3,
    max_bytes=256 * 1024,
)
_OK: Final = 200
_UNAUTHORIZED: Final = 401
_CARNET: Final = "/.well-known/carnet.json"
_MODELS: Final = "/v1/models"  # any token may read them


class _Page(Struct):
    domain: str


async def name_at(http: HttpClient, url: str) -> str | None:
    """What the Carnet at an address calls itself; None if none answers there."""
    request = Outbound(
        method="GET", url=url.rstrip("/") + _CARNET, body=b"", headers={}, bounds=SHORT
    )
    try:
        async with http.send(request) as answer:
            if answer.status != _OK:
                return None
            return msgspec.json.decode(await answer.read(), type=_Page).domain
    except (Upstream, msgspec.DecodeError):
        return None


async def name_behind(http: HttpClient, url: str) -> str | None:
    """The same for the address of a model, which may be a gateway's."""
    parts = urlsplit(url)
    return await name_at(http, f"{parts.scheme}://{parts.netloc}")


async def is_refused(http: HttpClient, url: str, token: Secret) -> bool:
    """Whether a gateway says that our token is none of its own, or no longer."""
    request = Outbound(
        method="GET",
        url=url.rstrip("/") + _MODELS,
        body=b"",
        headers={"accept": "application/json"},
        secrets={"authorization": Secret(f"Bearer {token.reveal()}")},
        bounds=SHORT,
    )
    try:
        async with http.send(request) as answer:
            return answer.status == _UNAUTHORIZED
    except Upstream:
        return False
