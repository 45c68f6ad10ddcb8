"""Does a cookie name somebody who has signed in, and did a page of ours have it sent?

Law 1. A cookie is sent by a browser whoever made the page that asks: it is believed where the
       request comes from a page of our own origin, or from no page at all. What would change
       something shows the session's csrf token as well, which no other page can read.
Law 2. A session is looked at where nothing else says who asks: what a program shows by itself goes
       before what a browser adds.
Law 3. The cookie is kept from scripts and from other sites, and sent over TLS alone, under a name
       that no other host can set; on loopback, where there is none, without those two.
Law 4. Cookies know hosts and no ports: the name has the port of `public_url`, so that gateways on
       one host sign nobody out of one another. Those behind one `public_url` have one name.
"""

import hmac
import re
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from carnet.core.people.identity import Secret
from carnet.core.people.session import PersonSession
from carnet.errors import CrossSite, Malformed, SessionInvalid
from carnet.ports.trust.sessions import LiveSessions
from carnet.ports.world.clock import Clock
from carnet.wire.grammar.headers import Headers

NAME: Final = "carnet_session"
HOST_PREFIX: Final = "__Host-"
CSRF: Final = "x-csrf-token"
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})

_PORTS: Final = {"http": 80, "https": 443}  # that a URL need not name
_VALUE: Final = re.compile(r"[A-Za-z0-9_.=-]{1,200}", re.ASCII)


class SessionCookie(Struct, frozen=True, kw_only=True):
    """The cookie of one gateway."""

    is_secure: bool
    origin: str  # of our own pages
    name: str  # with the prefix a browser takes it from this host alone, over TLS

    def read(self, headers: Headers) -> Secret | None:
        """The session that a request shows; None where it shows none."""
        try:
            cookies = headers.get("cookie") or ""
        except Malformed:
            raise SessionInvalid("there are two lines of cookies") from None
        pairs = [pair.strip().partition("=") for pair in cookies.split(";")]
        found = [value for name, _, value in pairs if name == self.name]
        if len(found) > 1:
            raise SessionInvalid("there are two sessions")
        if found and _VALUE.fullmatch(found[0]) is None:
            raise SessionInvalid("the cookie is not in its form")
        return Secret(found[0]) if found else None

    def write(self, value: Secret | None, seconds: int = 0) -> tuple[bytes, bytes]:
        """The field that gives it to a browser for so long, or takes it away."""
        secure = "; Secure" if self.is_secure else ""
        text = "" if value is None else value.reveal()
        rest = f"Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
        return b"set-cookie", f"{self.name}={text}; {rest}".encode()

    def is_own_page(self, headers: Headers) -> bool:
        """Whether a request comes from a page of ours, or from no page at all."""
        origin, host = headers.get("origin"), headers.get("host")
        own = {None, self.origin, f"http://{host}", f"https://{host}"}
        return origin in own and headers.get("sec-fetch-site") in {None, "same-origin", "none"}


def session_cookie(public_url: str) -> SessionCookie:
    """The cookie of a gateway that is reached there."""
    at = urlsplit(public_url)
    is_secure = not _is_loopback(at.hostname or "")
    is_usual = at.port in {None, _PORTS.get(at.scheme)}
    return SessionCookie(
        is_secure=is_secure,
        origin=f"{at.scheme}://{at.netloc}",
        name=f"{HOST_PREFIX if is_secure else ''}{NAME}{'' if is_usual else f'_{at.port}'}",
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class SignedIn:
    """Finds who has signed in."""

    def __init__(self, sessions: LiveSessions, cookie: SessionCookie, clock: Clock) -> None:
        """`cookie` is that of the gateway."""
        self._sessions = sessions
        self.cookie = cookie
        self._clock = clock

    async def find(self, method: str, headers: Headers) -> PersonSession | None:
        """The session of a request; None where it shows none.

        Raises SessionInvalid for one that is over, and CrossSite where a foreign page has it sent.
        """
        shown = self.cookie.read(headers)
        if shown is None:
            return None
        if not self.cookie.is_own_page(headers):
            raise CrossSite("the page is another site's")
        now = self._clock.wall_us()
        session = await self._sessions.find(shown, now)
        if session is None:
            raise SessionInvalid
        if method not in SAFE_METHODS:
            token = (headers.get(CSRF) or "").encode("latin-1", "replace")
            if not hmac.compare_digest(token, self._sessions.csrf(session).encode()):
                raise CrossSite("the csrf token is missing, or another session's")
        await self._sessions.touch(session, now)
        return session
