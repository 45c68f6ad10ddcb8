"""Our records beside those of a partner: by the API, in the console, and by the command."""

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlencode

import pytest

from tests.console.pages import an_admin
from tests.gateway.people.browser import Browser, Somebody
from tests.support.federation import introduce, organisation
from tests.support.http import Reply
from tests.support.organisation import Organisation

JSON = [("content-type", "application/json")]


class Scene(NamedTuple):
    """Acme calls Globex, which has a price."""

    acme: Organisation
    globex: Organisation
    admin: Browser


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("comparison")
    acme, globex = (organisation(folder / name, f"{name}.example") for name in ("acme", "globex"))
    introduce(acme, globex)
    globex.start()
    acme.start()
    yield Scene(acme, globex, an_admin(acme).browser())
    assert (acme.stop(), globex.stop()) == (0, 0)


def compare(browser: Browser, body: bytes = b'{"peer": "globex.example"}') -> Reply:
    return browser.send("POST", "/ledger/compare", body, JSON)


def test_a_partner_that_agrees_and_one_that_does_not_are_told(pair: Scene) -> None:
    assert pair.admin.chat("x", "@paid@globex.example").status == 200
    page = compare(pair.admin).json
    assert (page["disagreements"], page["count"]) == ([], 0)
    assert page["we_owe"]["here"] == page["we_owe"]["there"] != "0"
    (path,) = pair.acme.folder.glob("var/*.db")
    with sqlite3.connect(path) as ours:  # we have it otherwise
        ours.execute("UPDATE outbound SET cost = cost * 2")
    page = compare(pair.admin).json
    (found,) = page["disagreements"]
    assert (found["kind"], found["owing"]) == ("other_amount", "us")
    shown = pair.acme.try_carnet("ledger", "compare", "globex.example").stdout
    assert (found["kind"] in shown, found["run"] in shown) == (True, True)
    form = urlencode({"peer": "globex.example", "days": "3"}).encode()
    reply = pair.admin.send("POST", "/console/ledger/compare", form)
    assert (reply.status, b"other_amount" in reply.body) == (200, True), reply.body


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"peer": "nobody.example"}', 404),
        (b'{"peer": 3}', 404),
        (b'{"peer": "globex.example", "days": 0}', 400),
        (b'{"peer": "globex.example", "days": 367}', 400),
        (b'{"peer": "globex.example", "days": true}', 400),
    ],
)
def test_what_makes_no_sense_is_refused(pair: Scene, body: bytes, status: int) -> None:
    assert compare(pair.admin, body).status == status


def test_nobody_compares_who_may_not_audit(pair: Scene) -> None:
    assert compare(Somebody(pair.acme).browser()).status == 403
