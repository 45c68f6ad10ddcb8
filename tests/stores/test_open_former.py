"""A store of the former release, opened by this one: nothing is lost, everything is readable."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from carnet.testing.wait import until
from tests.exchanges.tap import Passed
from tests.stores.former.house import HERE, Hooks, House, listening, signed, travelling
from tests.stores.support import servers

RECORD = json.loads((HERE / "told.json").read_text())
ANSWERS: dict[str, dict[str, Any]] = RECORD["answers"]
TASKS: dict[str, str] = RECORD["tasks"]
WAITED = ("running", "queued", "signed")


class Opened(NamedTuple):
    """The gateway of this release on a former store, and what its hooks have received."""

    house: House
    received: list[Passed]

    def deliveries(self, task: str) -> list[Passed]:
        return [
            one for one in tuple(self.received) if ("carnet-task", task) in one.received.headers
        ]


def restored(folder: Path, store: str, server: servers.Server, hooks: Hooks) -> House:
    """A copy of the former gateway's folder, with its rows in a store."""
    (folder / "var").mkdir()
    for name in ("secrets.key", "starter.token"):
        shutil.copy(HERE / name, folder / "var")
        (folder / "var" / name).chmod(0o600)
    shutil.copy(HERE / "agents.py", folder)
    settings = hooks.named_in((HERE / "carnet.toml").read_text())
    rows = hooks.named_in((HERE / f"{store}.sql").read_text())
    if store == "postgres":
        url = server.empty()
        servers.run(url, rows)
        settings = settings.replace("sqlite:var/carnet.db", url)
    else:
        with closing(sqlite3.connect(folder / "var" / "carnet.db")) as database:
            database.executescript(rows)
    # However long ago it was recorded.
    settings = settings.replace("[retention]", '[retention]\nevery = "never"')
    (folder / "carnet.toml").write_text(settings)
    return House(folder, hooks)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def opened(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    server: servers.Server,
) -> Iterator[Opened]:
    with listening(broken=200) as hooks:
        house = restored(tmp_path_factory.mktemp("former"), request.param, server, hooks)
        house.carnet("migrate")
        (house.folder / "open").touch()
        house.start()
        try:
            yield Opened(house, hooks.received)
        finally:
            house.kill()


@pytest.mark.parametrize("name", ["done", "priced", "nested", "afar"])
def test_a_turn_that_is_done_is_answered_with_the_same_bytes(opened: Opened, name: str) -> None:
    agents = {"done": "echo", "priced": "paid", "nested": "twice", "afar": "afar"}
    text = "hello" if name == "done" else "x"
    got = opened.house.chat(agents[name], text, name)
    assert (got.status, got.body.decode()) == (200, ANSWERS[name]["body"])


def test_a_stream_that_is_done_is_answered_with_the_same_bytes_and_its_usage(
    opened: Opened,
) -> None:
    got = opened.house.chat("words", "one two", "streamed", stream=True).body.decode()
    former = ANSWERS["streamed"]["body"]  # by the former release, which told no usage unasked
    before, usage, after = got.partition(',"usage":{')
    assert usage
    assert before + after[after.index("}") + 1 :] == former


def test_a_signed_turn_that_is_done_is_answered_with_the_same_bytes(opened: Opened) -> None:
    got = opened.house.send(signed(f"nonce-again-{opened.house.port}"))
    assert got.body.decode() == ANSWERS["signed"]["body"]


def test_the_receipt_of_a_turn_that_is_done_is_kept(opened: Opened) -> None:
    got = opened.house.send(travelling(opened.house, f"nonce-again-{opened.house.port}"))
    assert got.body.decode() == ANSWERS["travelled"]["body"]
    assert got.field("carnet-receipt") == ANSWERS["travelled"]["receipt"]


