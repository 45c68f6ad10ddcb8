"""From `[tools]` to what a loop may use: the rules of each, and what is refused at start."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from carnet.assembly.agents.tools import LoopTools, NamedTools, ToolServers, build_tools
from carnet.config import Settings, load
from carnet.errors import ConfigInvalid
from carnet.ports.engine.tools import LoopTool
from carnet.runtime.egress.client import EgressClient
from tests.runtime.tools.test_function import used

FUNCTIONS = """
def look(where: str) -> str:
    "Looks."
    return where

def send(to: str) -> str:
    return to
"""
SECTIONS = f"""
[tools.peek]
target = "some_tools:look"
permission = "tool:eyes"
approval = "write"
writes = false
timeout = 5
label = "Looking at {{where}}"
redact = ["where"]
always_send = false

[tools.greet]
command = [
  "{sys.executable}", "-c",
  "import sys; _, a, n = sys.argv; print(a * int(n))", "{{name}}", "{{n}}",
]
description = "Greets."
parameters = {{ name = "string", n = "integer" }}
approval = "write"

[tools.pages]
mcp = ["{sys.executable}", "server.py"]
only = ["read"]

[tools.web]
mcp_url = "http://127.0.0.1:9/mcp"
token = {{ file = "token.txt" }}
"""
WRONG_SCHEMA = '{ type = "object", properties = { a = { type = "texts" } } }'


@pytest.fixture
async def http() -> AsyncIterator[EgressClient]:
    client = EgressClient()
    yield client
    await client.close()


def settings(folder: Path, text: str) -> Settings:
    (folder / "some_tools.py").write_text(FUNCTIONS)
    (folder / "token.txt").write_text("t-1")
    (folder / "carnet.toml").write_text(text)
    return load(folder / "carnet.toml", {})


def built(folder: Path, http: EgressClient, engine: str, sections: str = SECTIONS) -> LoopTools:
    return build_tools(settings(folder, f"[engine]\n{engine}\n{sections}"), http, ToolServers())


def rules(tool: LoopTool) -> tuple[str, str | None, bool]:
    return tool.definition.name, tool.permission, tool.needs_approval


async def test_functions_are_found_beside_the_configuration_and_each_has_its_permission(
    tmp_path: Path, http: EgressClient
) -> None:
    given = 'tools = ["some_tools:look", "some_tools:send"]\nask_before = ["send"]'
    look, send = built(tmp_path, http, given).tools
    assert (rules(look), rules(send)) == (("look", "tool:look", False), ("send", "tool:send", True))
    every = built(tmp_path, http, given.replace('["send"]', '["*"]'))
    assert [tool.needs_approval for tool in every.tools] == [True, True]


async def test_a_section_has_the_rules_of_its_tool(tmp_path: Path, http: EgressClient) -> None:
    found = built(tmp_path, http, 'tools = ["peek", "greet"]')
    peek, greet = found.tools
    assert rules(peek) == ("peek", "tool:eyes", False)
    assert (peek.seconds, peek.label, peek.is_always_sent) == (5, "Looking at {where}", False)
    assert peek.hidden == {"where"}
    assert peek.definition.description == "Looks."
    # What nobody has said to change nothing may change something.
    assert rules(greet) == ("greet", "tool:greet", True)
    assert greet.definition.parameters["properties"]["n"] == {"type": "integer"}
    assert await greet.use(used(name="hi", n=2)) == "hihi\n"
    assert found.sources == ()


async def test_an_agent_is_a_tool_by_its_address_or_by_a_section(
    tmp_path: Path, http: EgressClient
) -> None:
    given = 'tools = ["@my.clerk@globex.example", "some_tools:look"]\nask_before = ["my_clerk"]'
    clerk, look = built(tmp_path, http, given).tools
    assert rules(clerk) == ("my_clerk", "tool:my_clerk", True)
    assert "@my.clerk@globex.example" in clerk.definition.description
    assert clerk.definition.parameters["required"] == ["message"]
    assert (clerk.calls_agent, look.calls_agent) == (True, False)
    section = '[tools.books]\nagent = "@clerk@globex.example"\ndescription = "Keeps books."\n'
    (books,) = built(tmp_path, http, 'tools = ["books"]', section).tools
    assert (rules(books), books.calls_agent) == (("books", "tool:books", False), True)
    assert books.definition.description == "Keeps books."
    assert books.seconds > look.seconds
    with pytest.raises(ConfigInvalid, match="without a domain"):
        built(tmp_path, http, 'tools = ["@clerk"]')


async def test_a_server_is_shared_by_all_who_name_it(tmp_path: Path, http: EgressClient) -> None:
    (tmp_path / "server.py").write_text("")
    given = settings(tmp_path, f'[engine]\ntools = ["pages", "web"]\n{SECTIONS}')
    servers = ToolServers()
    first, second = (build_tools(given, http, servers) for _ in range(2))
    assert first.sources == second.sources
    assert list(servers.by_name) == ["pages", "web"]
    some = build_tools(given, http, servers, NamedTools(["web"], "agents.x.tools"))
    assert some.sources == (servers.by_name["web"],)
    await servers.close()


@pytest.mark.parametrize(
    ("engine", "section", "key", "says"),
    [
        ('tools = ["x"]', 'command = ["no-such-program"]\ndescription = "D"', "command", "no-such"),
        ('tools = ["x"]', 'command = ["sh", "{a.b}"]\ndescription = "D"', "command", "plain"),
        (
            'tools = ["x"]',
            'command = ["sh", "{a}"]\ndescription = "D"\nparameters = { b = "string" }',
            "parameters",
            "'a' is in an argument alone",
        ),
        (
            'tools = ["x"]',
            'command = ["sh"]\ndescription = "D"\nfolder = "nowhere"',
            "command",
            "no folder",
        ),
        (
            'tools = ["x"]',
            f'command = ["sh", "{{a}}"]\ndescription = "D"\nparameters = {WRONG_SCHEMA}',
            "parameters",
            "schema",
        ),
        ('tools = ["x"]', 'target = "some_tools:none"', "target", "no 'none'"),
    ],
)
async def test_what_cannot_be_used_is_named_by_its_key(
    tmp_path: Path, http: EgressClient, engine: str, section: str, key: str, says: str
) -> None:
    with pytest.raises(ConfigInvalid) as found:
        built(tmp_path, http, engine, f"[tools.x]\n{section}\n")
    assert found.value.facts["key"] == f"tools.x.{key}"
    assert says in found.value.safe_text


async def test_a_tool_that_is_gone_when_the_file_is_read_again_is_named(
    tmp_path: Path, http: EgressClient
) -> None:
    given = replace(settings(tmp_path, f'[engine]\ntools = ["peek"]\n{SECTIONS}'), tools={})
    with pytest.raises(ConfigInvalid, match=r"'peek' is none of \[tools\] any more"):
        build_tools(given, http, ToolServers())


async def test_who_must_approve_is_told_of_tools_that_there_are(
    tmp_path: Path, http: EgressClient
) -> None:
    assert built(tmp_path, http, 'ask_before = ["pages_read", "peek"]').tools == ()
    with pytest.raises(ConfigInvalid, match="no tool: page_read"):
        built(tmp_path, http, 'ask_before = ["page_read"]')


OF_TWO = """
[models.small]
url = "http://127.0.0.1:9/v1"

