"""`/docs/`: the pages of the documentation, as they come with the package.

Law 1. What is served is what was there when the gateway was built: a name is looked up, and never
       made into a path. Nothing is asked of another host, and no page has a script.
Law 2. A page is rendered once, beside the event loop, and kept: there are as many as there are.
"""

import asyncio
import posixpath
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

from carnet.errors import RouteNotFound
from carnet.gateway.manual.markdown import render
from carnet.http.exchange import Exchange, Row

INDEX: Final = "index"
ROOT: Final = "/docs/"
_TYPES: Final = {
    ".css": b"text/css; charset=utf-8",
    ".md": b"text/markdown; charset=utf-8",
    ".png": b"image/png",
    ".svg": b"image/svg+xml",
    ".txt": b"text/plain; charset=utf-8",
}
_POLICY: Final = (
    b"default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; "
    b"base-uri 'none'; form-action 'none'"
)
_HEADERS: Final = (
    (b"cache-control", b"no-cache"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", _POLICY),
)
_PAGE: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>
<link rel="stylesheet" href="/docs/style.css"></head>
<body>
<nav aria-label="Documentation"><a href="/docs/">Carnet</a> <a href="/docs/i-want-to">I want to</a>
<a href="/docs/tutorials/publish">Tutorials</a> <a href="/docs/reference/command-line">Commands</a>
<a href="/docs/configuration">Configuration</a> <a href="/docs/http">HTTP</a>
<a href="/docs/glossary">Glossary</a></nav>
<main>
{body}
</main>
</body>
</html>
"""


def find_manual() -> dict[str, Path]:
    """The files of the documentation by their names: in the package, or beside its source."""
    here = Path(__file__)
    inside, beside = here.with_name("pages"), here.parents[4] / "docs"
    folder = inside if inside.is_dir() else beside
    if not (folder / f"{INDEX}.md").is_file():
        return {}
    files = {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.suffix in _TYPES and path.is_file()
    }
    return files | {"style.css": here.with_name("style.css")}


class Manual:
    """The pages of one gateway."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        """`files` are what there is, by name."""
        self._files = files
        self._kept: dict[str, bytes] = {}

    async def index(self, exchange: Exchange) -> None:
        """GET /docs/: where to begin."""
        await self._show(exchange, INDEX)

    async def page(self, exchange: Exchange, *names: str) -> None:
        """GET /docs/{page}: one page, rendered; with `.md` as it was written."""
        await self._show(exchange, "/".join(names))

    async def llms(self, exchange: Exchange) -> None:
        """GET /llms.txt: the list of pages for programs that read."""
        await self._show(exchange, "llms.txt")

    async def _show(self, exchange: Exchange, name: str) -> None:
        is_file = name in self._files
        path = self._files.get(name if is_file else f"{name}.md")
        if path is None:
            raise RouteNotFound
        if name not in self._kept:
            read = path.read_bytes if is_file else lambda: self._rendered(name, path)
            self._kept[name] = await asyncio.to_thread(read)
        kind = _TYPES[path.suffix] if is_file else b"text/html; charset=utf-8"
        await exchange.reply(200, [(b"content-type", kind), *_HEADERS], self._kept[name])

    def _rendered(self, name: str, path: Path) -> bytes:
        folder = posixpath.dirname(name)
        title, body = render(path.read_text(), lambda target: self._resolve(folder, target))
        return _PAGE.format(title=title, body=body).encode()

    def _resolve(self, folder: str, target: str) -> str | None:
        """Where a link of a page in a folder leads; None for what is not served."""
        if target.startswith(("#", "https://")):
            return target
        where, sharp, place = target.partition("#")
        name = posixpath.normpath(posixpath.join(folder, where))
        if name not in self._files:
            return None
        return f"{ROOT}{name.removesuffix('.md')}{sharp}{place}"


def _row(
    path: str,
    endpoint: Callable[..., Awaitable[None]],
    summary: str,
    media: str = "text/html",
) -> Row:
    return Row(
        method="GET",
        path=path,
        endpoint=endpoint,
        auth="open",
        summary=summary,
        media=media,
    )


ROUTES: Final = (
    _row("/docs/", Manual.index, "The documentation"),
    _row("/docs/{page}", Manual.page, "A page of it"),
    _row("/docs/{folder}/{article}", Manual.page, "A page of it"),
    _row("/docs/{book}/{chapter}/{section}", Manual.page, "A page of it"),
    _row("/llms.txt", Manual.llms, "The pages, for programs that read", "text/plain"),
)
