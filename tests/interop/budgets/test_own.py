"""What an agent pays from its own account: bounded by carnet.toml, and told when most is used."""

import json
from pathlib import Path

from carnet.testing.wait import until
from tests.faults.stores import number, rows
from tests.interop.conftest import Databases
from tests.support.federation import organisation

PAYS = '''

async def pays(visit: carnet.Visit) -> str:
    """Call one that has a price, from its own account."""
    return await visit.peer("paid").ask("?")
'''
OWN = """
[inbox]
notify = "http://127.0.0.1:9/notices"

[agents.pays]
kind = "python"
target = "agents:pays"
auth_source = "agent-owned"
spending_limit = "0.001"
daily_spending_limit = "1"
"""


def test_an_agent_pays_no_more_than_its_limit_and_the_operator_is_told_once(
    database: Databases, tmp_path: Path
) -> None:
    acme = organisation(tmp_path / "acme", "acme.example", database())
    acme.configure(OWN, agents=(acme.folder / "agents.py").read_text() + PAYS)
    acme.start()
    replies = [acme.chat("?", "pays") for _ in range(7)]
    assert [reply.status for reply in replies] == [200] * 5 + [402] * 2  # 0.0002 each
    error = replies[-1].json["error"]
    assert (error["code"], error["budget"], error["part"]) == ("budget_exceeded", "agent", "money")
    assert "spending_limit" in error["hint"]
    debited = "SELECT COALESCE(SUM(amount), 0) FROM ledger WHERE account = 'agent:pays'"
    assert number(acme, debited) == 1000
    until(lambda: number(acme, "SELECT COUNT(*) FROM budget_warning") == 1)
    found = rows(acme, "SELECT body FROM outbox WHERE kind = 'notice'")
    notices = [json.loads(bytes(body)) for (body,) in found]
    assert [one["data"]["budget"] for one in notices if one["type"] == "budget.warning"] == [
        "agent:pays"
    ]
    done = acme.try_carnet("budget", "set", "agent:pays", "--money", "5")
    assert done.returncode == 2
    assert "carnet.toml" in done.stderr
    assert acme.stop() == 0
