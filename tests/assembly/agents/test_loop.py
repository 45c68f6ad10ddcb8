"""From the `[engine]` section to a loop: what it needs, and what is named if it is missing."""

from pathlib import Path

import pytest

from carnet.assembly.agents.loop import build_loop, build_tools
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


SMALL = '[models.small]\nurl = "http://127.0.0.1:1"\n'
OTHER = SMALL.replace("small", "other")
AGENT = '[agents.a]\nkind = "engine"\n'


def settings(folder: Path, engine: str, more: str = "") -> Settings:
    (folder / "loop_tools.py").write_text(TOOLS)
    (folder / "carnet.toml").write_text(f"[engine]\n{engine}\n{more}")
    return load(folder / "carnet.toml", {})


def test_tools_are_found_beside_the_configuration_and_each_has_its_permission(
    tmp_path: Path,
) -> None:
    given = 'tools = ["loop_tools:look", "loop_tools:send"]\nask_before = ["send"]'
    look, send = build_tools(settings(tmp_path, given))
    assert (look.definition.name, look.permission, look.needs_approval) == (
        "look",
        "tool:look",
        False,
    )
    assert (send.permission, send.needs_approval) == ("tool:send", True)
    every = build_tools(settings(tmp_path, given.replace('["send"]', '["*"]')))
    assert [tool.needs_approval for tool in every] == [True, True]


@pytest.mark.parametrize(
    ("engine", "models", "key", "says"),
    [
        ("", "", "engine.model", "needs a model"),
        ("", SMALL + OTHER, "engine.model", "small, other"),
        ('tools = ["loop_tools:none"]', SMALL, "engine.tools", "no 'none'"),
        ('tools = ["loop_tools:NUMBER"]', SMALL, "engine.tools", "function"),
        ('tools = ["loop_tools:endless"]', SMALL, "engine.tools", "yields"),
        (
            'tools = ["loop_tools:look", "loop_tools:look"]',
            SMALL,
            "engine.tools",
            "two tools alike",
        ),
        ('ask_before = ["look"]', SMALL, "engine.ask_before", "no tool: look"),
        ("", SMALL + 'api_key = {env = "NO_SUCH_KEY"}', "models.small.api_key", "NO_SUCH_KEY"),
    ],
)
async def test_what_cannot_be_used_is_named_by_its_key(
    tmp_path: Path, engine: str, models: str, key: str, says: str
) -> None:
    http = EgressClient()
    try:
        with pytest.raises(ConfigInvalid) as found:
            build_loop(settings(tmp_path, engine, models), None, http, FakeIds())
    finally:
        await http.close()
    assert found.value.facts["key"] == key
    assert says in found.value.safe_text
