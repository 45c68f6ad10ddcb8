"""Callers of A2A over plain HTTP, who can leave in the middle and send what no client would."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from carnet.testing import stage
from tests.interop.a2a.conftest import AGENTS, sections
from tests.support.organisation import Organisation

MORE_AGENTS = """
@carnet.agent("slow2")
async def slow2(visit):
    await asyncio.sleep(600)
    yield "late"


@carnet.agent("budgets")
async def budgets(visit):
    before = visit.carnet.budget
    await visit.interrupt(input="Go on?")
    yield f"{before} {visit.carnet.budget}"
"""
NAMES = ("asks", "approves", "slow", "slow2", "parts", "budgets")
CONFIG = """
[limits]
streams_per_caller = 2
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    made = Organisation(tmp_path_factory.mktemp("own_tasks"), "acme.example")
    starter = (made.folder / "agents.py").read_text()
    made.configure(CONFIG + sections(NAMES), agents=starter + AGENTS + MORE_AGENTS)
    made.start()
    yield made
    made.close()


class Caller:
    """Asks one gateway, with a token of its own."""

    def __init__(self, gateway: stage.Organisation, name: str) -> None:
        self._url = f"http://127.0.0.1:{gateway.port}/agents"
        token = gateway.new_token(name)
        self._fields = {"authorization": f"Bearer {token}", "a2a-version": "1.0"}

    def request(self, agent: str, method: str, params: object, **fields: str) -> dict[str, Any]:
        """What httpx sends."""
        return {
            "url": f"{self._url}/{agent}/a2a",
            "content": json.dumps(
                {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            ).encode(),
            "headers": self._fields | {"content-type": "application/json"} | fields,
            "timeout": 60,
        }

    def ask(self, agent: str, method: str, params: object, **fields: str) -> dict[str, Any]:
        """The whole answer."""
        answer = httpx.post(**self.request(agent, method, params, **fields))
        found: dict[str, Any] = answer.json()
        return found

    def send(self, agent: str, text: str, **more: Any) -> dict[str, Any]:
        """The task that a message makes, or goes on with."""
        fields, wishes = more.pop("fields", {}), more.pop("wishes", {})
        parts = more.pop("parts", None) or [{"text": text}]
        message = {"messageId": text, "role": "ROLE_USER", "parts": parts, **more}
        params = {"message": message, "configuration": wishes}
        task: dict[str, Any] = self.ask(agent, "SendMessage", params, **fields)["result"]["task"]
        return task

    def leave(self, agent: str, method: str, params: object) -> int:
        """Read the first frame of a stream, and go; the status."""
        with httpx.stream("POST", **self.request(agent, method, params)) as answer:
            if answer.status_code == 200:
                next(answer.iter_lines())
            return answer.status_code
