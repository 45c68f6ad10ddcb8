"""No hot statement reads a whole table, whatever the database believes of its size."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from carnet.stores.postgres import driver as postgres
from carnet.stores.postgres import statements as sql
from tests.stores.support import servers
from tests.stores.support.scenes import Place

HOT = (
    *("LOCK_RUNS", "USE_NONCES", "DEPTHS", "KNOWN_TURNS", "HELD_TURNS"),
    *("LOCK_RATES", "LOCK_QUOTAS", "WRITE", "CLEAN"),
    *("READ_QUOTAS", "LOST_TASKS", "PUT_TASKS", "WAIT_AGAIN", "END_TASKS", "PUT_DELIVERIES"),
    *("KEEP_CALLS", "PUT_CALLBACKS", "PENDING", "RESOLVE", "PUT_INTERRUPTS", "EXPIRE"),
    *("PUT_OUTBOUND", "QUEUED", "REFUNDS", "REFUND"),
)
# What reads all that there is, unless it has a condition.
UNBOUND = ("Seq Scan", "Index Scan", "Index Only Scan", "Bitmap Index Scan")
# Tables that have grown, were emptied and then looked at, as by a prune.
_EMPTIED = """
INSERT INTO run (id, issuer, account, calls, started)
    SELECT 'r' || g, 'i', 'a', 1, 1 FROM generate_series(1, 3000) AS g;
INSERT INTO nonce (sender, nonce, expires)
    SELECT 's', 'n' || g, 1 FROM generate_series(1, 3000) AS g;
DELETE FROM run WHERE n > {kept}; DELETE FROM nonce WHERE n > {kept}; ANALYZE
"""


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)


async def plan_of(session: postgres.PostgresSession, name: str) -> dict[str, Any]:
    """How the writer's connection runs a statement."""
    statement = getattr(sql, name)
    await session.change(f"PREPARE {name} AS {statement}")
    given = ", ".join(["NULL"] * max(map(int, re.findall(r"\$(\d+)", statement))))
    ((text,),) = await session.query(f"EXPLAIN (FORMAT JSON) EXECUTE {name}({given})")
    plan: dict[str, Any] = json.loads(text)[0]["Plan"]
    return plan


@pytest.mark.parametrize("kept", [0, 1, 20])
async def test_postgres_finds_the_rows_of_a_hot_statement_by_their_keys(
    place: Place, kept: int
) -> None:
    servers.run(place.postgres, _EMPTIED.format(kept=kept))
    session = await postgres.connect(place.postgres, postgres._HOT)  # noqa: SLF001  as the writer does
    try:
        for name in HOT:
            plan = await plan_of(session, name)
            reads = [
                node for node in nodes(plan) if "Relation Name" in node or "Index Name" in node
            ]
            unbound = [node for node in reads if node["Node Type"] in UNBOUND]
            assert all("Index Cond" in node for node in unbound), (name, unbound)
    finally:
        await session.close()
