"""The example of seed 002 at a real engine: an agent reads the memory of the person who asks."""

import json
from collections.abc import Iterator

import pytest

from carnet.core.messages.events import Done, ToolResult
from tests.engine.process import EngineProcess, Scene, events_of, tool_call, with_usage
from tests.support.model import Answer, Model, streamed
from tests.support.organisation import Organisation, shared_with_others
from tests.wire.dialects.engine_chat.test_request import EXAMPLE
from tests.wire.dialects.engine_chat.test_writer import EXAMPLE as STREAM

CONFIG = """
[agents.assistant]
kind = "engine"

[models.small]
url = "{url}/v1"
retries = 0

[engine]
listen = "http://127.0.0.1:0"
tools = ["memory"]
memory_approval = "never"
"""
RIGHTS = ("admin:engine", "memory:read", "memory:write")


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with Model().serving() as model, shared_with_others():
        home = Organisation(tmp_path_factory.mktemp("memory"), "acme.example")
        home.configure(CONFIG.format(url=model.url))
        engine = EngineProcess(home)
        engine.token = token_of(home, "alice")
        engine.start()
        yield Scene(engine, model, home)
        engine.close()


def token_of(home: Organisation, name: str) -> str:
    home.carnet("people", "add", name, "--role", "admin")
    words = [word for right in RIGHTS for word in ("--scope", right)]
    return home.new_token(f"of-{name}", "--person", name, *words)


def test_the_example_of_the_design_runs_as_it_is_printed(scene: Scene) -> None:
    kept = {"path": "/finances/AGENT.md", "content": "# Finances\nBudget goal: ..."}
    scene.replies(tool_call("write_file", json.dumps(kept)), streamed("Kept."))
    assert scene.engine.ask()[-1] == Done("stop")
    wanted = tool_call("read_file", '{"path":"/finances/AGENT.md"}', "tc_1")
    delta = {"content": "Hello, I'll help with budgeting."}
    first = f"data: {json.dumps({'choices': [{'index': 0, 'delta': delta}]})}\n\n".encode()
    begun = Answer(body=first + wanted.body, media_type=wanted.media_type)
    scene.replies(begun, with_usage("Based on your finance page..."))
    assert scene.engine.post(EXAMPLE).body == STREAM
    fields = scene.engine.fields(token_of(scene.home, "bob"))
    scene.replies(wanted, streamed("Nothing."))
    events = events_of(scene.engine.post(EXAMPLE, fields=fields))
    (result,) = [event for event in events if isinstance(event, ToolResult)]
    assert result.status == "error"  # she has another memory, and the same agent
