"""Signing in by a token and by a link, what is told of it, and signing out."""

from collections.abc import Iterator

import pytest

from carnet.testing.wait import until
from tests.faults.stores import rows, served_on
from tests.gateway.people.browser import Browser, Somebody
from tests.selection import STORES
from tests.support.organisation import Organisation
from tests.support.served import AGENTS

MANY = "[limits]\nsign_in_failures = 1000\n"  # all of these tests come from one address


@pytest.fixture(scope="module", params=STORES)
def acme(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Organisation]:
    folder = tmp_path_factory.mktemp("sessions")
    with served_on(request, folder, MANY, agents=AGENTS) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    """One with the bound that is the default."""
    gateway = Organisation(tmp_path_factory.mktemp("strict"), "acme.example")
    gateway.start()
    yield gateway
    assert gateway.stop() == 0


@pytest.fixture(scope="module")
def alice(acme: Organisation) -> Somebody:
    return Somebody(acme)


def test_a_token_signs_in_and_a_browser_is_given_a_cookie(
    acme: Organisation, alice: Somebody
) -> None:
    browser = Browser(acme)
    reply = browser.by_token(alice.token)
    assert reply.status == 201
    name, _, value = browser.cookie.partition("=")
    assert (name, value[:3]) == (f"carnet_session_{acme.port}", "cs_")
    kept = reply.headers["set-cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(kept)
    assert value not in reply.body.decode()
    page = browser.send("GET", "/session").json
    assert page["person"] == alice.name
    assert (page["csrf"], page["session"]["token"]) == (browser.csrf, f"{alice.name}-laptop")
    assert page["session"]["current"]
    assert "call:*" in page["may"]
    assert acme.get("/session", token=alice.token).json == {
        "person": alice.name,
        "session": None,
        "csrf": None,
        "may": page["may"],
    }


def test_a_link_shows_a_page_and_signs_in_once(acme: Organisation, alice: Somebody) -> None:
    link, browser = alice.link(), Browser(acme)
    for _ in range(3):  # whoever looks at a link for somebody does not use it up
        page = browser.send("GET", link.removeprefix(acme.url))
        assert "form-action 'self'" in page.headers["content-security-policy"]
        assert (page.headers["cache-control"], browser.cookie) == ("no-store", "")
    reply = browser.press(link, [("origin", acme.url), ("sec-fetch-site", "same-origin")])
    assert (reply.status, reply.headers["location"]) == (303, "/console/")
    assert browser.send("GET", "/session").json["person"] == alice.name
    again = Browser(acme).press(link)
    assert (again.status, again.code) == (401, "sign_in_code_invalid")
    assert "set-cookie" not in again.headers


def test_a_code_signs_in_from_a_program_too(acme: Organisation, alice: Somebody) -> None:
    code, browser = alice.code(), Browser(acme)
    assert browser.by_code(code).status == 201
    assert browser.send("GET", "/session").json["person"] == alice.name
    assert Browser(acme).by_code(code).code == "sign_in_code_invalid"


def test_a_code_that_was_not_used_in_time_signs_nobody_in(
    acme: Organisation, alice: Somebody
) -> None:
    code = alice.code()
    rows(acme, "UPDATE session SET until = 1 WHERE begun IS NULL AND ended IS NULL")
    assert Browser(acme).by_code(code).code == "sign_in_code_invalid"


def test_who_is_no_person_does_not_sign_in(acme: Organisation) -> None:
    machine = acme.new_token("machine-of-sessions")
    reply = Browser(acme).by_token(machine)
    assert (reply.status, reply.code) == (403, "person_required")
    assert acme.get("/sessions", token=machine).code == "person_required"


def test_a_session_does_not_make_another(alice: Somebody) -> None:
    """Else it would outlast what it may."""
    browser = alice.browser()
    reply = browser.post("/session")
    assert (reply.status, reply.code) == (401, "token_missing")


def test_the_page_of_another_site_signs_nobody_in(acme: Organisation, alice: Somebody) -> None:
    """It could have somebody act as another, and not notice."""
    for field in (("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")):
        browser = Browser(acme)
        reply = browser.press(alice.link(), [field])
        assert (reply.status, reply.code, browser.cookie) == (403, "cross_site", "")


def test_who_is_not_signed_in_cannot_sign_out(acme: Organisation, alice: Somebody) -> None:
    """B52."""
    nobody = Browser(acme)
    assert nobody.send("DELETE", "/session").status == 401
    by_token = [("authorization", f"Bearer {alice.token}")]
    reply = nobody.send("DELETE", "/session", fields=by_token)
    assert (reply.status, reply.code) == (401, "session_invalid")


def test_who_signs_out_is_nobody_any_more(acme: Organisation, alice: Somebody) -> None:
    browser, other = alice.browser(), alice.browser()
    cookie = browser.cookie
    out = browser.send("DELETE", "/session")
    assert (out.status, browser.cookie) == (200, f"carnet_session_{acme.port}=")
    browser.cookie = cookie  # as one would who has kept it
    for reply in (browser.send("GET", "/runs"), browser.send("DELETE", "/session")):
        assert (reply.status, reply.code) == (401, "session_invalid")
    assert other.send("GET", "/runs").status == 200


def test_the_sixth_attempt_that_fails_is_429_and_who_knows_better_comes_in(
    strict: Organisation,
) -> None:
    """B53: by a body that is none, as there, and by codes that are nobody's."""
    alice, nobody = Somebody(strict), Browser(strict)

    def attempt(body: bytes) -> tuple[int, str]:
        reply = nobody.send("POST", "/session", body)
        return reply.status, reply.code

    assert [attempt(b"{}") for _ in range(3)] == [(400, "invalid_request")] * 3
    assert [attempt(b'{"code": "x"}') for _ in range(2)] == [(401, "sign_in_code_invalid")] * 2
    for body in (b"{}", b'{"code": "x"}', b"["):
        assert attempt(body) == (429, "too_many_failures")
    assert nobody.by_token("ck_x").code == "too_many_failures"
    assert nobody.by_code(alice.code()).status == 201
    assert Browser(strict).by_token(alice.token).status == 201


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"code": 7}', "code"),
        (b'{"code": "a b"}', "code"),
        (b'{"code": "x", "person": "owner"}', "code"),
        (b'{"token": "x"}', "code"),
    ],
)
def test_what_does_not_sign_in_is_refused_by_its_field(
    acme: Organisation, body: bytes, field: str
) -> None:
    reply = Browser(acme).send("POST", "/session", body)
    assert (reply.status, reply.json["error"]["field"]) == (400, field)


