"""The cookie of who has signed in: its form, and from whose pages it is believed."""

import pytest

from carnet.core.people.identity import Secret
from carnet.core.people.session import PersonSession
from carnet.errors import CrossSite, SessionInvalid
from carnet.guards.caller.session import SignedIn, session_cookie
from carnet.testing.clock import FakeClock
from carnet.wire.grammar.headers import Headers

LOCAL = session_cookie("http://127.0.0.1:8700")
HERS = PersonSession(n=3, person=1, token=2, created=1, begun=1, used=1, until=2**60, last=2**60)
OWN = (b"host", b"127.0.0.1:8700")
COOKIE = (b"cookie", b"theme=dark; carnet_session_8700=cs_1")
CSRF = (b"x-csrf-token", b"csrf 3")

Field = tuple[bytes, bytes]


class Sessions:
    """Knows one."""

    def __init__(self) -> None:
        self.touched: list[int] = []

    async def find(self, secret: Secret, now: int) -> PersonSession | None:
        return HERS if secret.reveal() == "cs_1" and HERS.is_live(now) else None

    async def touch(self, session: PersonSession, now: int) -> None:
        del now
        self.touched.append(session.n)

    def csrf(self, session: PersonSession) -> str:
        return f"csrf {session.n}"


async def found(method: str, *fields: Field) -> PersonSession | None:
    sessions = Sessions()
    try:
        session = await SignedIn(sessions, LOCAL, FakeClock()).find(method, Headers(fields))
    except (CrossSite, SessionInvalid):
        assert sessions.touched == []  # who is refused keeps nobody signed in
        raise
    assert sessions.touched == ([] if session is None else [3])
    return session


def test_over_tls_the_name_of_the_cookie_is_this_hosts_alone() -> None:
    cookie = session_cookie("https://gw.acme.example/")
    name, value = cookie.write(Secret("cs_1"), 60)
    assert (name, value) == (
        b"set-cookie",
        b"__Host-carnet_session=cs_1; Path=/; Max-Age=60; HttpOnly; SameSite=Strict; Secure",
    )
    assert cookie.read(Headers([(b"cookie", b"carnet_session=cs_1")])) is None
    assert cookie.read(Headers([(b"cookie", b"__Host-carnet_session=cs_1")])) == Secret("cs_1")
    assert cookie.write(None)[1].startswith(b"__Host-carnet_session=; Path=/; Max-Age=0; ")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://127.0.0.1:8700", "carnet_session_8700"),
        ("http://127.0.0.1:8701", "carnet_session_8701"),
        ("http://[::1]:8700", "carnet_session_8700"),
        ("http://localhost", "carnet_session"),
        ("http://localhost:80", "carnet_session"),
        ("http://localhost:443", "carnet_session_443"),
        ("https://gw.acme.example", "__Host-carnet_session"),
        ("https://gw.acme.example:443/", "__Host-carnet_session"),
        ("https://gw.acme.example:8443", "__Host-carnet_session_8443"),
    ],
)
def test_its_name_has_the_port_which_a_browser_does_not_tell_apart(url: str, name: str) -> None:
    cookie = session_cookie(url)
    assert cookie.write(Secret("cs_1"))[1].startswith(f"{name}=cs_1; ".encode())
    mine = Headers([(b"cookie", f"{name}_x=no; {name}=cs_1; carnet_session_1=other".encode())])
    assert cookie.read(mine) == Secret("cs_1")


@pytest.mark.parametrize(
    ("url", "is_secure"),
    [
        ("http://127.0.0.1:8700", False),
        ("http://[::1]:8700", False),
        ("http://localhost:8700", False),
        ("http://acme.localhost", False),
        ("http://10.0.0.5:8700", True),
        ("http://gw.acme.example", True),
        ("https://localhost.example", True),
    ],
)
def test_only_on_loopback_does_it_go_without_tls(url: str, is_secure: bool) -> None:  # noqa: FBT001
    assert session_cookie(url).is_secure is is_secure
    assert (b"Secure" in LOCAL.write(Secret("x"))[1], b"HttpOnly" in LOCAL.write(None)[1]) == (
        False,
        True,
    )


async def test_a_request_without_a_session_shows_none() -> None:
    for cookie in (
        b"theme=dark",
        b"Carnet_Session_8700=cs_1",
        b"xcarnet_session_8700=cs_1",
        b";;=",
    ):
        assert await found("GET", OWN, (b"cookie", cookie)) is None
    assert await found("GET", OWN) is None


@pytest.mark.parametrize(
    "fields",
    [
        [(b"cookie", b"carnet_session_8700=cs_2")],
        [(b"cookie", b"carnet_session_8700=")],
        [(b"cookie", b"carnet_session_8700=a b")],
        [(b"cookie", b"carnet_session_8700=" + b"x" * 201)],
        [(b"cookie", b"carnet_session_8700=cs_1; carnet_session_8700=cs_1")],
        [COOKIE, (b"cookie", b"x=y")],
    ],
)
async def test_what_is_no_session_is_refused(fields: list[Field]) -> None:
    with pytest.raises(SessionInvalid):
        await found("GET", OWN, *fields)


@pytest.mark.parametrize(
    ("field", "is_believed"),
    [
        ((b"origin", b"http://127.0.0.1:8700"), True),
        ((b"origin", b"https://127.0.0.1:8700"), True),
        ((b"sec-fetch-site", b"same-origin"), True),
        ((b"sec-fetch-site", b"none"), True),
        ((b"accept", b"*/*"), True),
        ((b"origin", b"http://127.0.0.1"), False),
        ((b"origin", b"https://evil.example"), False),
        ((b"origin", b"null"), False),
        ((b"sec-fetch-site", b"same-site"), False),
        ((b"sec-fetch-site", b"cross-site"), False),
    ],
)
async def test_the_page_of_another_site_signs_nobody_in(
    field: Field,
    is_believed: bool,  # noqa: FBT001
) -> None:
    for method in ("GET", "POST"):
        if is_believed:
            assert await found(method, OWN, COOKIE, CSRF, field) == HERS
        else:
            with pytest.raises(CrossSite):
                await found(method, OWN, COOKIE, CSRF, field)


def test_behind_a_proxy_our_own_page_is_where_others_reach_us() -> None:
    cookie = session_cookie("https://gw.acme.example")
    inside = (b"host", b"10.0.0.7:8700")
    assert cookie.is_own_page(Headers([inside, (b"origin", b"https://gw.acme.example")]))
    assert not cookie.is_own_page(Headers([inside, (b"origin", b"http://gw.acme.example")]))


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "NEW"])
async def test_a_change_shows_the_csrf_token_of_its_session(method: str) -> None:
    for shown in ([], [(b"x-csrf-token", b"csrf 4")], [(b"x-csrf-token", b"\xe9")]):
        with pytest.raises(CrossSite):
            await found(method, OWN, COOKIE, *shown)
    assert await found(method, OWN, COOKIE, CSRF) == HERS


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
async def test_who_only_reads_need_not(method: str) -> None:
    assert await found(method, OWN, COOKIE) == HERS
