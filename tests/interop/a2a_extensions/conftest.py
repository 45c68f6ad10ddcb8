"""One gateway for all tests of this folder, and a caller that writes A2A by hand."""

import itertools
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest
from msgspec import Struct

from carnet.testing.stage import Organisation, Stage

AGENTS = """
import carnet

NUMBERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}


@carnet.agent("approves")
async def approves(visit):
    answer = await visit.interrupt(approval="May I?", arguments={"to": "all"})
    yield f"granted {answer.value or ''}" if answer.accepted else f"denied {answer.value or ''}"


@carnet.agent("asks")
async def asks(visit):
    answer = await visit.interrupt(input="Which city?", options=["Bern", "Basel"])
    yield f"weather of {answer.value}" if answer.accepted else "then not"


@carnet.agent("sells")
async def sells(visit):
    answer = await visit.interrupt(payment="0.5", message="Half a credit for the report.")
    yield "the report" if answer.accepted else "no report"


@carnet.skill("add", input=NUMBERS)
async def adds(numbers):
    return {"sum": numbers["a"] + numbers["b"]}
"""

SECTIONS = """
[agents.approves]
kind = "python"
target = "agents:approves"

[agents.asks]
kind = "python"
target = "agents:asks"

[agents.sells]
kind = "python"
target = "agents:sells"

[agents.adds]
kind = "python"
target = "agents:adds"

[agents.priced]
kind = "python"
target = "agents:echo"
price = "0.01"
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    with Stage(tmp_path_factory.mktemp("extensions")) as stage:
        made = stage.organisation("acme.example", config=SECTIONS, agents=AGENTS)
        made.start()
        yield made


_numbers = itertools.count()


class Answered(Struct):
    """What a gateway has answered."""

    status: int
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def task(self) -> dict[str, Any]:
        assert "result" in self.body, self.body
        task: dict[str, Any] = self.body["result"]["task"]
        return task

    @property
    def metadata(self) -> dict[str, Any]:
        found: dict[str, Any] = self.task["metadata"]
        return found

    @property
    def asked(self) -> dict[str, Any]:
        """The message of a task that waits."""
        assert self.task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED", self.task
        found: dict[str, Any] = self.task["status"]["message"]
        return found

    @property
    def text(self) -> str:
        artifacts = self.task.get("artifacts", ())
        return "".join(part.get("text", "") for each in artifacts for part in each["parts"])

    @property
    def error(self) -> tuple[int, str]:
        """The code of JSON-RPC, and our own."""
        error = self.body["error"]
        return error["code"], error["data"][0]["metadata"]["code"]


def send(
    gateway: Organisation,
    agent: str = "echo",
    metadata: Mapping[str, Any] | None = None,
    *,
    text: str = "hello",
    uris: str = "",
    token: str | None = None,
    **more: Any,
) -> Answered:
    """Send a message; `more` are members of it, or header fields (`x_a2a_hop`)."""
    fields = {
        name.replace("_", "-"): more.pop(name)
        for name in [*more]
        if name.startswith("x_") or name == "traceparent"
    }
    fields |= {"authorization": f"Bearer {token or gateway.token}", "a2a-version": "1.0"}
    if uris:
        fields["a2a-extensions"] = uris
    message = {
        "messageId": f"m-{os.getpid()}-{next(_numbers)}",
        "role": "ROLE_USER",
        "parts": [{"text": text}] if text else [{"data": None}],
        **({} if metadata is None else {"metadata": metadata}),
        **more,
    }
    return ask(gateway, agent, "SendMessage", {"message": message}, fields)


def ask(
    gateway: Organisation,
    agent: str,
    method: str,
    params: dict[str, Any],
    fields: Mapping[str, str] | None = None,
) -> Answered:
    """Ask for any operation."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    known = fields or {"authorization": f"Bearer {gateway.token}", "a2a-version": "1.0"}
    url = f"http://127.0.0.1:{gateway.port}/agents/{agent}/a2a"
    reply = httpx.post(url, json=body, headers=known, timeout=30)
    return Answered(reply.status_code, reply.headers, json.loads(reply.content))


def run_of(gateway: Organisation, answered: Answered) -> dict[str, Any]:
    """The run of an answer, as its operator is shown it."""
    run = answered.headers["x-tangle-runid"]
    page: dict[str, Any] = gateway.json("run", "show", run, "--full")
    return page


def claimed(gateway: Organisation, answered: Answered) -> dict[str, Any]:
    """What is shown of a call as claimed."""
    (turn,) = run_of(gateway, answered)["turns"]
    found: dict[str, Any] = turn["asked"].get("claimed", {})
    return found
