"""What is held of a memory until somebody has read it is counted, for as long as it is held."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from carnet.core.people.identity import Actor, Caller
from carnet.gateway.people.memory import PAGES, OwnMemoryPages
from carnet.guards.readers import Readers
from carnet.ports.memory.memory import MemoryFile
from carnet.runtime.system import SystemClock
from carnet.wire.grammar.headers import Headers

CALLER = Caller(actor=Actor(name="token:alice"), scopes=frozenset(), person=1)
FILES = [MemoryFile(path=f"{n}.md", version=1, size=1000, at=1) for n in range(3)]


class Store:
    """Holds three files, and notes how much its readers hold while it reads them."""

    def __init__(self, readers: Readers) -> None:
        self.readers, self.held = readers, list[int]()

    async def search(self, *_: object) -> Sequence[object]:
        self.held.append(self.readers.total)
        return ()

    texts = search

    async def list(self, *_: object) -> Sequence[MemoryFile]:
        return FILES


@pytest.mark.parametrize("query", [b"full=true", b"search=tea"])
async def test_what_all_files_say_is_counted_until_it_is_read(query: bytes) -> None:
    """A74: whoever asks for it often, and reads none of it, makes itself wait."""
    readers = Readers()
    store: Any = Store(readers)
    written: list[int] = []

    async def reply(*_: object) -> None:
        written.append(readers.total)

    exchange: Any = SimpleNamespace(query=query, reply=reply, headers=Headers(()))
    pages = OwnMemoryPages(store, SystemClock(), lambda: {"echo"}, readers)
    await pages.list(exchange, CALLER, "echo")
    assert store.held == [PAGES * 3000]
    assert written == [PAGES * 3000 if query == b"full=true" else 0]
    assert readers.total == 0