def test_a_turn_that_failed_in_a_way_that_may_pass_runs_again(opened: Opened) -> None:
    assert opened.house.chat("broken", "x", "failed").status == ANSWERS["failed"]["status"]
    (turn,) = opened.house.carnet("run", "show", "failed")["turns"]
    assert (turn["state"], turn["attempt"]) == ("failed", 2)


def test_every_run_is_listed_and_can_be_shown(opened: Opened) -> None:
    listed = {line["run"] for line in opened.house.ask("GET", "/runs").json["runs"]}
    assert {"done", "streamed", "nested", "priced", "afar", "failed", "running"} <= listed
    for run in listed:
        assert opened.house.ask("GET", f"/runs/{run}").json["run"] == run


@pytest.mark.parametrize("run", ["nested", "afar"])
def test_the_page_of_a_run_says_what_it_said(opened: Opened, run: str) -> None:
    before = json.loads(RECORD["pages"][run])
    assert as_before(opened.house.ask("GET", f"/runs/{run}").json, before) == before


def as_before(page: Any, before: Any) -> Any:
    """A page without the members that it did not have then."""
    if isinstance(page, dict) and isinstance(before, dict):
        return {name: as_before(page[name], before[name]) for name in page if name in before}
    if isinstance(page, list) and isinstance(before, list) and len(page) == len(before):
        return [as_before(*both) for both in zip(page, before, strict=True)]
    return page


def test_the_events_of_a_run_can_be_read(opened: Opened) -> None:
    events = opened.house.ask("GET", "/runs/nested/events").body
    assert events.endswith(b'event: end\ndata: {"run":"nested"}\n\n')


def test_a_turn_that_ran_when_its_gateway_died_runs_again(opened: Opened) -> None:
    def again() -> bool:
        got = opened.house.chat("gated", "stream", "running")
        return got.status == 200 and "begun ended" in got.body.decode()

    until(again)  # on PostgreSQL once the lease of the dead gateway has ended
    (turn,) = opened.house.carnet("run", "show", "running")["turns"]
    assert (turn["state"], turn["attempt"]) == ("done", 2)


@pytest.mark.parametrize("name", WAITED)
def test_a_task_that_had_not_ended_ends_and_is_called_back(opened: Opened, name: str) -> None:
    until(lambda: opened.deliveries(TASKS[name]))
    (delivery, *_) = opened.deliveries(TASKS[name])
    assert b"worked True" in delivery.received.body
    if name != "signed":
        page = opened.house.ask("GET", f"/tasks/{TASKS[name]}").json
        assert (page["status"], page["result"]) == ("done", {"text": "worked True"})


def test_a_task_that_was_done_is_still_told(opened: Opened) -> None:
    page = opened.house.ask("GET", f"/tasks/{TASKS['well']}").json
    assert (page["status"], page["result"]) == ("done", {"text": "well"})


def test_a_delivery_that_was_due_again_is_delivered_and_no_other_is_sent_twice(
    opened: Opened,
) -> None:
    until(lambda: opened.deliveries(TASKS["broken"]))
    assert not opened.deliveries(TASKS["well"])
    assert not opened.deliveries(TASKS["gone"])


def test_the_ledger_verifies(opened: Opened) -> None:
    assert opened.house.carnet("ledger", "verify")["ok"]
    entries = opened.house.carnet("ledger", "--run", "priced")["entries"]
    assert [entry["amount"] for entry in entries] == ["0.0002"]


def test_tokens_peers_and_keys_are_those_that_were(opened: Opened) -> None:
    tokens = {token["name"] for token in opened.house.carnet("tokens", "list", "--all")["tokens"]}
    assert {"starter", "roaming", "ended"} <= tokens
    peers = opened.house.carnet("peers", "list")
    assert "globex.example" in json.dumps(peers)
    assert "agent://client-alice" in json.dumps(peers)
    keys = opened.house.carnet("keys", "list", "--all")["keys"]  # one has ended since
    assert [key["kid"] for key in keys] == ["k-cf301f65db4c", "k-020350fdd8f8"]
