"""The hosts whose caller contexts can be verified."""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from carnet.core.people.caller_host import CallerHost
from carnet.core.people.identity import Secret


class NewCaller(Struct, frozen=True, kw_only=True):
    """What `callers add` asks for."""

    url: str
    certificate: str | None = None  # then it has no key
    metadata: dict[str, Any] = {}
    rate_calls: int | None = None
    rate_seconds: int = 60


class CallerHosts(Protocol):
    """Those that are listed."""

    def find(self, url: str, /) -> CallerHost | None:
        """A live one by its URL, however that is spelled; from memory, at most a second old."""

    def holds(self, host: CallerHost, key: Secret, now: int, /) -> bool:
        """Whether a key is the host's, or the one before it while that still holds."""


class CallerRegistry(CallerHosts, Protocol):
    """Those that are listed, and changing them."""

    async def add(self, new: NewCaller, now: int) -> Secret | None:
        """List one; its key is shown once and kept nowhere. None where it has a certificate."""

    async def rotate(self, url: str, now: int, *, overlap_seconds: int) -> Secret:
        """Give one another key; the one before holds for a while."""

    async def end(self, url: str, now: int) -> bool:
        """Believe one no longer; False if there is none."""

    async def list(self) -> Sequence[CallerHost]:
        """All of them, by their URLs, ended ones too."""


class NoCallers:
    """Nobody is listed."""

    def find(self, url: str, /) -> CallerHost | None:
        del url
        return None

    def holds(self, host: CallerHost, key: Secret, now: int, /) -> bool:
        del host, key, now
        return False


NO_CALLERS: Final = NoCallers()
