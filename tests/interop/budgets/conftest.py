"""Two organisations whose agents call one another, ten at once, as deep as they may."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.faults.stores import number, rows
from tests.interop.conftest import Databases
from tests.support.federation import organisation
from tests.support.http import HeaderList, Reply
from tests.support.organisation import Organisation

TREE = '''

async def tree(visit: carnet.Visit) -> str:
    """Call ten others at once, here and there, and say how many have answered in all."""
    note(visit)
    if visit.is_final:
        return "1"
    here, there = "tree", "@tree@" + OTHER
    answers = await visit.fan_out([here] * 5 + [there] * 5, "grow", on_failure="collect")
    return str(1 + sum(int(each.text) for each in answers if each.state == "done"))


async def shares(visit: carnet.Visit) -> str:
    """Give one call a share, and say what is left, there and here."""
    before = visit.budget
    there = await visit.peer("left", budget=visit.text).ask("?")
    return f"{before.money} {before.calls} | {there} | {visit.budget.money} {visit.budget.calls}"


async def left(visit: carnet.Visit) -> str:
    """Say what is left."""
    note(visit)
    return f"{visit.budget.money} {visit.budget.calls} {visit.budget.tokens}"


from carnet.errors import BudgetExceeded


async def several(visit: carnet.Visit) -> str:
    """Call one after another until the budget refuses; say what it says."""
    note(visit)
    for count in range(int(visit.text)):
        try:
            await visit.peer("left").ask(f"{count}")
        except BudgetExceeded as refused:
            return f"{count} {refused.facts['part']} {refused.facts['limit']}"
    return visit.text


async def gives(visit: carnet.Visit) -> str:
    """Give one call a share that is less than what it will ask for."""
    return await visit.peer("spared", budget=visit.text).ask("?")


async def spared(visit: carnet.Visit) -> str:
    """Ask for what costs too much, and say what is left then."""
    try:
        return await visit.peer("left").ask("?")
    except BudgetExceeded:
        return f"{visit.budget.money} {visit.budget.calls}"


async def uses(visit: carnet.Visit) -> str:
    """Use tokens."""
    note(visit)
    visit.usage(tokens_out=int(visit.text))
    return visit.text
'''
GROWN = """
[limits]
run_calls = 5000
sender_calls_per_minute = 6000
agent_calls_per_minute = 6000

[agents.tree]
kind = "python"
target = "agents:tree"
price = "0.001"
reentry = true

[agents.shares]
kind = "python"
target = "agents:shares"

[agents.left]
kind = "python"
target = "agents:left"
price = "0.001"

[agents.several]
kind = "python"
target = "agents:several"

[agents.gives]
kind = "python"
target = "agents:gives"

[agents.spared]
kind = "python"
target = "agents:spared"

[agents.uses]
kind = "python"
target = "agents:uses"
"""


class Trees(NamedTuple):
    """Both of them."""

    acme: Organisation
    globex: Organisation
    is_sqlite: bool

    def call(self, agent: str, text: str, budget: str, run: str, *more: tuple[str, str]) -> Reply:
        headers: HeaderList = [("carnet-budget", budget), ("x-tangle-runid", run), *more]
        return self.acme.chat(text, agent, headers=headers)

    def ran(self, run: str) -> int:
        """How many agents have run for it."""
        sql = (
            "SELECT COUNT(*) FROM turn t JOIN run r ON r.n = t.run"
            " WHERE r.id = ? AND t.agent NOT LIKE '@%'"
        )
        return number(self.acme, sql, run) + number(self.globex, sql, run)

    def abroad(self, run: str) -> int:
        """How many of them at the other organisation."""
        sql = "SELECT COUNT(*) FROM turn t JOIN run r ON r.n = t.run WHERE r.id = ?"
        return number(self.globex, sql + " AND t.agent NOT LIKE '@%'", run)

    def spent(self, run: str) -> int:
        """What was credited to agents for it."""
        sql = "SELECT COALESCE(SUM(amount), 0) FROM ledger WHERE run = ? AND credit LIKE 'agent:%'"
        return number(self.acme, sql, run) + number(self.globex, sql, run)

    def held(self) -> list[tuple[int, int, int]]:
        """What is still held of budgets, at either."""
        sql = (
            "SELECT held_money, held_calls, held_tokens FROM budget"
            " WHERE held_money <> 0 OR held_calls <> 0 OR held_tokens <> 0"
        )
        return [*rows(self.acme, sql), *rows(self.globex, sql)]


@pytest.fixture(scope="module")
def trees(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trees]:
    place = tmp_path_factory.mktemp("budgets")
    acme = organisation(place / "acme", "acme.example", database())
    globex = organisation(place / "globex", "globex.example", database())
    for one, other in ((acme, globex), (globex, acme)):
        code = (one.folder / "agents.py").read_text() + TREE
        one.configure(GROWN, agents=f'{code}\nOTHER = "{other.domain}"\n')
        one.carnet("peers", "add", other.domain, "--url", other.url, "--credit", "1000")
    acme.start()
    globex.start()
    yield Trees(acme, globex, is_sqlite=database is str)
    assert (acme.stop(), globex.stop()) == (0, 0)
