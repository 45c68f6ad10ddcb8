"""What is secret in a message stands in no record, and is not told again."""

import sqlite3
from contextlib import closing

from carnet.testing.stage import Organisation
from tests.gateway.own_tasks.conftest import Caller

CANARY = "canary-4f1d"


def test_a_credential_in_metadata_is_neither_recorded_nor_told(gateway: Organisation) -> None:
    caller = Caller(gateway, "trusting")
    given = {"datalayer": {"credential": {"token": CANARY}, "execution": {"executionId": "e1"}}}
    task = caller.send("parts", "hello", metadata=given)
    assert CANARY not in str(task)
    assert CANARY not in str(caller.ask("parts", "GetTask", {"id": task["id"]}))
    run = task["metadata"]["urn:carnet:a2a:chain:v1"]["run"]
    shown = gateway.carnet("run", "show", run, "--format", "json")
    assert CANARY not in str(shown)
    with closing(sqlite3.connect(next(gateway.folder.rglob("carnet.db")))) as database:
        rows = database.execute("SELECT data FROM journal").fetchall()
    assert rows
    assert not [data for (data,) in rows if CANARY.encode() in data]


def test_the_secret_of_an_answer_is_not_told_again(gateway: Organisation) -> None:
    """An answer by its state is used up; what pays is nobody's business but the payer's."""
    caller = Caller(gateway, "answering")
    task = caller.send("asks", "begin")
    name = "urn:carnet:a2a:interrupt:v1"
    (asked,) = task["status"]["message"]["metadata"][name]["interrupts"]
    given = {
        name: {"state": asked["state"], "outcome": "accepted", "value": "Bern"},
        "x402.payment.payload": {"payload": CANARY},
    }
    done = caller.send("asks", "answer", taskId=task["id"], metadata=given)
    assert done["artifacts"][0]["parts"] == [{"text": "weather of Bern"}]
    shown = str(done) + str(caller.ask("asks", "GetTask", {"id": task["id"]}))
    assert asked["state"] not in shown
    assert CANARY not in shown