@pytest.mark.parametrize("query", ["", "?code=", "?code=%22%3E%3Cscript%3E", "?code=a&code=b"])
def test_what_is_no_code_is_shown_on_no_page(acme: Organisation, query: str) -> None:
    reply = Browser(acme).send("GET", f"/sign-in{query}")
    assert reply.status in {400, 401}
    assert b"script" not in reply.body


def test_everybody_sees_and_ends_her_own_sessions(acme: Organisation) -> None:
    carol, dave = Somebody(acme), Somebody(acme)
    first, second, his = carol.browser(), carol.browser(), dave.browser()
    listed = first.send("GET", "/sessions").json["sessions"]
    assert [one["current"] for one in listed] == [False, True]
    ended = first.send("DELETE", f"/sessions/{listed[0]['id']}")
    assert (ended.status, "set-cookie" in ended.headers) == (200, False)
    assert (second.send("GET", "/runs").status, first.send("GET", "/runs").status) == (401, 200)
    mine = listed[1]["id"]
    for number in (mine, 99_999_999, "x"):
        reply = his.send("DELETE", f"/sessions/{number}")
        assert (reply.status, reply.code) == (404, "session_not_found")
    assert first.send("GET", "/session").json["session"]["id"] == mine
    unused = carol.code()
    assert first.send("DELETE", "/sessions").json == {"ended": [mine]}
    assert first.cookie == f"carnet_session_{acme.port}="
    assert Browser(acme).by_code(unused).code == "sign_in_code_invalid"
    assert his.send("GET", "/runs").status == 200


def test_with_its_token_and_its_person_a_session_ends(acme: Organisation) -> None:
    """R25, R54: and so does a link that nobody has used."""
    erin, frank = Somebody(acme), Somebody(acme)
    hers, his, code = erin.browser(), frank.browser(), erin.code()
    acme.carnet("tokens", "revoke", f"{erin.name}-laptop")
    until(lambda: hers.send("GET", "/runs").status == 401)
    assert Browser(acme).by_code(code).code == "sign_in_code_invalid"
    things = acme.json("people", "end", frank.name)["things"]
    assert [thing["kind"] for thing in things] == ["token", "session"]
    until(lambda: his.send("GET", "/runs").status == 401)


def test_one_that_nobody_uses_ends_and_one_that_is_used_lasts(acme: Organisation) -> None:
    gina = Somebody(acme)
    browser = gina.browser()
    number = browser.send("GET", "/session").json["session"]["id"]
    rows(acme, "UPDATE session SET used = used - 120000000 WHERE n = ?", number)
    kept = "SELECT used, until FROM session WHERE n = ?"
    ((used, until_then),) = rows(acme, kept, number)
    until(lambda: (browser.send("GET", "/runs"), rows(acme, kept, number)[0][0] > used)[1])
    ((_, until_now),) = rows(acme, kept, number)
    assert until_now > until_then
    rows(acme, "UPDATE session SET until = 1 WHERE n = ?", number)
    until(lambda: browser.send("GET", "/runs").status == 401)
    assert browser.send("GET", "/runs").code == "session_invalid"
