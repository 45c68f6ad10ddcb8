"""The real client of the samvad package hands tasks over to a gateway and polls them."""

from collections.abc import Iterator

import pytest

from tests.interop.conftest import Databases
from tests.interop.samvad.test_sdk_client import AGENTS, KID, SKILLS, House, a_client, refused
from tests.support.federation import organisation
from tests.support.http import request
from tests.support.served import executions


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, database: Databases) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("sdk")
    gateway = organisation(folder / "acme", "acme.example", database())
    agents = gateway.folder / "agents.py"
    gateway.configure(AGENTS, agents=agents.read_text() + SKILLS)
    with a_client(folder / "keys", KID) as sdk:
        gateway.carnet("peers", "add", f"agent://client-{KID}", "--key", sdk.public)
        gateway.start()
        yield House(gateway, sdk)
        assert gateway.stop() == 0


def test_the_default_agent_does_a_task_at_the_root(house: House) -> None:
    house.sdk.connect(house.gateway.url)
    before = len(executions(house.gateway.folder, "echo"))
    record = house.sdk.task_and_poll("chat", text="hello")["value"]
    assert record.keys() == {"taskId", "status", "result"}
    assert (record["status"], record["result"]) == ("done", {"text": "hello"})
    assert len(executions(house.gateway.folder, "echo")) == before + 1


def test_a_named_agent_does_a_task_under_its_prefix(house: House) -> None:
    house.sdk.connect(house.gateway.url + "/agents/clerk")
    record = house.sdk.task_and_poll("book", day="2026-11-15T19:30:00Z", seats=4)["value"]
    assert (record["status"], record["result"]) == ("done", {"year": 2026, "seats": 4})


def test_a_task_that_fails_ends_as_a_record_without_the_handlers_words(house: House) -> None:
    house.sdk.connect(house.gateway.url + "/agents/faulty")
    outcome = house.sdk.task_and_poll("chat", text="hi")
    record = outcome["value"]
    assert record["status"] == "failed"
    assert record["error"].keys() == {"code", "message"}
    assert record["error"]["code"] == "AGENT_UNAVAILABLE"
    assert "canary" not in str(outcome)


def test_a_payload_that_does_not_fit_is_refused_at_once(house: House) -> None:
    """The package's own server accepts it first, and fails it later."""
    house.sdk.connect(house.gateway.url + "/agents/clerk")
    assert refused(house.sdk.task("book", day="never")) == (400, "SCHEMA_INVALID")
    assert refused(house.sdk.task("bok", day="never")) == (404, "SKILL_NOT_FOUND")


def test_a_callback_to_this_machine_is_refused_at_once(house: House) -> None:
    house.sdk.connect(house.gateway.url)
    outcome = house.sdk.task("chat", "https://127.0.0.1/done", text="hi")
    assert refused(outcome) == (400, "SCHEMA_INVALID")


def test_a_task_is_not_found_under_another_agent_nor_by_a_guess(house: House) -> None:
    house.sdk.connect(house.gateway.url)
    task = house.sdk.task("chat", text="hello")["value"]
    url = house.gateway.url
    guessed = request("GET", f"{url}/agent/task/7b0c6a4e-52a7-4f3a-9a53-31a3d4f1f6a0")
    elsewhere = request("GET", f"{url}/agents/clerk/agent/task/{task}")
    assert (guessed.status, guessed.body) == (404, b'{"error":"Task not found"}')
    assert (elsewhere.status, elsewhere.body) == (404, b'{"error":"Task not found"}')
    found = request("GET", f"{url}/agent/task/{task}")
    assert (found.status, found.headers["cache-control"]) == (200, "no-store")
    assert "carnet-receipt" not in found.headers  # it is for peers, who believe it
