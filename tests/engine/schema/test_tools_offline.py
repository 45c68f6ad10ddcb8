"""The whole loop on a true model, offline: a tool chosen, a tool run, an answer with its result.

The model is small, and what it writes is its own: which tool it chooses and that the answer has
what the tool gave are asserted, and not its words.
"""

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from carnet.core.messages.events import Done, Text, ToolCall, ToolResult, Usage
from carnet.testing.stage import environment
from carnet.testing.wait import until
from tests.engine.process import EngineProcess, user
from tests.support.commands import CARNET, Started, commands
from tests.support.http import request
from tests.support.organisation import Organisation, shared_with_others

pytestmark = pytest.mark.timeout(600)  # it computes, on whatever machine this is

TOOLS = """
def weather(city: str) -> str:
    "Tells the weather in a city."
    return f"{city}: rain, 17 degrees."


def search(words: str) -> str:
    "Finds pages about something."
    return "Found 42 pages."
"""
CONFIG = """
[models.smollm2]
url = "{url}"
tool_calls = "schema"

[agents.assistant]
kind = "engine"

[engine]
listen = "http://127.0.0.1:0"
tools = ["tools:weather", "tools:search"]
max_iterations = 4
"""
SECONDS = 300.0


class LocalModel:
    """`carnet model local`, in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self._out, self._err = folder / "model.out", folder / "model.err"
        with (
            Path("/dev/null").open("rb") as nothing,
            self._out.open("wb") as out,
            self._err.open("wb") as err,
        ):
            fds = (nothing.fileno(), out.fileno(), err.fileno())
            words = ("model", "local", "--port", "0", "--format", "jsonl")
            self.process: Started = commands().start(
                CARNET, words, at=folder, env=environment(), fds=fds
            )

    def wait(self) -> dict[str, str]:
        """What it says when it listens."""
        until(self._has_begun, seconds=SECONDS)
        page: dict[str, str] = json.loads(self._out.read_text())
        return page

    def _has_begun(self) -> bool:
        assert self.process.poll() is None, self._err.read_text()
        return self._out.read_text().endswith("\n")

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    model = LocalModel(tmp_path_factory.mktemp("model"))
    try:
        yield model.wait()
        assert model.stop() == 0
    finally:
        model.process.kill()


@pytest.fixture(scope="module")
def engine(
    page: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EngineProcess]:
    with shared_with_others():
        home = Organisation(tmp_path_factory.mktemp("offline") / "acme", "acme.example")
        home.configure(CONFIG.format(url=page["url"]))
        (home.folder / "tools.py").write_text(TOOLS)
        running = EngineProcess(home)
        running.start()
        yield running
        assert running.stop() == 0
        running.close()
        home.close()


def test_it_is_named_and_tells_nobody_where_its_files_are(page: dict[str, str]) -> None:
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/v1", page["url"])
    assert page["model"] == "smollm2"
    listed = request("GET", page["url"] + "/models", [])
    assert [each["id"] for each in listed.json["data"]] == ["smollm2"]
    assert b".gguf" not in listed.body


@pytest.mark.parametrize(
    ("question", "tool", "fact"),
    [
        ("What is the weather in Oslo?", "weather", "17"),
        ("Find pages about trains.", "search", "42"),
    ],
)
def test_the_right_tool_is_chosen_and_run_and_the_answer_says_what_it_gave(
    engine: EngineProcess, question: str, tool: str, fact: str
) -> None:
    events = [*engine.stream(user(question)).events()]
    calls = [event for event in events if isinstance(event, ToolCall)]
    results = [event for event in events if isinstance(event, ToolResult)]
    texts = [event.text for event in events if isinstance(event, Text)]
    assert {call.name for call in calls} == {tool}
    assert all(json.loads(call.arguments) for call in calls)
    assert fact in str(results[0].output)
    assert fact in "".join(texts), events
    assert len(texts) > 1, "it came in one piece"
    usage, end = events[-2:]
    assert end == Done("stop")
    assert isinstance(usage, Usage)
    assert (usage.tokens_in or 0) > 0
    assert (usage.tokens_out or 0) > 0
