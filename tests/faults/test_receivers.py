"""F29: receivers of webhooks that are down, slow, silent, broken, busy, moved or gone.

The gateway, its receivers and the commands are processes; the schedule is short.
"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from standardwebhooks import Webhook

import carnet
from carnet.assembly.store import open_from
from carnet.config import load
from carnet.ports.world.outbox import Delivery
from carnet.runtime.system import SystemClock
from carnet.runtime.webhooks.callbacks import queue_of
from carnet.testing.address import Address
from carnet.testing.wait import until
from tests.faults.stores import rows
from tests.support.http import Reply
from tests.support.organisation import Organisation
from tests.support.served import AGENTS
from tests.support.signing.signed import Line, Sender, message
from tests.support.webhooks.receivers import Receivers, receiving

SENDER = "agent://sender.example"
NAMES = ("well", "slow", "hanging", "broken", "busy", "gone", "moved", "notified")
NAMES_OF_A64 = ("endless", "dripping")
ZIPPED = "zipped"
BODY = b'{"traceId":"t","spanId":"s","status":"ok","result":{"text":"well"}}'
OPEN = "".join(
    f'[agents.{name}]\nkind = "python"\ntarget = "agents:{target}"\ntrust = "public"\n'
    for name, target in (("open", "echo"), ("failing", "broken"))
)
LATE = 60.0  # seconds that nothing takes unless it hangs


class Kept(NamedTuple):
    """A delivery as the database has it."""

    state: str
    attempts: int
    status: int | None
    reason: str | None


class House(Organisation):
    """A gateway whose deliveries a test can write and look at."""

    def post(self, *urls: str, prefix: str = "msg") -> list[str]:
        """Put deliveries to these URLs into its outbox, as the end of a task does."""
        deliveries = [
            Delivery(
                id=f"{prefix}_{number}",
                kind="callback",
                url=url,
                receiver=queue_of(url, SENDER),
                body=BODY,
                task=f"task-{number}",
                secret_of=SENDER,
            )
            for number, url in enumerate(urls)
        ]

        async def put() -> None:
            store = await open_from(load(self.folder / "carnet.toml", {}), exclusive=False)
            try:
                await store.outbox.put(deliveries, SystemClock().wall_us())
            finally:
                await store.close()

        asyncio.run(put())
        return [delivery.id for delivery in deliveries]

    def delivery(self, name: str) -> Kept:
        """How it stands, past all of our code."""
        sql = "SELECT state, attempts, status, reason FROM outbox WHERE id = ?"
        (found,) = rows(self, sql, name)
        return Kept(*found)

    def wait_for(self, name: str, state: str) -> Kept:
        until(lambda: self.delivery(name).state == state)
        return self.delivery(name)


@pytest.fixture(scope="module")
def receivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receivers]:
    with receiving(
        tmp_path_factory.mktemp("receivers"), *NAMES, *NAMES_OF_A64, ZIPPED
    ) as receivers:
        yield receivers


@pytest.fixture(scope="module")
def sender() -> Sender:
    """Somebody who sends tasks."""
    return Sender("agent://client-x")


@pytest.fixture(scope="module")
def down() -> Iterator[int]:
    """A port that nobody listens on."""
    with Address() as held:
        yield held.port


@pytest.fixture(scope="module")
def house(
    tmp_path_factory: pytest.TempPathFactory, receivers: Receivers, down: int, sender: Sender
) -> Iterator[House]:
    house = House(tmp_path_factory.mktemp("house") / "acme", "acme.example")
    allowed = [f'"127.0.0.1:{port}"' for port in (*receivers.ports.values(), down)]
    house.configure(
        f"[outbox]\nschedule = [0, 0.2, 0.4, 0.6]\ntimeout = 8\n"
        f"[egress]\nallow = [{', '.join(allowed)}]\n"
        f'[inbox]\nnotify = "{receivers.url("notified", "/ops")}"\n{OPEN}',
        agents=AGENTS,
    )
    house.carnet("peers", "add", sender.identity, "--key", sender.public)
    house.start()
    yield house
    assert house.stop() == 0


def test_f29_each_receiver_gets_what_it_can_take_and_none_holds_up_another(
    house: House, receivers: Receivers, down: int
) -> None:
    late = f"http://127.0.0.1:{down}/in"
    urls = [late, *(receivers.url(name) for name in NAMES if name != "notified")]
    lost, well, slow, hanging, broken, busy, gone, moved = house.post(*urls)
    for name in (well, slow, hanging, broken, busy):
        assert house.wait_for(name, "delivered").status == 200
    for name in (lost, gone, moved):
        house.wait_for(name, "dead")

    assert [house.delivery(name).attempts for name in (well, slow, gone)] == [1, 1, 1]
    assert [house.delivery(name).attempts for name in (hanging, busy, broken)] == [2, 2, 3]
    assert [house.delivery(name).attempts for name in (lost, moved)] == [4, 4]
    assert "could not be reached" in str(house.delivery(lost).reason)
    assert "redirects are not followed" in str(house.delivery(moved).reason)
    assert house.delivery(gone).status == 410

    for name, id_ in (("broken", broken), ("busy", busy), ("hanging", hanging), ("moved", moved)):
        received = receivers.received(name)
        assert {one["headers"]["webhook-id"] for one in received} == {id_}
        assert len({one["headers"]["carnet-task"] for one in received}) == 1
        times = [int(one["headers"]["webhook-timestamp"]) for one in received]
        assert times == sorted(times)
    first, second = (int(one["headers"]["webhook-timestamp"]) for one in receivers.received("busy"))
    assert second > first  # it asked for two seconds

    # The others had theirs while one of them was silent.
    (silent, *_) = receivers.events("hanging", "over")
    for name in ("well", "slow", "moved", "gone"):
        assert receivers.received(name)[0]["at"] < silent["at"]
    assert "/moved" not in {one["path"] for one in receivers.received("well")}


def test_f29_what_arrives_verifies_with_the_secret_and_the_key_that_the_commands_show(
    house: House, receivers: Receivers
) -> None:
    (name,) = house.post(receivers.url("well", "/verified?x=1"), prefix="verified")
    house.wait_for(name, "delivered")
    (received,) = [one for one in receivers.received("well") if one["path"].startswith("/verified")]
    body = received["body"].encode()
    secret = house.carnet("outbox", "secret", SENDER).stdout.strip()
    (key,) = [one["key"] for one in house.json("keys", "list")["keys"]]
    envelope = json.loads(BODY)
    assert body == BODY
    assert Webhook(secret).verify(body, received["headers"]) == envelope
    assert carnet.verify_webhook(received["headers"], body, secret=secret) == envelope
    assert carnet.verify_webhook(received["headers"], body, key=key, path="/verified") == envelope
    assert house.carnet("outbox", "secret", "notify").stdout.strip() != secret


def test_f29_a_dead_delivery_is_shown_and_sent_again_when_its_receiver_is_back(
    house: House, receivers: Receivers, tmp_path: Path
) -> None:
    later = Address()
    port = later.port
    config = house.folder / "carnet.toml"
    config.write_text(config.read_text().replace('allow = ["', f'allow = ["127.0.0.1:{port}", "'))
    assert house.stop() == 0
    house.start()
    (name,) = house.post(f"http://127.0.0.1:{port}/in", prefix="lost")
    house.wait_for(name, "dead")

    def noticed() -> list[dict[str, Any]]:
        notices = [json.loads(one["body"])["data"] for one in receivers.received("notified")]
        return [data for data in notices if data["delivery"] == name]

    until(lambda: len(noticed()) == 1)
    (notice,) = noticed()
    assert (notice["attempts"], notice["gone"]) == (4, False)

    dead = house.json("outbox", "list", "--state", "dead")["deliveries"]
    assert name in [line["delivery"] for line in dead]
    shown = house.json("outbox", "show", name)
    assert (shown["state"], shown["attempts"]) == ("dead", 4)
    assert shown["body"] == json.loads(BODY)

    with receiving(tmp_path, late=later) as back:
        replayed = house.json("outbox", "replay", "--dead", "--receiver", f"127.0.0.1:{port}")
        assert replayed == {"replayed": 1, "deliveries": [name]}
        ended = house.wait_for(name, "delivered")
        assert ended.attempts == 1
        (received,) = back.received("late")
        assert received["headers"]["webhook-id"] == name


def test_f29_an_address_that_said_410_gets_nothing_more_until_it_is_let_off(
    house: House, receivers: Receivers
) -> None:
    url = receivers.url("gone", "/for-good")
    (first,) = house.post(url, prefix="ended")
    house.wait_for(first, "dead")
    (second,) = house.post(url, prefix="after")
    assert house.wait_for(second, "dead").attempts == 0

    def received() -> int:
        return len([one for one in receivers.received("gone") if one["path"] == "/for-good"])

    assert received() == 1
    house.carnet("outbox", "replay", second)
    until(lambda: received() == 2)
    assert house.wait_for(second, "dead").attempts == 1


def test_f29_an_address_that_said_410_to_one_sender_is_tried_for_another(
    house: House, receivers: Receivers, sender: Sender
) -> None:
    """It is gone for whoever named it: nobody ends another's webhooks by getting a 410."""
    url, other = receivers.url("gone", "/shared"), Sender("agent://client-y")
    house.carnet("peers", "add", other.identity, "--key", other.public)

    def asked(who: Sender) -> Reply:
        to, path = "agent://open.acme.example", "/agents/open/agent/task"
        given: dict[str, Any] = {"mode": "async", "payload": {"text": "hi"}, "callbackUrl": url}
        with Line(house.port) as line:
            return line.send(message(who, to, target=path, **given))

    def received() -> int:
        return len([one for one in receivers.received("gone") if one["path"] == "/shared"])

    def ended(task: str) -> list[tuple[Any, ...]]:
        return rows(house, "SELECT state, attempts FROM outbox WHERE task = ?", task)

    for number, who in enumerate((sender, other), 1):
        accepted = asked(who)
        assert accepted.status == 202, accepted.body
        until(lambda number=number: received() == number)  # type: ignore[misc]
        until(lambda task=accepted.json["taskId"]: ended(task) == [("dead", 1)])  # type: ignore[misc]
        assert asked(who).headers["carnet-code"] == "callback_forbidden"
    assert received() == 2


