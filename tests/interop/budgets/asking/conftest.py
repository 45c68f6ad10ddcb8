"""An organisation whose agents spend what they were given, and ask who pays for more."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from carnet.testing.wait import until
from tests.faults.stores import number, rows
from tests.interop.conftest import Databases
from tests.support.federation import organisation
from tests.support.http import HeaderList, Reply, request
from tests.support.organisation import Organisation

AGENTS = '''

from carnet.errors import BudgetExceeded


async def work(visit: carnet.Visit) -> str:
    """Be called, and say what for."""
    note(visit)
    return visit.text


async def several(visit: carnet.Visit) -> str:
    """Call one after another; say what they said, or why there are no more."""
    said = []
    for count in range(int(visit.text)):
        try:
            said.append(await visit.peer("work").ask(f"{count}"))
        except BudgetExceeded as refused:
            return f"{''.join(said)} no {refused.facts['part']}"
    return "".join(said)


async def boss(visit: carnet.Visit) -> str:
    """Have another call several."""
    first = await visit.peer("work").ask("a")
    return f"{first} {await visit.peer('several').ask(visit.text)}"


async def wide(visit: carnet.Visit) -> str:
    """Have three work at once, of which the last one needs more than its part."""
    branches = [carnet.Branch("work"), carnet.Branch("work"), carnet.Branch("several")]
    answers = await visit.fan_out(branches, visit.text, on_failure="collect")
    return " | ".join(each.text or each.state for each in answers)


async def bounds(visit: carnet.Visit) -> str:
    """Give a call a part that is too small for it."""
    return await visit.peer("several", budget="calls=2").ask(visit.text)
'''
CONFIG = """
[agents.work]
kind = "python"
target = "agents:work"
price = "0.001"

[agents.several]
kind = "python"
target = "agents:several"

[agents.boss]
kind = "python"
target = "agents:boss"

[agents.wide]
kind = "python"
target = "agents:wide"

[agents.bounds]
kind = "python"
target = "agents:bounds"

[agents.willing]
kind = "python"
target = "agents:several"
on_budget = "ask"
"""


class Payers(NamedTuple):
    """The organisation, and who asks there."""

    acme: Organisation

    def call(
        self, agent: str, text: str, budget: str, run: str, token: str = "", *more: tuple[str, str]
    ) -> Reply:
        named = (("x-tangle-runid", run), ("x-tangle-turnid", "t"))
        headers: HeaderList = [("carnet-budget", budget), *named, *more]
        return self.acme.chat(text, agent, token=token or self.acme.token, headers=headers)

    def asked(self, run: str, token: str = "") -> dict[str, Any]:
        """What is asked in a run, when it is."""
        found: list[dict[str, Any]] = []

        def look() -> bool:
            page = self.acme.get("/approvals", token=token or self.acme.token).json
            found[:] = [one for one in page["approvals"] if one["run"] == run]
            return bool(found)

        until(look)
        return found[0]

    def answer(self, asked: dict[str, Any], token: str = "", **decision: Any) -> Reply:  # noqa: ANN401, RUF100
        body = json.dumps({"outcome": "accepted"} | decision).encode()
        fields = [
            ("authorization", f"Bearer {token or self.acme.token}"),
            ("content-type", "application/json"),
        ]
        return request("POST", f"{self.acme.url}/approvals/{asked['id']}", fields, body)

    def ended(self, agent: str, text: str, budget: str, run: str, token: str = "") -> Reply:
        """What the call comes to, once it has been run on."""
        replies: list[Reply] = []

        def look() -> bool:
            replies[:] = [self.call(agent, text, budget, run, token)]
            return replies[0].status == 200

        until(look)
        return replies[0]

    def worked(self, run: str) -> list[int]:
        """How often each piece of work was done."""
        sql = (
            "SELECT t.attempt FROM turn t JOIN run r ON r.n = t.run"
            " WHERE r.id = ? AND t.agent = 'work' ORDER BY t.n"
        )
        return [attempt for (attempt,) in rows(self.acme, sql, run)]

    def paid(self, run: str) -> int:
        return number(self.acme, "SELECT COALESCE(SUM(amount), 0) FROM ledger WHERE run = ?", run)

    def held(self) -> list[Any]:
        sql = "SELECT name FROM budget WHERE held_money <> 0 OR held_calls <> 0 OR held_tokens <> 0"
        return rows(self.acme, sql)


@pytest.fixture(scope="module")
def payers(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Payers]:
    place = tmp_path_factory.mktemp("asking")
    acme = organisation(place / "acme", "acme.example", database())
    acme.configure(CONFIG, agents=(acme.folder / "agents.py").read_text() + AGENTS)
    acme.start()
    yield Payers(acme)
    assert acme.stop() == 0
