"""`python -m tests.stores.former.make` makes the store of a former release, with the code as it is.

Run it at a release, before its layout changes; the README says what is inside.
"""

import json
import shutil
import sqlite3
import tempfile
import threading
from contextlib import closing
from http.client import HTTPException
from pathlib import Path
from typing import Any

import carnet
from carnet.stores import migration
from carnet.testing.wait import until
from tests.exchanges.scene import INITECH
from tests.exchanges.stage import Answer
from tests.stores.former.house import (
    ALICE,
    HERE,
    Hooks,
    House,
    listening,
    signed,
    travelling,
)
from tests.stores.support import servers

MIGRATIONS = Path(carnet.__file__).parent / "stores" / "migrations"


def made(folder: Path, hooks: Hooks) -> tuple[House, dict[str, Any]]:
    """A folder whose gateway was killed at its work; what its callers were told before."""
    (folder / "var").mkdir()
    shutil.copy(HERE / "agents.py", folder)
    (folder / "carnet.toml").write_text(hooks.named_in((HERE / "carnet.toml").read_text()))
    house = House(folder, hooks)
    house.carnet("init", ".")
    for one in (ALICE, INITECH):
        house.carnet("peers", "add", one.identity, "--key", one.public, "--kid", one.kid)
    named = ("--url", "https://gw.globex.example", "--token-file", "var/starter.token")
    house.carnet("peers", "add", "globex.example", *named, "--credit", "5")
    house.carnet("tokens", "create", "roaming", "--forwardable", "--limit", "3")
    house.carnet("tokens", "create", "ended")
    house.carnet("tokens", "revoke", "ended")
    house.carnet("keys", "rotate")
    house.start()
    record = ended(house)
    house.stop()  # a checkpoint of the ledger is made
    house.start()
    record["tasks"] = begun(house)
    house.kill()
    return house, record


def ended(house: House) -> dict[str, Any]:
    """Turns that are over, and what was answered."""
    answers = {
        "done": house.chat("echo", "hello", "done"),
        "streamed": house.chat("words", "one two", "streamed", stream=True),
        "failed": house.chat("broken", "x", "failed"),
        "nested": house.chat("twice", "x", "nested"),
        "priced": house.chat("paid", "x", "priced"),
        "afar": house.chat("afar", "x", "afar"),
        "signed": house.send(signed("nonce-when-made")),
        "travelled": house.send(travelling(house, "nonce-when-made")),
    }
    pages = {name: house.ask("GET", f"/runs/{name}").body.decode() for name in ("nested", "afar")}
    return {"answers": {name: written(got) for name, got in answers.items()}, "pages": pages}


def written(got: Answer) -> dict[str, Any]:
    receipt = dict(got.headers).get("carnet-receipt")
    return {"status": got.status, "body": got.body.decode(), "receipt": receipt}


def begun(house: House) -> dict[str, str]:
    """Tasks in each state, deliveries in each state, and a turn that runs; its caller waits."""
    tasks = {hook: house.task("echo", hook, hook) for hook in ("well", "broken", "gone")}
    until(lambda: all(house.has_ended(task) for task in tasks.values()))
    until(lambda: _attempted(house) >= len(tasks))
    tasks["running"] = house.task("works", "running", "well")
    until((house.folder / "running.begun").exists)
    tasks["queued"] = house.task("works", "queued", "well")
    later = signed(
        "nonce-of-a-task",
        path="/agent/task",
        agent="works",
        mode="async",
        traceId="signed-task",
        payload={"text": "signed"},
        callbackUrl=f"{house.hooks}/well",
    )
    tasks["signed"] = house.send(later).json["taskId"]
    asking = threading.Thread(target=_leave_alone, args=(house,), daemon=True)
    asking.start()
    until((house.folder / "stream.begun").exists)
    return tasks


def _attempted(house: House) -> int:
    with closing(sqlite3.connect(house.folder / "var" / "carnet.db", timeout=30)) as store:
        return int(store.execute("SELECT count(*) FROM outbox WHERE attempts > 0").fetchone()[0])


def _leave_alone(house: House) -> None:
    try:
        house.chat("gated", "stream", "running", stream=True)
    except (OSError, HTTPException):
        return  # the gateway was killed, as it should be


def main() -> None:
    """Write the files beside this one."""
    with tempfile.TemporaryDirectory() as scratch, servers.running() as server:
        with listening(broken=500) as hooks:
            house, record = made(Path(scratch), hooks)
        var = house.folder / "var"
        with closing(sqlite3.connect(var / "carnet.db")) as store:
            (HERE / "sqlite.sql").write_text(hooks.recorded("\n".join(store.iterdump()) + "\n"))
        for name in ("secrets.key", "starter.token"):
            shutil.copy(var / name, HERE / name)
        (HERE / "told.json").write_text(hooks.recorded(json.dumps(record, indent=1) + "\n"))
        url = server.empty()
        house.carnet("migrate", "--to", url)
        (HERE / "postgres.sql").write_text(hooks.recorded(_dumped(url)))


def _dumped(url: str) -> str:
    """The whole database as SQL that any connection can run: the layout, and each row."""
    files = sorted(MIGRATIONS.glob("*.postgres.sql"))
    layout = [
        migration.TABLE.replace("INTEGER", "BIGINT") + ";",
        *(path.read_text() for path in files),
    ]
    tables = servers.rows(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    # The ledger lets nobody change it, and a file has the tables in any order.
    lines = ["SET session_replication_role = replica;"]
    for (table,) in sorted(tables):
        lines += [f"DELETE FROM {table};", *_inserts(url, table)]  # noqa: S608  a name of ours
    for (sequence,) in servers.rows(url, "SELECT sequencename FROM pg_sequences ORDER BY 1"):
        ((last, is_called),) = servers.rows(url, f"SELECT last_value, is_called FROM {sequence}")  # noqa: S608
        lines.append(f"SELECT setval('{sequence}', {last}, {is_called});")
    lines.append("SET session_replication_role = DEFAULT;")
    return "\n".join([*layout, *lines, ""])


def _inserts(url: str, table: str) -> list[str]:
    wanted = "SELECT column_name FROM information_schema.columns WHERE table_name = ? ORDER BY 1"
    names = [name for (name,) in servers.rows(url, wanted, (table,))]
    values = " || ',' || ".join(f"quote_nullable({name}::text)" for name in names)
    found = servers.rows(url, f"SELECT {values} FROM {table} ORDER BY 1")  # noqa: S608
    head = f"INSERT INTO {table} ({', '.join(names)}) OVERRIDING SYSTEM VALUE VALUES"
    return [f"{head} ({row});" for (row,) in found]


if __name__ == "__main__":
    main()
