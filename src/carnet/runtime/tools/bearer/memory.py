"""Memory, read and written by a loop in a process of its own: through the gateway that asked it.

`BearerPast` searches what was said before in the same way.

Law. Whose it is the gateway knows, by the bearer of the turn. What it refuses is for the model.
"""

import builtins
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from carnet.core.memory.text import LineHit
from carnet.core.people.identity import Secret
from carnet.ports.memory.memory import MOST_FILE_BYTES, MemoryFile
from carnet.ports.memory.past import PastHit
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.tools.bearer.gateway import MISSING, TurnGateway

PLACE: Final = "/turn/memory"
PAST: Final = "/turn/conversations"
SECONDS: Final = 30.0
MOST_BYTES: Final = 8 * MOST_FILE_BYTES


class BearerMemory:
    """The memory of one turn."""

    def __init__(self, http: HttpClient, gateway: str, bearer: Secret) -> None:
        """`gateway` is where it listens."""
        self._gateway = TurnGateway(http, gateway, bearer)

    async def read(self, path: str, /) -> str | None:
        """What a file says; None if there is none."""
        status, page = await _ask(self._gateway, "GET", _place(path))
        return None if status == MISSING else str(page["content"])

    async def list(self, folder: str, /) -> builtins.list[MemoryFile]:
        """The files in a folder and below it."""
        query = {"folder": folder.removesuffix("/")} if folder else {}
        _, page = await _ask(self._gateway, "GET", f"{PLACE}?{urlencode(query)}")
        return [_file(each) for each in page["files"]]

    async def search(self, question: str, /) -> builtins.list[LineHit]:
        """The lines that hold some words."""
        words = " ".join(question.split())
        _, page = await _ask(self._gateway, "GET", f"{PLACE}?{urlencode({'search': words})}")
        return [LineHit(each["path"], each["line"], each["text"]) for each in page["hits"]]

    async def write(self, path: str, text: str, /) -> MemoryFile:
        """Write a file."""
        _, page = await _ask(self._gateway, "PUT", _place(path), {"content": text})
        return _file(page)


class BearerPast:
    """What the person of one turn has said before."""

    def __init__(self, http: HttpClient, gateway: str, bearer: Secret) -> None:
        """`gateway` is where it listens."""
        self._gateway = TurnGateway(http, gateway, bearer)

    async def search(self, question: str, /) -> Sequence[PastHit]:
        """Her conversations that hold all words; the newest first."""
        words = " ".join(question.split())
        _, page = await _ask(self._gateway, "GET", f"{PAST}?{urlencode({'search': words})}")
        return msgspec.convert(page.get("conversations", []), list[PastHit])


async def _ask(
    gateway: TurnGateway, method: str, path: str, body: object | None = None
) -> tuple[int, dict[str, Any]]:
    return await gateway.done(method, path, body, seconds=SECONDS, max_bytes=MOST_BYTES)


def _place(path: str) -> str:
    return f"{PLACE}/{quote(path, safe='')}"


def _file(page: dict[str, Any]) -> MemoryFile:
    return MemoryFile(path=page["path"], version=page["version"], size=page["bytes"], at=None)
