"""Which of the waiting tasks are begun whose agent is elsewhere.

The names of such agents are chosen by callers, so nothing goes by them: who waits is found by the
quota that pays, one step in an index after another.

Law. Of one tenant only so many are awaited at a time, and a place that is free goes to whoever has
the fewest (A88). What cannot be called at present waits, and others of the same tenant do not.
"""
# ruff: noqa: S608  the texts are put together from our own words; every value is an argument

from collections import Counter
from typing import Final

from carnet.ports.calls.tasks import AwayRoom
from carnet.stores.calls.fairness import fairly
from carnet.stores.database import Database, Row, Value, marks

TENANTS_AT_A_TIME: Final = 100  # a statement has as many parts
SPARE: Final = 64  # tasks of a tenant that are looked at beside, where some cannot be called
MOST_WITHOUT: Final = 200  # agents that a statement leaves out

# As the index says it.
_WAITS: Final = (
    "t.state = 'queued' AND (substr(t.agent, 1, 1) = '@' OR substr(t.agent, 1, 8) = 'agent://')"
)
_TENANTS: Final = f"""
WITH RECURSIVE names (name) AS (
    SELECT MIN(t.purse) FROM turn t WHERE {_WAITS}
    UNION ALL
    SELECT (SELECT MIN(t.purse) FROM turn t WHERE {_WAITS} AND t.purse > m.name)
    FROM names m WHERE m.name IS NOT NULL
)
SELECT m.name FROM names m WHERE m.name IS NOT NULL
"""
_OF: Final = (
    f"SELECT t.n, t.agent, t.purse, t.rank FROM turn t WHERE {_WAITS} AND t.purse = ?{{}}"
    " ORDER BY t.n LIMIT ?"
)


async def waiting_elsewhere(database: Database, asked: AwayRoom) -> list[int]:
    """The turns of tasks to begin; fewer than are asked for where fewer wait."""
    if asked.most <= 0:
        return []
    running = Counter(asked.running)
    tenants = [name for (name,) in await database.fetch(_TENANTS)]
    tenants = sorted(
        [name for name in tenants if running[name] < asked.each], key=running.__getitem__
    )
    without = tuple(asked.without)[:MOST_WITHOUT]
    one = _OF.format(f" AND t.agent NOT IN ({marks(len(without))})" if without else "")
    found: list[Row] = []
    for i in range(0, len(tenants), TENANTS_AT_A_TIME):
        some = tenants[i : i + TENANTS_AT_A_TIME]
        parts = [f"SELECT * FROM ({one}) AS a{j}" for j in range(len(some))]
        args: list[Value] = []
        for name in some:
            args += [name, *without, asked.each + SPARE]
        left = {name: asked.each - running[name] for name in some}
        for row in await database.fetch(" UNION ALL ".join(parts), args):
            if left[row[2]] > 0 and asked.is_known(row[1]):
                left[row[2]] -= 1
                found.append(row)
        if len(found) >= asked.most:
            break
    return fairly(found, running, asked.most)
