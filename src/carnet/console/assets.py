"""What the pages are drawn with: a style sheet, scripts and an icon, all from this gateway.

Law. They are read once, and named by their content: a browser keeps one until it is another one.
"""

from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct

from carnet.errors import RouteNotFound
from carnet.http.exchange import Exchange, Row

FOLDER: Final = Path(__file__).with_name("static")
ROOT: Final = "/console/static"
KINDS: Final = {
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
    ".txt": b"text/plain; charset=utf-8",
}
_FOREVER: Final = b"public, max-age=31536000, immutable"


class Asset(Struct, frozen=True):
    """One file."""

    kind: bytes
    body: bytes
    mark: str  # of its content


class Assets:
    """The files, by their names."""

    def __init__(self) -> None:
        self._files = {path.name: _read(path) for path in sorted(FOLDER.iterdir())}

    def at(self, name: str) -> str:
        """Where a page finds one."""
        return f"{ROOT}/{name}?v={self._files[name].mark}"

    async def show(self, exchange: Exchange, name: str) -> None:
        """GET /console/static/{file}."""
        found = self._files.get(name)
        if found is None:
            raise RouteNotFound
        headers = [
            (b"content-type", found.kind),
            (b"cache-control", _FOREVER),
            (b"x-content-type-options", b"nosniff"),
            (b"cross-origin-resource-policy", b"same-origin"),
        ]
        await exchange.reply(200, headers, found.body)


def _read(path: Path) -> Asset:
    body = path.read_bytes()
    return Asset(KINDS[path.suffix], body, sha256(body).hexdigest()[:16])


ROUTES = (
    Row(
        method="GET",
        path=f"{ROOT}/{{file}}",
        endpoint=Assets.show,
        auth="open",
        summary="What the pages of the console are drawn with",
        is_page=True,
    ),
)
