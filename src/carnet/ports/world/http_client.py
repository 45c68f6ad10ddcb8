"""HTTP requests to other machines, as everybody but `runtime.egress.client` sees them.

Law 1. Whoever sends names the class of the destination: written down by the operator (`named`) or
       learned from a peer (`learned`). The client checks the address before it dials.
Law 2. Leaving the context, for whatever reason, ends the exchange at once.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

from msgspec import Struct

from carnet.core.people.identity import Secret


class Bounds(Struct, frozen=True, kw_only=True):
    """How long and how much, at the most."""

    connect_seconds: float = 3.0
    first_byte_seconds: float = 120.0
    idle_seconds: float = 60.0
    total_seconds: float = 600.0
    max_bytes: int = 64 * 1024 * 1024


class Outbound(Struct, frozen=True, kw_only=True):
    """One request to another machine."""

    url: str
    body: bytes
    headers: Mapping[str, str]
    secrets: Mapping[str, Secret] = {}  # headers whose values must not be logged
    method: str = "POST"
    kind: Literal["named", "learned"] = "named"
    is_body_read: bool = True  # else the answer may be encoded in any way: its status says all
    bounds: Bounds = Bounds()
    signed: str = ""  # what was signed of it, as far as it is kept: see `wire.travel.signed_text`


class HttpAnswer(Protocol):
    """What came back; the body is still on the wire."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    def header(self, name: str) -> str | None:
        """One response header."""

    async def read(self) -> bytes:
        """The whole body, within the bounds."""

    async def next(self) -> bytes:
        """The next piece of the body as it arrives, within the bounds; empty when it has ended."""

    def chunks(self) -> AsyncIterator[bytes]:
        """The same pieces, one after the other."""


class NotSent(Exception):
    """The request never left: connecting failed, so trying again is safe."""


class NameUnknown(NotSent):
    """The host's name leads nowhere."""


class Unanswered(Exception):
    """A connection that was kept from before ended, and no byte of an answer came."""


class HttpClient(Protocol):
    """Sends requests."""

    def send(self, request: Outbound) -> AbstractAsyncContextManager[HttpAnswer]:
        """Send and give the answer's head.

        A request is sent once. Raises ProviderUnavailable (its `__cause__` is NotSent if nothing
        left, Unanswered if a kept connection was not there any more), ProviderTimeout,
        ProviderError, or EgressRefused for an address that may not be dialled.
        """
