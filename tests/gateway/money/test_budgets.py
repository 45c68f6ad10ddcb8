"""What may be spent is told to whom it bounds, and to who audits."""

from collections.abc import Iterator

import pytest

from carnet.testing.wait import until
from tests.console.pages import an_admin
from tests.gateway.people.browser import Somebody
from tests.support.federation import introduce, organisation
from tests.support.organisation import Organisation


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    folder = tmp_path_factory.mktemp("bounds")
    acme, globex = (organisation(folder / name, f"{name}.example") for name in ("acme", "globex"))
    introduce(globex, acme, credit="7")
    acme.start()
    yield acme
    assert acme.stop() == 0


def test_who_is_bounded_sees_how_much_is_left_and_nobody_elses(acme: Organisation) -> None:
    alice, bob = Somebody(acme), Somebody(acme)
    acme.carnet("budget", "set", f"person:{alice.name}", "--money", "3", "--calls", "9")
    acme.carnet("budget", "set", f"person:{bob.name}", "--money", "4", "--per", "day")
    limited = acme.new_token(f"{alice.name}-small", "--person", alice.name, "--limit", "2")
    browser = alice.browser()

    def is_counted() -> bool:
        """Whether the gateway knows of the budget, by a call: it looks once a second."""
        assert browser.chat("x", "paid").status == 200
        return bool(browser.send("GET", "/budgets").json["budgets"][0]["spent"]["calls"])

    until(lambda: browser.send("GET", "/budgets").json["limits"])
    until(is_counted)
    page = browser.send("GET", "/budgets").json
    (budget,) = page["budgets"]
    assert budget["subject"] == f"person:{alice.name}"
    assert (budget["limits"]["money"], budget["limits"]["calls"]) == ("3", 9)
    assert (budget["spent"]["calls"], budget["held"]["calls"]) == (1, 0)
    (limit,) = page["limits"]
    assert (limit["subject"], limit["limit"]) == (f"token:{alice.name}-small", "2")
    assert (limit["spent"], limit["left"]) == ("0", "2")
    assert limited not in browser.send("GET", "/budgets").body.decode()
    (other,) = bob.browser().send("GET", "/budgets").json["budgets"]
    assert (other["subject"], other["per"]) == (f"person:{bob.name}", "day")


def test_who_audits_sees_those_of_everybody_and_what_partners_may_owe(acme: Organisation) -> None:
    page = an_admin(acme).browser().send("GET", "/budgets").json
    listed = acme.json("budget", "list")["budgets"]
    assert [each["name"] for each in page["budgets"]] == [each["name"] for each in listed]
    caps = {each["subject"]: each["limit"] for each in page["limits"]}
    assert caps["peer:globex.example"] == "7"
    assert page["is_cut"] is False
