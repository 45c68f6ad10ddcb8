"""From the `[engine]` section to a loop: what it needs, and what is named if it is missing."""

from pathlib import Path

import pytest
from msgspec.structs import replace

import carnet
from carnet.assembly.agents.loop import NamedLoops, build_loop
from carnet.assembly.agents.tools import ToolServers
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


SMALL = '[models.small]\nurl = "http://127.0.0.1:1"\n'
OTHER = SMALL.replace("small", "other")
AGENT = '[agents.a]\nkind = "engine"\n'


def settings(folder: Path, engine: str, more: str = "") -> Settings:
    (folder / "loop_tools.py").write_text(TOOLS)
    (folder / "carnet.toml").write_text(f"[engine]\n{engine}\n{more}")
    return load(folder / "carnet.toml", {})


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


async def test_a_function_of_an_engine_by_itself_dials_nobody_at_the_last_hop(
    tmp_path: Path,
) -> None:
    async def dials(turn: LoopTurn, sink: object, /) -> Done:
        del turn, sink
        async with carnet.connect("http://127.0.0.1:1", key=tmp_path / "k") as client:
            await client.call("chat")
        return Done()

    request = EngineRequest(messages=(Message.user("Hi"),), correlation="req_1")
    turn = LoopTurn(request=request, actor=ALICE, is_final=True)
    with pytest.raises(carnet.DepthExceeded):
        await NamedLoops(dials, {})(turn, Written())


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
            build_loop(settings(tmp_path, engine, models), None, http, FakeIds(), ToolServers())
    finally:
        await http.close()
    assert found.value.facts["key"] == key
    assert says in found.value.safe_text