def test_f29_an_answer_that_is_compressed_is_an_answer(house: House, receivers: Receivers) -> None:
    (name,) = house.post(receivers.url(ZIPPED), prefix="zip")
    ended = house.wait_for(name, "delivered")
    assert (ended.attempts, ended.status) == (1, 200)
    assert len(receivers.received(ZIPPED)) == 1


def test_a64_a_receiver_that_answers_for_ever_or_byte_by_byte_is_cut_off(
    house: House, receivers: Receivers
) -> None:
    names = house.post(*(receivers.url(name) for name in NAMES_OF_A64), prefix="a64")
    for name in names:
        ended = house.wait_for(name, "delivered")
        assert (ended.attempts, ended.status) == (1, 200)
    for name in NAMES_OF_A64:
        until(lambda name=name: len(receivers.events(name, "over")) == 1)  # type: ignore[misc]
        assert len(receivers.received(name)) == 1


def test_f29_a_stop_lets_what_is_on_its_way_arrive_and_sends_it_no_second_time(
    house: House, receivers: Receivers
) -> None:
    before = len(receivers.received("slow"))
    (name,) = house.post(receivers.url("slow", "/drained"), prefix="drained")
    until(lambda: len(receivers.received("slow")) == before + 1)
    assert house.stop() == 0
    assert house.delivery(name).state == "delivered"
    house.start()
    assert len(receivers.received("slow")) == before + 1


