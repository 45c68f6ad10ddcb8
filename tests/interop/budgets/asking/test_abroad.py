"""Two organisations: what is used up at the other is asked for here, where who pays is."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.faults.stores import number
from tests.interop.budgets.asking.conftest import AGENTS, CONFIG, Payers
from tests.interop.conftest import Databases
from tests.support.federation import organisation
from tests.support.organisation import Organisation

ABROAD = '''

async def burns(visit: carnet.Visit) -> str:
    """Call one after another, and let a refusal pass."""
    return "".join([await visit.peer("work").ask(f"{n}") for n in range(int(visit.text))])


async def sends(visit: carnet.Visit) -> str:
    """Have another organisation do it."""
    return await visit.peer("@burns@globex.example").ask(visit.text)


async def insists(visit: carnet.Visit) -> str:
    """Have another organisation do it, again and again, and count how often it refused."""
    refused = 0
    for _ in range(8):
        try:
            await visit.peer("@burns@globex.example").ask(visit.text)
        except carnet.errors.CarnetError:
            refused += 1
    return str(refused)


async def claims(visit: carnet.Visit) -> str:
    """Say that a part of the budget is used up, of which nothing was used."""
    raise carnet.errors.BudgetExceeded(budget="call", part=visit.text, observed=1, limit=0)


async def believes(visit: carnet.Visit) -> str:
    """Have another organisation say so."""
    try:
        return await visit.peer("@claims@globex.example").ask(visit.text)
    except carnet.errors.PeerRefused as refused:
        return refused.code
'''
MORE = """
[agents.burns]
kind = "python"
target = "agents:burns"

[agents.sends]
kind = "python"
target = "agents:sends"

[agents.insists]
kind = "python"
target = "agents:insists"

[agents.claims]
kind = "python"
target = "agents:claims"

[agents.believes]
kind = "python"
target = "agents:believes"
"""


class Pair(NamedTuple):
    """Both of them."""

    here: Payers
    globex: Organisation
    dialect: str

    def worked(self, run: str) -> int:
        sql = (
            "SELECT COUNT(*) FROM turn t JOIN run r ON r.n = t.run"
            " WHERE r.id = ? AND t.agent NOT LIKE '@%'"
        )
        return number(self.here.acme, sql, run) + number(self.globex, sql, run)


@pytest.fixture(scope="module", params=["tangle", "a2a", "samvad"])
def pair(
    database: Databases, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Pair]:
    """Each reaches the other over one dialect."""
    place = tmp_path_factory.mktemp("abroad")
    acme = organisation(place / "acme", "acme.example", database())
    globex = organisation(place / "globex", "globex.example", database())
    for one, other in ((acme, globex), (globex, acme)):
        code = (one.folder / "agents.py").read_text() + AGENTS + "import carnet.errors\n" + ABROAD
        one.configure(CONFIG + MORE, agents=code)
        known = ("--url", other.url, "--credit", "1000", "--dialect", request.param)
        one.carnet("peers", "add", other.domain, *known)
    acme.start()
    globex.start()
    yield Pair(Payers(acme), globex, request.param)
    assert (acme.stop(), globex.stop()) == (0, 0)


def test_what_a_callee_has_used_before_it_refuses_is_used(pair: Pair) -> None:
    reply = pair.here.call("insists", "9", "calls=8", "run-insists")
    assert reply.status == 200
    assert pair.worked("run-insists") <= 8


def test_what_is_used_up_abroad_is_asked_for_here_and_nothing_runs_twice(pair: Pair) -> None:
    if pair.dialect != "tangle":  # elsewhere a callee is given one call
        reply = pair.here.call("sends", "6", "calls=6,on=ask", "run-abroad")
        assert (reply.status, reply.json["error"]["code"]) == (502, "peer_refused")
        assert pair.here.held() == []
        return
    budget, run = "calls=6,on=ask", "run-abroad"
    reply = pair.here.call("sends", "6", budget, run)
    assert (reply.status, reply.json["error"]["code"]) == (403, "approval_required")
    asked = pair.here.asked(run)
    assert asked["budget"]["part"] == "calls"
    before = pair.worked(run)
    assert before <= 6
    assert pair.here.answer(asked).status == 200
    assert pair.here.ended("sends", "6", budget, run).text == "012345"
    sql = "SELECT COUNT(*) FROM turn t JOIN run r ON r.n = t.run WHERE r.id = ? AND agent = 'work'"
    assert number(pair.globex, sql, run) == 6
    paid = "SELECT COALESCE(SUM(amount), 0) FROM ledger WHERE run = ? AND credit = 'agent:work'"
    assert number(pair.globex, paid, run) == 6 * 1000
    assert pair.here.held() == []


@pytest.mark.parametrize(
    ("budget", "part"), [("money=5", "money"), ("money=5", "calls"), ("calls=9", "tokens")]
)
def test_nobody_is_asked_for_what_a_callee_abroad_did_not_lack(
    pair: Pair, budget: str, part: str
) -> None:
    run = f"run-claims-{budget.partition('=')[0]}-{part}"
    reply = pair.here.call("believes", part, f"{budget},on=ask", run)
    assert (reply.status, reply.text) == (200, "peer_refused")
    asked = pair.here.acme.get("/approvals").json["approvals"]
    assert [one for one in asked if one["run"] == run] == []


def test_a_call_that_is_passed_on_is_one_call_with_that_of_its_callee(pair: Pair) -> None:
    for more, run in ((0, "run-on-0"), (3, "run-on-3")):
        reply = pair.here.call("@burns@globex.example", f"{more}", f"calls={more + 1}", run)
        assert (reply.status, pair.worked(run)) == (200, more + 1)
    short = pair.here.call("@burns@globex.example", "3", "calls=3", "run-on-short")
    assert (short.status, pair.worked("run-on-short")) == (502, 3)
    assert pair.here.call("@burns@globex.example", "0", "calls=0", "run-on-none").status == 402
    assert pair.worked("run-on-none") == 0
    assert pair.here.held() == []


def test_money_that_is_used_up_abroad_is_asked_for_here(pair: Pair) -> None:
    budget, run = "money=0.003,on=ask", "run-money-abroad"
    reply = pair.here.call("sends", "6", budget, run)
    if pair.dialect == "a2a":  # the same message cannot be sent again with another budget
        assert (reply.status, reply.json["error"]["code"]) == (502, "peer_refused")
        return
    assert (reply.status, reply.json["error"]["code"]) == (403, "approval_required")
    asked = pair.here.asked(run)
    assert (asked["budget"]["part"], asked["budget"]["limit"]) == ("money", "0.003")
    assert pair.here.answer(asked, value="0.01").status == 200
    assert pair.here.ended("sends", "6", budget, run).text == "012345"
    sql = "SELECT COUNT(*) FROM turn t JOIN run r ON r.n = t.run WHERE r.id = ? AND agent = 'work'"
    assert number(pair.globex, sql, run) == 6
    assert pair.here.held() == []
