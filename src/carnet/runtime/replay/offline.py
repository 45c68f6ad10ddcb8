"""A process that calls nobody: what a replay runs may not leave it, whoever wrote it.

Law 1. While it holds, connecting, sending, looking up a name and starting a program are refused
       where Python itself would do them, in every thread; each attempt is noted. Where the process
       ends with it, it holds to that end: what an agent has begun may outlast its turn.
Law 2. What was said to be live may leave: it is so for its own task, and for nobody else.
Law 3. What a library does without Python is out of reach; no package of ours is such a one.
"""

import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, Final

from carnet.errors import EgressRefused
from carnet.ports.world.http_client import HttpAnswer, Outbound

LEAVING: Final = frozenset(
    {
        *("socket.connect", "socket.sendto", "socket.sendmsg", "subprocess.Popen", "os.system"),
        *("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn"),
        *("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"),
    }
)
NOBODY: Final = "a replay calls nobody"

_live: Final[ContextVar[bool]] = ContextVar("carnet_live", default=False)


class _Rule:
    """What is refused now, and what was tried meanwhile."""

    def __init__(self) -> None:
        self.refused: frozenset[str] = frozenset()
        self.tried: list[str] = []
        self.is_installed = False

    def hook(self, event: str, _: tuple[Any, ...]) -> None:
        """Refuse what is to leave; Python asks before it does anything of it."""
        if event in self.refused and not _live.get():
            self.tried.append(event)
            raise PermissionError(f"{NOBODY} ({event})")


_rule: Final = _Rule()


@contextmanager
def offline(*, to_the_end: bool) -> Iterator[list[str]]:
    """Refuse what would leave this process, perhaps to its end; gives what was tried."""
    if not _rule.is_installed:
        sys.addaudithook(_rule.hook)
        _rule.is_installed = True
    _rule.refused = LEAVING
    try:
        yield _rule.tried
    finally:
        if not to_the_end:
            _rule.refused = frozenset()


@contextmanager
def live() -> Iterator[None]:
    """Let this task leave, and the threads that work for it."""
    token = _live.set(True)
    try:
        yield
    finally:
        _live.reset(token)


class OfflineHttp:
    """Sends nothing, and notes what would have been asked."""

    def __init__(self) -> None:
        """Nobody has asked yet."""
        self.tried: list[str] = []

    def send(self, request: Outbound) -> AbstractAsyncContextManager[HttpAnswer]:
        """Refuse it."""
        self.tried.append(request.url)
        raise EgressRefused(NOBODY)
