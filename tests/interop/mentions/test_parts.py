"""Parts of messages that others give a meaning: they reach the agent as they came."""

import json
from collections.abc import Iterator

import pytest

from carnet.testing.stage import Organisation, Stage
from tests.interop.a2a_extensions.conftest import send

AGENTS = """
import json

import carnet


@carnet.agent("parts")
async def parts(visit):
    yield json.dumps([part.value for part in visit.parts])
"""
SECTIONS = """
[agents.parts]
kind = "python"
target = "agents:parts"
"""


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    with Stage(tmp_path_factory.mktemp("parts")) as stage:
        made = stage.organisation("acme.example", config=SECTIONS, agents=AGENTS)
        made.start()
        yield made


def test_tool_events_of_a_message_pass_as_the_data_that_they_are(acme: Organisation) -> None:
    events = [  # M52: two calls; M53: the second is in flight
        {"type": "tool-call", "toolCallId": "c1", "toolName": "search", "input": {"q": "x"}},
        {"type": "tool-result", "toolCallId": "c1", "toolName": "search", "output": [1]},
        {"type": "tool-call", "toolCallId": "c2", "toolName": "search", "input": {"q": "y"}},
    ]
    answered = send(acme, "parts", parts=[{"data": event} for event in events])
    assert json.loads(answered.text) == events
