"""Webhook deliveries from the command line: shown, sent again, and their secrets."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from carnet.assembly.store import open_from
from carnet.config import load
from carnet.ports.world.outbox import Delivery, Outcome
from tests.cli.conftest import Cli

NOW = 1_800_000_000_000_000
BODY = b'{"traceId":"t","spanId":"s","status":"ok","result":{"text":"well"}}'
PENDING, DELIVERED, DEAD, GONE = "msg_waits", "msg_came", "msg_died", "msg_gone"


def delivery(name: str, host: str = "hooks.example") -> Delivery:
    return Delivery(
        id=name,
        kind="callback",
        url=f"https://{host}/in?token=1",
        receiver=f"https://{host}",
        body=BODY,
        task="task-1",
        secret_of="agent://globex.example",
    )


@pytest.fixture
def deliveries(home: Path) -> Path:
    """Four deliveries: one waits, one came, two died, to different hosts."""

    async def write() -> None:
        store = await open_from(load(home / "carnet.toml", {}), exclusive=False)
        try:
            outbox = store.outbox
            hosts = {DEAD: "down.example:8443", GONE: "gone.example"}
            for name in (DELIVERED, DEAD, GONE, PENDING):
                await outbox.put([delivery(name, hosts.get(name, "hooks.example"))], NOW)
            ends = {
                DELIVERED: Outcome(state="delivered", now=NOW, status=200),
                DEAD: Outcome(state="dead", now=NOW, status=500, reason="it answered 500"),
                GONE: Outcome(state="dead", now=NOW, status=410, reason="it said 410", gone=True),
            }
            for stored in await outbox.lease(NOW, until=NOW + 1, at_most=16, per_receiver=1):
                if stored.delivery.id in ends:
                    assert await outbox.mark(stored, ends[stored.delivery.id])
        finally:
            await store.close()

    asyncio.run(write())
    return home


@pytest.mark.usefixtures("home")
def test_without_deliveries_it_says_where_they_come_from(cli: Cli) -> None:
    assert "A task with a callback" in cli("outbox", "list").out
    assert cli("outbox", "list", "--format", "json").page == {"deliveries": [], "next": None}


@pytest.mark.usefixtures("deliveries")
def test_deliveries_are_listed_the_newest_first(cli: Cli) -> None:
    page = cli("outbox", "list", "--format", "json").page
    assert [line["delivery"] for line in page["deliveries"]] == [PENDING, GONE, DEAD, DELIVERED]
    assert page["deliveries"][2] == {
        "delivery": DEAD,
        "kind": "callback",
        "state": "dead",
        "receiver": "https://down.example:8443",
        "taskId": "task-1",
        "attempts": 1,
        "status": 500,
        "reason": "it answered 500",
        "created": "2027-01-15T08:00:00.000+00:00",
        "due": None,
        "ended": "2027-01-15T08:00:00.000+00:00",
    }
    lines = cli("outbox", "list", "--format", "jsonl").out.splitlines()
    assert len(lines) == 4
    text = cli("outbox", "list").out
    assert text.split()[:3] == ["DELIVERY", "KIND", "STATE"]
    assert "https://hooks.example" in text
    assert "it answered 500" in text
    assert "token=1" not in text  # what a URL holds is shown of one delivery alone


@pytest.mark.usefixtures("deliveries")
def test_a_list_can_be_of_one_state_and_goes_on_where_it_ended(cli: Cli) -> None:
    dead = cli("outbox", "list", "--state", "dead", "--format", "json").page["deliveries"]
    assert [line["delivery"] for line in dead] == [GONE, DEAD]
    first = cli("outbox", "list", "--limit", "3", "--format", "json").page
    rest = cli("outbox", "list", "--before", str(first["next"]), "--format", "json").page
    assert [line["delivery"] for line in rest["deliveries"]] == [DELIVERED]
    more = f"More: carnet outbox list --limit 3 --before {first['next']}"
    assert more in cli("outbox", "list", "--limit", "3").out
    dead = cli("outbox", "list", "--state", "dead", "--limit", "1").out
    assert "More: carnet outbox list --state dead --limit 1 --before " in dead


@pytest.mark.usefixtures("deliveries")
def test_a_delivery_is_shown_with_what_it_says(cli: Cli) -> None:
    page = cli("outbox", "show", DEAD, "--format", "json").page
    assert page["url"] == "https://down.example:8443/in?token=1"
    assert page["body"]["result"] == {"text": "well"}
    assert page["signed_for"] == "agent://globex.example"
    text = cli("outbox", "show", DEAD).out
    assert f"carnet outbox replay {DEAD}" in text
    assert '"text": "well"' in text
    assert "Send it again" not in cli("outbox", "show", DELIVERED).out


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("command", ["show", "replay"])
def test_a_delivery_that_is_not_there_is_refused(cli: Cli, command: str) -> None:
    ran = cli("outbox", command, "msg_none")
    assert ran.code == 1  # as of a run or a task
    assert "There is no such webhook delivery" in ran.err
    assert "outbox list" in ran.err
    assert (
        cli("outbox", command, "msg_none", "--format", "json").error["code"] == "delivery_not_found"
    )


@pytest.mark.usefixtures("deliveries")
def test_the_beginning_of_an_id_is_enough(cli: Cli) -> None:
    assert cli("outbox", "show", "msg_d", "--format", "json").page["delivery"] == DEAD
    assert cli("outbox", "replay", "msg_d", "--format", "json").page["deliveries"] == [DEAD]
    several = cli("outbox", "show", "msg_")
    assert (several.code, "4 deliveries begin with 'msg_'" in several.err) == (2, True)


@pytest.mark.usefixtures("home")
def test_where_none_has_died_nothing_is_promised(cli: Cli) -> None:
    ran = cli("outbox", "replay", "--dead")
    assert (ran.code, ran.out) == (0, "There is no dead delivery: none is sent again.\n")


@pytest.mark.usefixtures("deliveries")
def test_deliveries_are_sent_again_by_their_ids(cli: Cli) -> None:
    page = cli("outbox", "replay", DEAD, DELIVERED, "--format", "json").page
    assert page == {"replayed": 2, "deliveries": [DEAD, DELIVERED]}
    again = cli("outbox", "show", DEAD, "--format", "json").page
    assert (again["state"], again["attempts"], again["reason"]) == ("pending", 0, None)
    assert "1 delivery will be sent again" in cli("outbox", "replay", GONE).out


@pytest.mark.usefixtures("deliveries")
def test_all_that_died_is_sent_again(cli: Cli) -> None:
    page = cli("outbox", "replay", "--dead", "--format", "json").page
    assert (page["replayed"], set(page["deliveries"])) == (2, {DEAD, GONE})
    assert "There is no dead delivery" in cli("outbox", "replay", "--dead").out


@pytest.mark.usefixtures("deliveries")
@pytest.mark.parametrize(
    "receiver", ["down.example", "down.example:8443", "https://down.example:8443"]
)
def test_those_that_died_on_the_way_to_one_host_are_sent_again(cli: Cli, receiver: str) -> None:
    page = cli("outbox", "replay", "--dead", "--receiver", receiver, "--format", "json").page
    assert page == {"replayed": 1, "deliveries": [DEAD]}


@pytest.mark.usefixtures("deliveries")
def test_another_host_has_none(cli: Cli) -> None:
    page = cli("outbox", "replay", "--dead", "--receiver", "example", "--format", "json").page
    assert page == {"replayed": 0, "deliveries": []}


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    "words", [(), (DEAD, "--dead"), (DEAD, "--receiver", "x"), ("--receiver", "x")]
)
def test_it_must_be_clear_which_deliveries_are_meant(cli: Cli, words: tuple[str, ...]) -> None:
    ran = cli("outbox", "replay", *words)
    assert ran.code == 2
    assert "which deliveries are meant" in ran.err


@pytest.mark.usefixtures("home")
def test_the_secret_of_a_sender_is_stable_and_its_own(cli: Cli) -> None:
    first = cli("outbox", "secret", "agent://globex.example")
    assert first.out.startswith("whsec_")
    assert cli("outbox", "secret", "agent://globex.example").out == first.out
    others = {cli("outbox", "secret", name).out for name in ("agent://b.example", "notify")}
    others.add(cli("outbox", "secret", "token:alice").out)
    assert len(others | {first.out}) == 4
    page = cli("outbox", "secret", "agent://globex.example", "--format", "json").page
    assert page == {"identity": "agent://globex.example", "secret": first.out.strip()}


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("name", ["globex.example", "agent://", "agent://A.example", "nobody"])
def test_the_secret_of_nobody_is_refused(cli: Cli, name: str) -> None:
    ran = cli("outbox", "secret", name)
    assert ran.code == 2
    assert "nobody's identity" in ran.err
    assert "whsec_" not in ran.out


def test_a_body_that_is_no_json_is_shown_as_it_is(cli: Cli, home: Path) -> None:
    async def write() -> None:
        store = await open_from(load(home / "carnet.toml", {}), exclusive=False)
        try:
            await store.outbox.put([replace(delivery("msg_odd"), body=b"\xff odd")], NOW)
        finally:
            await store.close()

    asyncio.run(write())
    body = cli("outbox", "show", "msg_odd", "--format", "json").page["body"]
    assert body.endswith(" odd")