[agents.reader]
kind = "engine"
tools = ["some_tools:look", "read_file"]

[agents.writer]
kind = "engine"
tools = ["some_tools:send", "@my.clerk@globex.example", "schedules"]
"""


async def test_what_is_asked_before_is_a_tool_of_any_loop_and_of_no_other_name(
    tmp_path: Path, http: EgressClient
) -> None:
    ask = '[engine]\nask_before = ["send", "my_clerk", "read_file", "add_schedule"]\n'
    given = settings(tmp_path, ask + OF_TWO)
    named = [NamedTools(given.agents[name].tools or (), name) for name in given.agents]
    reader, writer, neither = (
        {tool.definition.name: tool.needs_approval for tool in build_tools(*each).tools}
        for each in [(given, http, ToolServers(), one) for one in (*named, None)]
    )
    assert reader == {"look": False, "read_file": True}
    assert (writer["send"], writer["my_clerk"], writer["add_schedule"]) == (True, True, True)
    assert neither == {}
    wrong = settings(tmp_path, '[engine]\nask_before = ["sent", "quite_another"]\n' + OF_TWO)
    for one in named:
        with pytest.raises(ConfigInvalid) as found:
            build_tools(wrong, http, ToolServers(), one)
        assert found.value.facts["key"] == "engine.ask_before"
        assert "no tool: quite_another, sent (did you mean 'send'?)" in found.value.safe_text


async def test_two_tools_of_one_name_are_refused(tmp_path: Path, http: EgressClient) -> None:
    section = '[tools.look]\ntarget = "some_tools:send"\n'
    with pytest.raises(ConfigInvalid, match="two tools alike"):
        built(tmp_path, http, 'tools = ["some_tools:look", "look"]', section)
