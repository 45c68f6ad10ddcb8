"""Two gateways on one PostgreSQL, a schedule over a change of clocks, and one of them is killed."""

import json
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from carnet.runtime.system import SystemClock
from carnet.runtime.triggers.zones import find_zone
from carnet.testing.wait import until
from tests.gateway.triggers.scene import signed
from tests.replicas.scene import House, Replica, a_house
from tests.stores.support import servers
from tests.support.http import request

TICKS = 50
MINUTES = 3
DAY = timedelta(days=1)
# Where clocks are put back in the last hour of a day, in autumn of either half of the world.
ZONES = ("Asia/Beirut", "America/Santiago")
GATED = '[agents.gated]\nkind = "python"\ntarget = "agents:gated"\n'
AGENT = '''
import os


async def gated(visit: carnet.Visit) -> str:
    """Note which process it is, and answer when somebody opens the gate."""
    with (HERE / "gated.txt").open("a") as trace:
        trace.write(f"{os.getpid()} {visit.carnet.run}\\n")
    while not (HERE / "gate").exists():
        await asyncio.sleep(0.02)
    return "It is done."
'''
SOON = {"CARNET__STORE__LEASE_SECONDS": "6"}  # others look after the dead each third of it
FIRED = "SELECT tick, conversation, worker FROM firing WHERE state = 'fired' ORDER BY tick"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, server: servers.Server) -> Iterator[House]:
    with a_house(tmp_path_factory.mktemp("ticks"), server) as house:
        agents = (house.folder / "agents.py").read_text()
        house.operator.configure(GATED, agents=agents + AGENT)
        yield house


def change_of(zone: str, today: date) -> date:
    """The last day with an hour more, which has passed."""
    day = today - DAY
    while True:
        midnights = [
            datetime(each.year, each.month, each.day, tzinfo=find_zone(zone)).timestamp()
            for each in (day, day + DAY)
        ]
        if midnights[1] - midnights[0] > DAY.total_seconds():
            return day
        day -= DAY


def ticks_of(zone: str, day: date) -> list[int]:
    """Those of the last two and a half hours of that day, of which clocks show one hour twice."""
    end = datetime(day.year, day.month, day.day, tzinfo=find_zone(zone)) + DAY
    last = int(end.timestamp())
    return [last - (TICKS - n) * MINUTES * 60 for n in range(TICKS)]


def begun_by(house: House) -> Counter[int]:
    """How many answers each process has begun."""
    trace: Path = house.folder / "gated.txt"
    lines = trace.read_text().splitlines() if trace.exists() else []
    return Counter(int(line.partition(" ")[0]) for line in lines)


def pid_of(replica: Replica) -> int:
    assert replica.process is not None
    return replica.process.pid


class Scene:
    """A person at two gateways, of which one will be killed."""

    def __init__(self, house: House) -> None:
        self.house = house
        (self.leader,) = house.open(1, SOON)
        ((self.dead,),) = house.rows("SELECT id FROM worker")
        (self.other,) = house.open(1, SOON)
        house.operator.carnet("people", "add", "alice")
        token = house.operator.new_token("laptop", "--person", "alice")
        self.fields = [("authorization", f"Bearer {token}"), ("content-type", "application/json")]

    def schedule(self, zone: str, day: date, first: int) -> None:
        """One that is due of a day that has passed."""
        cron = f"*/{MINUTES} * {day.day} {day.month} *"
        asked = {"name": "digest", "agent": "gated", "message": "Go.", "missed": "all"}
        body = json.dumps({**asked, "cron": cron, "zone": zone}).encode()
        made = request("POST", f"{self.other.url}/schedules", self.fields, body)
        assert made.status == 201, made.body
        self.house.rows("UPDATE schedule SET next = ?", first * 1_000_000)

    def kill(self) -> int:
        """Kill who holds some of what is due; how much that was."""
        pids = {pid_of(self.leader), pid_of(self.other)}
        until(lambda: begun_by(self.house).keys() == pids)  # each holds some of it
        held = "SELECT COUNT(*) FROM firing WHERE worker = ? AND state = 'due' AND held > 0"
        ((holds,),) = self.house.rows(held, self.dead)
        assert self.leader.process is not None
        self.leader.process.send_signal(signal.SIGKILL)
        assert self.leader.process.wait() == -signal.SIGKILL
        self.leader.ended()
        self.house.replicas.remove(self.leader)
        # As if it had been silent for as long as it takes: its leases alone tell others of it.
        self.house.rows("UPDATE worker SET until = until - 60000000 WHERE id = ?", self.dead)
        self.house.rows("UPDATE firing SET held = 0 WHERE worker = ?", self.dead)
        return int(holds)

    def conversations(self) -> list[dict[str, Any]]:
        page = request("GET", f"{self.other.url}/conversations?limit=100", self.fields)
        return list(page.json["conversations"])


