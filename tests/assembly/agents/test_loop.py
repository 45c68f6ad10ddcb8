"""From the `[engine]` section to a loop: what it needs, and what is named if it is missing."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from carnet.assembly.agents.loop import NamedLoops, build_loop, build_tools
from carnet.config import Settings, load
from carnet.core.messages.events import Done, Message
from carnet.errors import AgentNotFound, ConfigInvalid
from carnet.ports.engine.loop import LoopTurn
from carnet.runtime.egress.client import EgressClient
from carnet.testing.clock import FakeIds
from carnet.wire.dialects.engine_chat.request import EngineRequest
from tests.engine.scene import ALICE, Written

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


def test_an_entry_with_an_address_is_an_agent_by_its_name(tmp_path: Path) -> None:
    given = 'tools = ["@my.clerk@globex.example", "loop_tools:look"]\nask_before = ["my_clerk"]'
    clerk, look = build_tools(settings(tmp_path, given))
    assert (clerk.definition.name, clerk.permission) == ("my_clerk", "tool:my_clerk")
    assert "@my.clerk@globex.example" in clerk.definition.description
    assert clerk.definition.parameters["required"] == ["message"]
    assert (clerk.calls_agent, clerk.needs_approval, look.calls_agent) == (True, True, False)
    with pytest.raises(ConfigInvalid, match="functions or agents"):
        settings(tmp_path, 'tools = ["@clerk"]')


class Named:
    """A loop that ends with its name."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def __call__(self, turn: LoopTurn, sink: object, /) -> Done:
        del turn, sink
        return Done(self._name)


async def test_each_agent_is_answered_by_its_own_loop_and_nobody_by_that_of_another() -> None:
    loops = NamedLoops(Named("default"), {"a": Named("of a")})
    request = EngineRequest(messages=(Message.user("Hi"),), correlation="req_1")
    turn = LoopTurn(request=request, actor=ALICE)
    assert await loops(turn, Written()) == Done("default")
    assert await loops(replace(turn, agent="a"), Written()) == Done("of a")
    with pytest.raises(AgentNotFound):
        await loops(replace(turn, agent="b"), Written())


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
            build_loop(settings(tmp_path, engine), http, FakeIds())
    finally:
        await http.close()
    assert found.value.facts["key"] == key
    assert says in found.value.safe_text


def test_an_agent_of_the_kind_needs_a_model(tmp_path: Path) -> None:
    (tmp_path / "carnet.toml").write_text('[agents.a]\nkind = "engine"\n')
    with pytest.raises(ConfigInvalid, match=r"'url' in \[engine\]"):
        load(tmp_path / "carnet.toml", {})
