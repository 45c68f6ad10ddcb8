"""Those who have signed in, and the links that sign in once."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from carnet.core.people.identity import Secret, Token
from carnet.core.people.session import PersonSession


class LiveSessions(Protocol):
    """Finds who has signed in."""

    async def find(self, secret: Secret, now: int) -> PersonSession | None:
        """The live session of a cookie, at most a second old."""

    async def touch(self, session: PersonSession, now: int) -> None:
        """Note that it was used: it lasts on from now."""

    def csrf(self, session: PersonSession) -> str:
        """What a page of ours shows with a change, and no page of another site can know."""


class PersonSessions(LiveSessions, Protocol):
    """The sessions of one store."""

    async def offer(self, token: Token, now: int) -> tuple[PersonSession, Secret]:
        """Make what signs in once, and soon, as who holds a token; the code is shown this once."""

    async def redeem(self, code: Secret, device: str, now: int) -> tuple[PersonSession, Secret]:
        """Begin a session with a code, which is used up; SignInCodeInvalid if it is no good."""

    async def begin(self, token: Token, device: str, now: int) -> tuple[PersonSession, Secret]:
        """Begin a session as who holds a token; TokenInvalid if that, or she, has ended."""

    def watched(self, session: int) -> AbstractContextManager[None]:
        """While it is entered, `is_over` knows the session."""

    def is_over(self, session: int) -> bool:
        """Whether one that is watched has ended; from memory, some seconds old."""

    async def list(self, person: int | None, now: int) -> Sequence[PersonSession]:
        """Those that are live, newest first, of one person or of everybody."""

    async def end(self, session: int, now: int, *, person: int | None = None) -> bool:
        """End one; of `person` alone, where she is named. False if there is none."""

    async def end_all(self, person: int, now: int) -> int:
        """End all of one person, and her links; how many sessions that were."""
