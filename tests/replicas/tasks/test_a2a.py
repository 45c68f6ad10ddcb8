"""Tasks of A2A at gateways that share a store: begun at one, and everything else at another."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from carnet.testing.wait import until
from tests.replicas.scene import PRICE, House, Replica, a_house, ids
from tests.stores.support import servers
from tests.support.http import HeaderList, request, stream
from tests.support.webhooks.receivers import Receivers, receiving

ASKS = '\n[agents.asks]\nkind = "python"\ntarget = "agents:asks"\nprice = "0.0002"\n'
AGENT = """

async def asks(visit: carnet.Visit) -> AsyncIterator[str]:
    note(visit)
    yield "it is "
    answer = await visit.interrupt(input="Which city?")
    yield f"in {answer.value}"
"""
Frame = tuple[str, dict[str, Any]]


@pytest.fixture(scope="module")
def receivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receivers]:
    with receiving(tmp_path_factory.mktemp("received"), "well") as started:
        yield started


@pytest.fixture(scope="module")
def pair(
    tmp_path_factory: pytest.TempPathFactory, server: servers.Server, receivers: Receivers
) -> Iterator[House]:
    """Two gateways."""
    folder = tmp_path_factory.mktemp("a2a")
    allowed = f'\n[egress]\nallow = ["127.0.0.1:{receivers.ports["well"]}"]\n'
    with a_house(folder, server, ASKS + allowed) as house:
        agents = folder / "agents.py"
        agents.write_text(agents.read_text() + AGENT)
        house.open(2)
        yield house


class Caller:
    """Somebody who asks an agent of one run in JSON-RPC, at any gateway."""

    def __init__(self, house: House, run: str, agent: str = "stepwise") -> None:
        self.house = house
        self.run = run
        self.agent = agent

    def _fields(self, more: HeaderList) -> HeaderList:
        return [
            ("authorization", f"Bearer {self.house.token}"),
            ("content-type", "application/json"),
            ("a2a-version", "1.0"),
            *more,
        ]

    def _url(self, replica: Replica) -> str:
        return f"{replica.url}/agents/{self.agent}/a2a"

    def message(self, text: str, **more: Any) -> dict[str, Any]:
        parts = [{"text": text}]
        name = f"{self.run}-{text}"
        return {"message": {"messageId": name, "role": "ROLE_USER", "parts": parts, **more}}

    def ask(self, replica: Replica, method: str, /, **params: Any) -> dict[str, Any]:
        """The whole answer."""
        fields = ids(self.run, self.agent) if method == "SendMessage" else []
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        url = self._url(replica)
        answer = request("POST", url, self._fields(fields), json.dumps(body).encode()).json
        assert isinstance(answer, dict)
        return answer

    def result(self, replica: Replica, method: str, /, **params: Any) -> dict[str, Any]:
        answer = self.ask(replica, method, **params)
        assert "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def read(
        self, replica: Replica, method: str, /, seen: str | None = None, **params: Any
    ) -> Iterator[Frame]:
        """The frames of a stream with their ids; close it to hang up."""
        fields = ids(self.run, self.agent) if method == "SendStreamingMessage" else []
        if seen is not None:
            fields = [*fields, ("last-event-id", seen)]
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        url = self._url(replica)
        lines = stream("POST", url, self._fields(fields), json.dumps(body).encode())
        named = ""
        with closing(lines):
            for line in lines:
                if line.startswith(b"id: "):
                    named = line[4:].strip().decode()
                elif line.startswith(b"data: "):
                    yield named, json.loads(line[6:])["result"]

    def begin(self, replica: Replica) -> tuple[Iterator[Frame], str]:
        """A streamed task at a gateway, and its id."""
        frames = self.read(replica, "SendStreamingMessage", **self.message("go"))
        _, first = next(frames)
        return frames, str(first["task"]["id"])


def text_of(frames: list[Frame]) -> str:
    updates = [update["artifactUpdate"] for _, update in frames if "artifactUpdate" in update]
    return "".join(part["text"] for each in updates for part in each["artifact"]["parts"])


def until_text(frames: Iterator[Frame], text: str) -> list[Frame]:
    """Read on until all that was said ends with a text."""
    found = [next(frames)]
    while not text_of(found).endswith(text):
        found.append(next(frames))
    return found


def state_of(frame: Frame) -> str:
    return str(frame[1]["statusUpdate"]["status"]["state"])


def test_a_task_of_one_gateway_is_read_listed_followed_and_cancelled_at_another(
    pair: House,
) -> None:
    here, there = pair.replicas[:2]
    caller = Caller(pair, "a2a_moved")
    pair.allow(caller.run, "0")
    frames, task = caller.begin(here)
    with closing(frames):  # type: ignore[type-var]
        until_text(frames, "0 ")
        shown = caller.result(there, "GetTask", id=task)
        assert (shown["id"], shown["status"]["state"]) == (task, "TASK_STATE_WORKING")
        (listed,) = caller.result(there, "ListTasks", contextId=shown["contextId"])["tasks"]
        assert (listed["id"], listed["status"]) == (task, shown["status"])
        reader = caller.read(there, "SubscribeToTask", id=task)
        assert next(reader)[1]["task"]["id"] == task
        until_text(reader, "0 ")
        ended = caller.result(there, "CancelTask", id=task)
        assert ended["status"]["state"] == "TASK_STATE_CANCELED"
        assert state_of(list(reader)[-1]) == "TASK_STATE_CANCELED"
        assert state_of(list(frames)[-1]) == "TASK_STATE_CANCELED"
    until(lambda: pair.ran(caller.run, "left") == 1)
    assert caller.result(here, "GetTask", id=task)["status"] == ended["status"]
    assert (pair.ran(caller.run), pair.billed(caller.run)) == (1, [])


def test_what_a_task_of_one_gateway_asks_is_answered_and_told_of_at_another(
    pair: House, receivers: Receivers
) -> None:
    here, there = pair.replicas[:2]
    caller = Caller(pair, "a2a_asks", "asks")
    began = caller.result(here, "SendMessage", **caller.message("weather"))["task"]
    assert began["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    task = began["id"]
    assert caller.result(there, "GetTask", id=task)["status"].items() >= began["status"].items()
    wish = {"taskId": task, "id": "mine", "url": receivers.url("well", "/replicas")}
    caller.result(there, "CreateTaskPushNotificationConfig", **wish)
    assert [
        each["id"]
        for each in caller.result(here, "ListTaskPushNotificationConfigs", taskId=task)["configs"]
    ] == ["mine"]
    reader = caller.read(there, "SubscribeToTask", id=task)
    assert next(reader)[1]["task"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    answer = caller.message("Bern", taskId=task)
    done = caller.result(there, "SendMessage", **answer)["task"]
    assert (done["id"], done["status"]["state"]) == (task, "TASK_STATE_COMPLETED")
    assert text_of(rest := list(reader)) == "it is in Bern"
    assert state_of(rest[-1]) == "TASK_STATE_COMPLETED"
    seen = caller.result(here, "GetTask", id=task)
    assert seen["artifacts"] == done["artifacts"]

    def reported() -> list[dict[str, Any]]:
        return [each for each in receivers.received("well") if each["path"] == "/replicas"]

    until(lambda: len(reported()) == 1)
    assert json.loads(reported()[0]["body"])["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert pair.billed(caller.run) == [PRICE]


def test_a_task_that_waits_at_one_gateway_is_cancelled_at_another(pair: House) -> None:
    here, there = pair.replicas[:2]
    caller = Caller(pair, "a2a_dropped", "asks")
    task = caller.result(here, "SendMessage", **caller.message("weather"))["task"]["id"]
    ended = caller.result(there, "CancelTask", id=task)
    assert ended["status"]["state"] == "TASK_STATE_CANCELED"
    assert caller.ask(here, "CancelTask", id=task)["error"]["code"] == -32002
    answer = caller.message("Bern", taskId=task)
    assert caller.ask(here, "SendMessage", **answer)["error"]["code"] == -32004


def test_who_was_away_is_told_every_event_once_and_in_order_at_another_gateway(
    pair: House,
) -> None:
    here, there = pair.replicas[:2]
    caller = Caller(pair, "a2a_away")
    pair.allow(caller.run, "0")
    frames, task = caller.begin(here)
    before = until_text(frames, "0 ")
    frames.close()  # type: ignore[attr-defined]
    pair.allow(caller.run, "1", "2")
    other = caller.read(here, "SubscribeToTask", id=task)
    next(other)
    everything = until_text(
        other, "2 "
    )  # which is recorded: so it was said while the first is away
    back = caller.read(there, "SubscribeToTask", seen=before[-1][0], id=task)
    again = caller.read(there, "SubscribeToTask", id=task)
    firsts = [next(reader)[1] for reader in (back, again)]
    assert [first["task"]["id"] for first in firsts] == [task, task]
    after, anew = until_text(back, "2 "), until_text(again, "2 ")
    pair.allow(caller.run, "3", "end")
    after, anew, everything = [*after, *back], [*anew, *again], [*everything, *other]
    assert text_of(before) + text_of(after) == "0 1 2 3 "
    assert text_of(anew) == text_of(everything) == "0 1 2 3 "
    appends = [each["artifactUpdate"]["append"] for _, each in anew if "artifactUpdate" in each]
    assert appends == [False] + [True] * (len(appends) - 1)
    assert all(each["artifactUpdate"]["append"] for _, each in after if "artifactUpdate" in each)
    for reported in (before + after, anew, everything):
        counts = [tuple(map(int, name.split("."))) for name, _ in reported]
        assert counts == sorted(set(counts))
        assert state_of(reported[-1]) == "TASK_STATE_COMPLETED"
    assert (pair.ran(caller.run), pair.billed(caller.run)) == (1, [PRICE])


def test_the_task_of_a_gateway_that_died_under_its_reader_is_told_as_failed(pair: House) -> None:
    there = pair.replicas[0]
    caller = Caller(pair, "a2a_lost")
    (victim,) = pair.open(1)
    pair.allow(caller.run, "0")
    frames, task = caller.begin(victim)
    until_text(frames, "0 ")
    reader = caller.read(there, "SubscribeToTask", id=task)
    next(reader)
    until_text(reader, "0 ")
    victim.kill()
    pair.end_lease(caller.run)
    last = list(reader)[-1]
    assert state_of(last) == "TASK_STATE_FAILED"
    shown = caller.result(there, "GetTask", id=task)
    assert shown["status"]["state"] == "TASK_STATE_FAILED"
    assert caller.ask(there, "CancelTask", id=task)["error"]["code"] == -32002
    assert (pair.ran(caller.run), pair.billed(caller.run)) == (1, [])


def test_a_task_that_nobody_waited_for_is_run_on_by_another_gateway(
    tmp_path_factory: pytest.TempPathFactory, server: servers.Server
) -> None:
    with a_house(tmp_path_factory.mktemp("alone"), server) as house:
        _is_run_on(house)


def _is_run_on(house: House) -> None:
    caller = Caller(house, "a2a_runs_on")
    (victim,) = house.open(1)
    wish = {"returnImmediately": True}
    task = caller.result(victim, "SendMessage", **caller.message("go"), configuration=wish)["task"]
    until(lambda: house.ran(caller.run) == 1)
    (there,) = house.open(1)
    victim.kill()
    house.end_lease(caller.run)
    until(lambda: house.ran(caller.run) == 2)
    reader = caller.read(there, "SubscribeToTask", id=task["id"])
    first = next(reader)  # nothing is asked before: a task that has ended is not subscribed to
    house.allow(caller.run, "0", "end")
    reported = [first, *reader]
    assert (text_of(reported), state_of(reported[-1])) == ("0 ", "TASK_STATE_COMPLETED")
    assert house.billed(caller.run) == [PRICE]
