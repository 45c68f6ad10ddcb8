"""kill -9 at every step of an agent loop with three tools, and where memory is written.

No tool runs twice whose end was recorded, no model is asked again for what it has said, and the
same request goes on where it was. What was written is there once, or not at all.
"""

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from carnet.testing.wait import until
from tests.crash.points.choice import ByStore
from tests.engine.process import tool_call
from tests.faults.stores import move_to
from tests.stores.support import servers
from tests.support.http import Reply
from tests.support.model import Answer, Asked, Model, streamed
from tests.support.organisation import Organisation, shared_with_others

TOOLS = """
from pathlib import Path


def work(name: str) -> str:
    "Works."
    with Path("ran.txt").open("a") as ran:
        ran.write(name + "\\n")
    return f"did {name}"
"""
CONFIG = """
[agents.worker]
kind = "engine"

[agents.keeper]
kind = "engine"
tools = ["memory"]

[models.small]
url = "{url}/v1"
retries = 0

[engine]
tools = ["loop_work:work"]
memory_approval = "never"
"""
MEMORY_POINTS = ("memory.begin", "memory.kept")
POINTS = ("step.begin", "step.done", "step.kept")
STEPS = 7  # three tools, and the model before each and after the last
NAMES = ("one", "two", "three")
numbers = itertools.count()


class LoopScene:
    """A gateway whose agent works three times before it answers."""

    def __init__(self, folder: Path, model: Model) -> None:
        self.home = Organisation(folder, "acme.example")
        self.home.configure(CONFIG.format(url=model.url))
        (folder / "loop_work.py").write_text(TOOLS)
        self.model = model
        self.model.reply = self._reply
        self.admit("asker")

    def admit(self, name: str) -> None:
        """Give a person a token."""
        self.home.carnet("people", "add", name, "--permission", "tool:*")
        scopes = ("call:*", "tool:*", "memory:read", "memory:write")
        words = [word for scope in scopes for word in ("--scope", scope)]
        self.token = self.home.new_token(f"{name}s", "--person", name, *words)

    def _reply(self, asked: Asked) -> Answer:
        """By what was done so far, so that a model that is asked again says the same."""
        done = sum(message["role"] == "tool" for message in asked.body["messages"])
        run = asked.body["messages"][0]["content"]
        if run.startswith("keep"):
            kept = tool_call("write_file", f'{{"path":"/{run}.md","content":"kept"}}', "c0")
            return streamed("All done.") if done else kept
        if done == len(NAMES):
            return streamed("All done.")
        return tool_call("work", f'{{"name":"{run} {NAMES[done]}"}}', f"c{done}")

    def ask(self, run: str, agent: str = "worker") -> Reply:
        ids = [("x-tangle-runid", run), ("x-tangle-turnid", "t1")]
        return self.home.chat(run, agent, token=self.token, headers=ids)

    def versions(self, run: str) -> Reply:
        return self.home.get(f"/memory/keeper/{run}.md/versions", token=self.token)

    def ran(self, run: str) -> list[int]:
        file = self.home.folder / "ran.txt"
        lines = file.read_text().splitlines() if file.exists() else []
        return [lines.count(f"{run} {name}") for name in NAMES]


@pytest.fixture(scope="module")
def scenes(
    server: servers.Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ByStore[LoopScene]]:
    @contextmanager
    def made(store: str) -> Iterator[LoopScene]:
        with Model().serving() as model, shared_with_others():
            scene = LoopScene(tmp_path_factory.mktemp("loop"), model)
            if store == "postgres":
                move_to(scene.home, server.create())
                config = scene.home.folder / "carnet.toml"
                config.write_text(
                    config.read_text().replace("[store]", "[store]\nlease_seconds = 2")
                )
                scene.admit("asker2")
            yield scene
            scene.home.close()

    with ExitStack() as stack:
        yield ByStore(stack, made)


@pytest.mark.parametrize("step", range(1, STEPS + 1))
@pytest.mark.parametrize("point", POINTS)
def test_a_loop_goes_on_after_a_kill_at(
    point: str, step: int, store: str, scenes: ByStore[LoopScene]
) -> None:
    scene, run = scenes[store], f"run-{next(numbers)}"
    scene.home.start(env={"CRASH_AT": f"{point}:{step}"})
    with pytest.raises(OSError, match=r".*"):
        scene.ask(run)
    assert scene.home.died()
    scene.home.start()
    asked = len(scene.model.asked)
    # On PostgreSQL whoever died is given up when its lease has run out.
    reply = until(partial(scene.ask, run), lambda reply: reply.status == 200)
    assert reply.text == "All done."
    # What was kept is not done again: the step at which it died may have been, once.
    kept = step if point == "step.kept" else step - 1
    assert len(scene.model.asked) - asked == (STEPS + 1) // 2 - (kept + 1) // 2
    expected = [1, 1, 1]
    if point == "step.done" and step % 2 == 0:
        expected[step // 2 - 1] = 2
    assert scene.ran(run) == expected
    assert scene.ask(run).body == reply.body
    assert scene.home.stop() == 0


@pytest.mark.parametrize("point", MEMORY_POINTS)
def test_memory_is_written_once_after_a_kill_at(
    point: str, store: str, scenes: ByStore[LoopScene]
) -> None:
    scene, run = scenes[store], f"keep-{next(numbers)}"
    scene.home.start(env={"CRASH_AT": point})
    with pytest.raises(OSError, match=r".*"):
        scene.ask(run, "keeper")
    assert scene.home.died()
    scene.home.start()
    before = scene.versions(run)
    assert before.status == (200 if point == "memory.kept" else 404)
    reply = until(partial(scene.ask, run, "keeper"), lambda reply: reply.status == 200)
    assert reply.text == "All done."
    (version,) = scene.versions(run).json["versions"]
    assert (version["version"], version["by"], version["run"]) == (1, "agent", run)
    assert scene.home.stop() == 0