def test_fifty_ticks_are_fifty_over_a_change_of_clocks_when_who_holds_some_is_killed(
    house: House,
) -> None:
    scene = Scene(house)
    today = datetime.fromtimestamp(SystemClock().wall_us() // 1_000_000, UTC).date()
    day, zone = max((change_of(zone, today), zone) for zone in ZONES)
    ticks = ticks_of(zone, day)
    shown = Counter(f"{datetime.fromtimestamp(at, find_zone(zone)):%H:%M}" for at in ticks)
    assert (shown["22:30"], shown["23:30"]) == (1, 2)
    scene.schedule(zone, day, ticks[0])
    holds = scene.kill()
    assert holds > 0
    (house.folder / "gate").touch()

    fired = until(lambda: house.rows(FIRED), lambda found: len(found) >= TICKS)
    assert [tick // 1_000_000 for tick, _, _ in fired] == ticks
    assert house.rows("SELECT COUNT(*) FROM firing") == [(TICKS,)]
    begun = {conversation for _, conversation, _ in fired}
    assert len(begun) == TICKS
    assert scene.dead not in {worker for _, _, worker in fired}
    page = scene.conversations()
    assert ({each["id"] for each in page}, len(page)) == (begun, TICKS)
    assert {(each["size"], each["answering"]) for each in page} == {(2, False)}
    # What the dead one was at is begun again under its own name, and nothing else.
    assert begun_by(house).total() - TICKS <= holds


def test_an_event_that_comes_a_hundred_times_to_two_gateways_at_once_begins_once(
    tmp_path: Path, server: servers.Server
) -> None:
    with a_house(tmp_path, server) as house:
        begins_once(house, *house.open(2))


def begins_once(house: House, first: Replica, second: Replica) -> None:
    house.operator.carnet("people", "add", "bob")
    token = house.operator.new_token("phone", "--person", "bob")
    json_type = ("content-type", "application/json")
    fields = [("authorization", f"Bearer {token}"), json_type]
    asked = json.dumps({"name": "orders", "agent": "echo", "scheme": "github"}).encode()
    hook = request("POST", f"{first.url}/hooks", fields, asked).json
    assert request("GET", f"{second.url}/hooks/orders", fields).status == 200  # it knows of bob
    body = b'{"order": "o_1"}'
    places = [f"{each.url}/hooks/bob.orders" for each in (first, second)]
    with ThreadPoolExecutor(16) as pool:
        sent = [
            pool.submit(request, "POST", at, [json_type, *signed(hook["secret"], body)], body)
            for at in places * 50
        ]
        replies = [each.result() for each in sent]
    assert {(reply.status, reply.body) for reply in replies} == {(202, replies[0].body)}

    def ended() -> list[dict[str, Any]]:
        recent = request("GET", f"{second.url}/hooks/orders", fields).json["recent"]
        return [each for each in recent if each["state"] != "due"]

    (fired,) = until(ended)
    assert fired["state"] == "fired"
    begun = request("GET", f"{second.url}/conversations", fields).json["conversations"]
    assert [each["id"] for each in begun] == [fired["conversation"]]
    assert house.rows("SELECT COUNT(*) FROM firing WHERE name = 'orders'") == [(1,)]