@pytest.mark.parametrize(("agent", "status"), [("open", "ok"), ("failing", "error")])
def test_the_end_of_a_task_is_told_to_its_callback_whichever_it_is(
    house: House, receivers: Receivers, sender: Sender, agent: str, status: str
) -> None:
    path = f"/told/{agent}?for=1"
    asked = message(
        sender,
        f"agent://{agent}.acme.example",
        target=f"/agents/{agent}/agent/task",
        mode="async",
        payload={"text": "good day"},
        callbackUrl=receivers.url("well", path),
    )
    with Line(house.port) as line:
        accepted = line.send(asked)
    assert accepted.status == 202, accepted.body
    secret = accepted.headers["carnet-webhook-secret"]

    def received() -> list[dict[str, Any]]:
        return [one for one in receivers.received("well") if one["path"] == path]

    until(lambda: len(received()) == 1)
    (delivery,) = received()
    envelope = Webhook(secret).verify(delivery["body"], delivery["headers"])
    assert envelope["traceId"] == json.loads(asked.body)["traceId"]
    assert envelope["status"] == status
    assert delivery["headers"]["carnet-task"] == accepted.json["taskId"]
    if status == "ok":
        assert envelope["result"] == {"text": "good day"}
    else:
        assert envelope["error"]["code"] == "AGENT_UNAVAILABLE"
    assert house.carnet("outbox", "secret", sender.identity).stdout.strip() == secret
    until(lambda: house.delivery(delivery["headers"]["webhook-id"]).state == "delivered")
