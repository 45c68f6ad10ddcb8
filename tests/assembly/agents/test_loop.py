"""From the `[engine]` section to a loop: what it needs, and what is named if it is missing."""

from pathlib import Path

import pytest

from carnet.assembly.agents.loop import build_loop
from carnet.assembly.agents.tools import ToolServers
from carnet.config import Settings, load
from carnet.errors import ConfigInvalid
from carnet.runtime.egress.client import EgressClient
from carnet.testing.clock import FakeIds

TOOLS = """
def look(where: str) -> str:
    "Looks."
    return where

def send(to: str) -> str:
    return to

def endless():
    yield 1

NUMBER = 3
"""


def settings(folder: Path, engine: str) -> Settings:
    (folder / "loop_tools.py").write_text(TOOLS)
    (folder / "carnet.toml").write_text(f"[engine]\n{engine}\n")
    return load(folder / "carnet.toml", {})


@pytest.mark.parametrize(
    ("engine", "key", "says"),
    [
        ("", "engine.url", "needs a model"),
        ('url = "http://127.0.0.1:1"\ntools = ["loop_tools:none"]', "engine.tools", "no 'none'"),
        ('url = "http://127.0.0.1:1"\ntools = ["loop_tools:NUMBER"]', "engine.tools", "function"),
        ('url = "http://127.0.0.1:1"\ntools = ["loop_tools:endless"]', "engine.tools", "yields"),
        (
            'url = "http://127.0.0.1:1"\ntools = ["loop_tools:look", "loop_tools:look"]',
            "engine.tools",
            "two tools alike",
        ),
        ('url = "http://127.0.0.1:1"\nask_before = ["look"]', "engine.ask_before", "no tool: look"),
        (
            'url = "http://127.0.0.1:1"\napi_key = {env = "NO_SUCH_KEY"}',
            "engine.api_key",
            "NO_SUCH_KEY",
        ),
    ],
)
async def test_what_cannot_be_used_is_named_by_its_key(
    tmp_path: Path, engine: str, key: str, says: str
) -> None:
    http = EgressClient()
    try:
        with pytest.raises(ConfigInvalid) as found:
            build_loop(settings(tmp_path, engine), http, FakeIds(), ToolServers())
    finally:
        await http.close()
    assert found.value.facts["key"] == key
    assert says in found.value.safe_text


def test_an_agent_of_the_kind_needs_a_model(tmp_path: Path) -> None:
    (tmp_path / "carnet.toml").write_text('[agents.a]\nkind = "engine"\n')
    with pytest.raises(ConfigInvalid, match=r"'url' in \[engine\]"):
        load(tmp_path / "carnet.toml", {})
