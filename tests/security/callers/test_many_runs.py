"""A87: a tenant with many beside it reads its own runs and tasks, and others need not wait."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from carnet.testing.wait import until
from tests.support.federation import organisation
from tests.support.organisation import Organisation

FOREIGN = 30_000
# As many runs of somebody else, older than all others, as a busy year leaves.
# ruff: noqa: S608  the statements are put together from our own words
COUNT = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ?) "
FILL = (
    f"""{COUNT} INSERT INTO run (n, id, issuer, account, calls, started)
    SELECT n, 'old-' || n, 'acme.example', 'other', 1, n FROM c""",
    f"""{COUNT} INSERT INTO turn (n, run, key, digest, state, fence, attempt, turn, depth, agent,
    actor, created, ended, reserve, purse)
    SELECT n, n, x'00', x'00', 'done', 1, 1, 'old-' || n || '.t0.x', 0, 'echo', 'token:other', n,
    n, 0, 'token:other' FROM c""",
    """INSERT INTO turn_seen (turn, run, agent, actor, state, created)
    SELECT n, run, agent, actor, state, created FROM turn WHERE n <= ?""",
    """INSERT INTO task (turn, id, sender, lost)
    SELECT n, 'old-' || n, actor, 0 FROM turn WHERE n <= ?""",
)


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    gateway = organisation(tmp_path_factory.mktemp("busy") / "acme", "acme.example")
    with closing(sqlite3.connect(gateway.folder / "var" / "carnet.db")) as connection:
        for statement in FILL:
            connection.execute(statement, (FOREIGN,))
        connection.commit()
    gateway.start()
    yield gateway
    assert gateway.stop() == 0


def listed(gateway: Organisation, token: str, query: str = "") -> list[str]:
    """The runs of every page of a list."""
    found: list[str] = []
    before = ""
    for _ in range(50):
        page = gateway.get(f"/runs?limit=100{query}{before}", token=token).json
        found += [line["run"] for line in page["runs"]]
        if page["next"] is None:
            return found
        before = f"&before={page['next']}"
    raise AssertionError("the list has no end")


def test_a_reader_is_listed_its_own_runs_among_those_of_many(busy: Organisation) -> None:
    token = busy.new_token("alice")
    runs = [f"mine-{n}" for n in range(3)]
    for run in runs:
        assert busy.chat("hi", token=token, headers=[("x-tangle-runid", run)]).status == 200
    assert listed(busy, token) == runs[::-1]
    assert listed(busy, token, "&agent=echo") == runs[::-1]
    assert listed(busy, token, "&agent=words") == []
    assert listed(busy, token, "&state=done") == runs[::-1]


def test_a_reader_is_listed_its_own_tasks_among_those_of_many(busy: Organisation) -> None:
    token = busy.new_token("tina")
    tasks = [busy.chat("hi", token=token, path="/tasks").json["taskId"] for _ in range(3)]
    until(lambda: len(busy.get("/tasks?state=done", token=token).json["tasks"]) == len(tasks))
    for query in ("limit=2", "limit=2&agent=echo", "limit=2&state=done&agent=echo"):
        first = busy.get(f"/tasks?{query}", token=token).json
        rest = busy.get(f"/tasks?{query}&before={first['next']}", token=token).json
        pages = [[task["taskId"] for task in page["tasks"]] for page in (first, rest)]
        assert (pages, rest["next"]) == ([tasks[:0:-1], tasks[:1]], None)
    for query in ("agent=words", "state=failed"):
        page = busy.get(f"/tasks?{query}", token=token).json
        assert (page["tasks"], page["next"]) == ([], None)


def test_others_are_answered_while_one_asks_for_lists_again_and_again(busy: Organisation) -> None:
    """Whoever lists all day is listed; a replay of another is answered meanwhile, and right."""
    overseer = busy.new_token("overseer", "--scope", "admin:runs", "--scope", "run:read")
    token = busy.new_token("bob")
    ids = [("x-tangle-runid", "again"), ("x-tangle-turnid", "again.t0.x")]
    assert busy.chat("first", token=token, headers=ids).text == "first"
    with ThreadPoolExecutor(4) as pool:
        paths = ["/runs?limit=200&state=failed", "/runs?limit=200&agent=echo&code=none"] * 8
        lists = [pool.submit(busy.get, path, token=overseer) for path in paths]
        for _ in range(10):
            assert busy.chat("first", token=token, headers=ids).text == "first"
        pages = [reply.result().json for reply in lists]
    assert {len(page["runs"]) for page in pages} == {0}
