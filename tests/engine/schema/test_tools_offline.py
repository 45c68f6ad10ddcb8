"""The whole loop on a true model, offline: a tool chosen, a tool run, an answer with its result.

The model is small, and what it writes is its own: which tool it chooses and that the answer has
what the tool gave are asserted, and not its words.
"""

import json
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from carnet.testing.stage import environment
from carnet.testing.wait import until
from tests.architecture.tree import ROOT
from tests.support.commands import CARNET, commands
from tests.support.http import request
from tests.support.organisation import Organisation, shared_with_others

pytestmark = pytest.mark.timeout(600)  # it computes, on whatever machine this is

EXAMPLE = ROOT / "examples" / "offline"
WRITTEN = "http://127.0.0.1:8080/v1"  # in the example
SCOPES = ("--scope", "call:*", "--scope", "pay", "--scope", "run:read", "--scope", "tool:*")
SECONDS = 300.0


class LocalModel:
    """`carnet model local`, in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self._out, self._errors = folder / "model.out", folder / "model.err"
        with (
            Path("/dev/null").open("rb") as nothing,
            self._out.open("wb") as out,
            self._errors.open("wb") as errors,
        ):
            fds = (nothing.fileno(), out.fileno(), errors.fileno())
            words = ("model", "local", "--port", "0", "--format", "jsonl")
            self.process = commands().start(CARNET, words, at=folder, env=environment(), fds=fds)

    def wait(self) -> dict[str, str]:
        """What it says when it listens."""
        until(self._has_begun, seconds=SECONDS)
        page: dict[str, str] = json.loads(self._out.read_text())
        return page

    def _has_begun(self) -> bool:
        assert self.process.poll() is None, self._errors.read_text()
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
def home(page: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    with shared_with_others():
        made = Organisation(tmp_path_factory.mktemp("offline") / "acme", "acme.example")
        made.configure((EXAMPLE / "carnet.toml").read_text().replace(WRITTEN, page["url"]))
        shutil.copy(EXAMPLE / "tools.py", made.folder)
        made.start()
        yield made
        assert made.stop() == 0
        made.close()


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
    home: Organisation, question: str, tool: str, fact: str
) -> None:
    token = home.new_token(f"user-{tool}", *SCOPES)
    ids = [("x-tangle-runid", f"run-{tool}"), ("x-tangle-turnid", "t1")]
    streamed = home.chat(question, "assistant", token=token, headers=ids, stream=True)
    frames = re.findall(rb"^data: (\{.*)$", streamed.body, re.MULTILINE)
    chunks = [json.loads(frame) for frame in frames]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk.get("choices", ())]
    words = [delta["content"] for delta in deltas if delta.get("content")]
    assert fact in "".join(words), streamed.body
    assert len(words) > 1, "it came in one piece"
    events = home.get(f"/runs/run-{tool}/events", token=token).body.decode()
    assert f'"name":"{tool}"' in events
    assert fact in events
    assert [other for other in ("weather", "search") if f'"name":"{other}"' in events] == [tool]
