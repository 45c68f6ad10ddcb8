"""Either side is replaced: a loop of its own in the place of ours, a front in the gateway's.

Both are programs of the examples, which import nothing of Carnet. The kit judges all of them.
"""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from carnet.testing.conform import Verdict
from carnet.testing.conform.front import judge_front
from carnet.wire.dialects import engine_chat
from tests.architecture.tree import ROOT
from tests.engine.process import EngineProcess, tool_call, with_usage
from tests.support.model import Answer, Asked, Model
from tests.support.organisation import Organisation, shared_with_others

EXAMPLES = ROOT / "examples" / "engine"
SCHEMA = Path(engine_chat.__file__).with_name("schemas") / "request.json"
CONFIG = """
[agents.mirror]
kind = "engine"

[models.small]
url = "{url}/v1"
retries = 0

[engine]
tools = ["tools:read_page"]
listen = "{listen}"
"""
TOOLS = """
def read_page(name: str) -> str:
    "Reads a page."
    return f"The page {name} says 100."
"""


class SwapScene:
    """A gateway, our loop and the echo; which of them is asked is one line."""

    def __init__(self, home: Organisation, engine: EngineProcess, echo: str) -> None:
        self.home = home
        self.engine = engine
        self.echo = echo

    def point(self, url: str) -> None:
        """Have the gateway ask another loop: that line is all that changes."""
        config = self.home.folder / "carnet.toml"
        lines = config.read_text().splitlines(keepends=True)
        kept = [line for line in lines if not line.startswith("listen = ")]
        assert len(kept) == len(lines) - 1
        self.home.stop()
        config.write_text("".join([*kept, f'listen = "{url}"\n']))
        self.home.start()

    def conform(self, url: str) -> list[Verdict]:
        page = self.home.json("conform", "--engine", url, "--token", self.engine.token)
        assert page["ok"] is True
        return [Verdict(**{**check, "broken": ()}) for check in page["checks"]]


def reply(asked: Asked) -> Answer:
    if asked.body["messages"][-1]["role"] == "tool":
        return with_usage("It is 100.")
    return tool_call("read_page", '{"name":"finances"}')


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SwapScene]:
    with Model().serving() as model, shared_with_others():
        model.reply = reply
        home = Organisation(tmp_path_factory.mktemp("swap"), "acme.example")
        (home.folder / "tools.py").write_text(TOOLS)
        engine = EngineProcess(home)
        home.configure(CONFIG.format(url=model.url, listen=engine.url))
        engine.start()
        home.start()
        (key,) = home.json("keys", "list")["keys"]
        words = ("echo_loop.py", "0", engine.token, str(SCHEMA), key["key"])
        echo = subprocess.Popen(  # noqa: S603  our own example
            [sys.executable, *words], cwd=EXAMPLES, stdout=subprocess.PIPE, text=True
        )
        assert echo.stdout is not None
        with echo.stdout as output:
            try:
                yield SwapScene(home, engine, output.readline().strip())
            finally:
                echo.kill()
                echo.wait()
        engine.close()
        assert home.stop() == 0


def outcomes(verdicts: list[Verdict]) -> dict[str, str]:
    return {each.check: each.outcome for each in verdicts}


def test_ours_passes_the_kit_and_shows_its_tools(scene: SwapScene) -> None:
    found = outcomes(scene.conform(scene.engine.url))
    assert {found["tool-calls"], found["tool-results"], found["correlation"]} == {"ok"}
    # A model that answers never fails, and nothing stops.
    unseen = {name for name, outcome in found.items() if outcome == "unseen"}
    assert unseen == {"error-form", "error-safe", "error-fixed", "unavailable"}


def test_a_loop_of_its_own_stands_in_for_ours_and_passes_the_kit(scene: SwapScene) -> None:
    token = scene.home.new_token("caller", *("--scope", "call:*", "--scope", "tool:*"))
    scene.point(scene.engine.url)
    assert scene.home.chat("Hi", "mirror", token=token).text == "It is 100."
    scene.point(scene.echo)
    reply = scene.home.chat("Hello, mirror!", "mirror", token=token)
    assert reply.text == "Echo: Hello, mirror!"
    assert reply.json["usage"]["total_tokens"] == 3
    assert set(outcomes(scene.conform(scene.echo)).values()) == {"ok", "unseen"}


def test_a_front_of_its_own_stands_in_for_the_gateway(scene: SwapScene) -> None:
    for url, text in ((scene.engine.url, "It is 100."), (scene.echo, "Echo: Hi")):
        words = ("plain_front.py", url, scene.engine.token, "Hi")
        ran = subprocess.run(  # noqa: S603  our own example
            [sys.executable, *words],
            cwd=EXAMPLES,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (ran.returncode, ran.stdout) == (0, text), ran.stderr
        assert 'done {"finish_reason": "stop"' in ran.stderr


def test_our_gateway_is_a_front_that_passes_the_kit(scene: SwapScene) -> None:
    listening, where, found = threading.Event(), list[str](), list[Verdict]()

    def announce(url: str) -> None:
        where.append(url)
        listening.set()

    def judge() -> None:
        judging = judge_front("http://127.0.0.1:0", seconds=100, on_listening=announce)
        found.extend(asyncio.run(judging))

    thread = threading.Thread(target=judge)
    thread.start()
    assert listening.wait(60)
    scene.point(where[0])
    assert scene.home.chat("Hi", "mirror").text == "The kit has read the request."
    thread.join()
    assert set(outcomes(found).values()) == {"ok"}
