"""Who may what, walked along the table of the console: a row that is added is tried as well."""

import re
from collections import Counter
from inspect import getsource

import pytest

from carnet.assembly.console import console
from carnet.core.people.permissions import ROLES
from carnet.http.exchange import Row
from tests.console.pages import CHANGES, PAGES, path_of
from tests.gateway.people.browser import Browser, Somebody
from tests.support.organisation import Organisation

OPEN = {
    *("GET /", "GET /console", "POST /console/sign-in"),
    "GET /console/static/{file}",
}
NAMED = re.compile(r"\{[a-z_]+\}")


def named(row: Row) -> str:
    return f"{row.method} {row.path}"


@pytest.fixture(scope="module")
def browsers(acme: Organisation) -> dict[str, Browser]:
    """Somebody of each role, by a token that may all that she may."""
    found = {}
    for role in ROLES:
        somebody = Somebody(acme, "--role", role)
        scopes = [word for each in sorted(ROLES[role]) for word in ("--scope", each)]
        options = ("--person", somebody.name, *scopes)
        somebody.token = acme.new_token(f"{somebody.name}-wide", *options)
        found[role] = somebody.browser()
    return found


@pytest.mark.parametrize("row", [*PAGES, *CHANGES], ids=named)
def test_each_role_is_let_in_where_its_permissions_say_so_and_nowhere_else(
    browsers: dict[str, Browser], row: Row
) -> None:
    for role, browser in browsers.items():
        may = row.permission is None or row.permission in ROLES[role]
        if not may:
            reply = browser.send(row.method, path_of(row), b"" if row.method != "GET" else None)
            assert (reply.status, b"permission_missing" in reply.body) == (403, True), role
        elif row.method == "GET":
            assert browser.send("HEAD", path_of(row)).status != 403, role


def test_only_what_signs_in_and_draws_is_open_to_everybody() -> None:
    open_rows = {named(row) for row in console.ROUTES if row.auth != "token"}
    assert open_rows == OPEN


def test_every_row_that_is_served_is_in_the_table() -> None:
    served = set(re.findall(r"offered\(([A-Z_]+),", getsource(console.build_console)))
    listed = set(re.findall(r"\*([A-Z_]+)\b", getsource(console).partition("PLACES: Final")[0]))
    assert served
    assert served == listed


def test_no_change_of_the_whole_api_is_made_without_the_csrf_token(
    acme: Organisation, browsers: dict[str, Browser]
) -> None:
    paths = acme.get("/openapi.json").json["paths"]
    browser, refused = browsers["admin"], Counter[str]()
    for path, methods in paths.items():
        for method, operation in methods.items():
            is_change = method in {"post", "put", "patch", "delete"}
            if not is_change or operation.get("security") == []:
                continue
            reply = browser.send(
                method.upper(), NAMED.sub("x", path), b"{}", [("x-csrf-token", "")]
            )
            is_refused = 400 <= reply.status < 500 or b'"error"' in reply.body  # JSON-RPC: with 200
            assert is_refused, (method, path, reply.body)
            refused["cross_site" if b"cross_site" in reply.body else "before"] += 1
    # A call is read before anybody has to be known; `test_signed_in.py` sends whole ones.
    assert refused["cross_site"] > refused["before"] > 0
    assert browser.send("GET", "/session").status == 200
