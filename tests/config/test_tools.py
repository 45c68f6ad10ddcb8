"""The sections of tools: what each may say, and what is refused in words."""

from pathlib import Path

import pytest

from carnet.config import Settings, load
from carnet.config.changes import changed
from carnet.errors import ConfigInvalid
from tests.architecture.tree import ROOT


def settings(folder: Path, text: str) -> Settings:
    path = folder / "carnet.toml"
    path.write_text(text)
    return load(path, {})


def test_types_by_name_are_a_schema_whose_members_are_all_needed(tmp_path: Path) -> None:
    text = '[tools.log]\ncommand = ["git", "log", "{n}"]\ndescription = "D"\n'
    found = settings(tmp_path, text + 'parameters = { n = "integer" }').tools["log"]
    assert found.parameters == {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    own = 'parameters = { type = "object", properties = { n = { type = "integer" } } }'
    schema = settings(tmp_path, text + own).tools["log"].parameters
    assert schema == {"type": "object", "properties": {"n": {"type": "integer"}}}


def test_the_example_of_the_page_is_a_configuration(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "tools.md").read_text()
    example = page.partition("```toml\n")[2].partition("```")[0]
    found = settings(tmp_path, example + '[models.small]\nurl = "http://127.0.0.1:8080/v1"\n')
    ways = {name: tool.way for name, tool in found.tools.items()}
    assert ways == {
        "read_page": "target",
        "history": "command",
        "files": "mcp",
        "tickets": "mcp_url",
        "books": "agent",
    }


def test_a_tool_that_comes_or_changes_is_taken_over(tmp_path: Path) -> None:
    before = settings(tmp_path, '[tools.a]\ntarget = "x:a"\n')
    after = settings(
        tmp_path, '[tools.a]\ntarget = "x:a"\ntimeout = 5\n[tools.b]\ntarget = "x:b"\n'
    )
    assert changed(before, after) == ["tools.b (new)", "tools.a.timeout"]


@pytest.mark.parametrize(
    ("text", "key", "says"),
    [
        ("[tools.a]\ntimeout = 3", "tools.a", "one of target, command, mcp, mcp_url, agent"),
        ('[tools.a]\ntarget = "x:a"\nmcp_url = "http://127.0.0.1"', "tools.a", "no more than one"),
        ('[tools.a]\ncommand = ["git"]', "tools.a", "needs a 'description'"),
        ("[tools.a]\ncommand = []", "tools.a.command", "names no program"),
        ('[tools."a b"]\ntarget = "x:a"', 'tools."a b"', "no name for a tool"),
        ('[tools.find_tools]\ntarget = "x:a"', "tools.find_tools", "no name for a tool"),
        ('[tools.a]\ntarget = "x:a"\nonly = ["b"]', "tools.a.only", "is for mcp and mcp_url"),
        ('[tools.a]\ntarget = "x:a"\npermission = "nothing"', "tools.a.permission", "granted"),
        (
            '[tools.a]\ntarget = "x:a"\napproval = "maybe"',
            "tools.a.approval",
            "never, always, write",
        ),
        (
            '[tools.a]\ncommand = ["x"]\ndescription = "D"\nparameters = { n = "text" }',
            "tools.a.parameters",
            "string, integer",
        ),
        (
            '[tools.a]\nmcp_url = "http://x"\ntoken = "t"',
            "tools.a.token",
            "holds the secret itself",
        ),
        (
            '[engine]\ntools = ["b"]\n[tools.bb]\ntarget = "x:a"',
            "engine.tools",
            "Did you mean 'bb'",
        ),
        ('[agents.x]\ntarget = "x:a"\ntools = ["b"]', "agents.x.tools", "is none of [tools]"),
        ('[engine]\ntools = ["@b"]', "engine.tools", 'write "@b@DOMAIN"'),
        ('[engine]\ntools = ["@b@"]', "engine.tools", "@x@b.example"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_by_its_key(
    tmp_path: Path, text: str, key: str, says: str
) -> None:
    with pytest.raises(ConfigInvalid) as found:
        settings(tmp_path, text)
    assert found.value.facts["key"] == key
    assert says in found.value.safe_text


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (
            '[engine]\ntools = ["a"]\n[tools.a]\ntarget = "x:a"\naproval = "never"',
            "tools.a.aproval",
        ),
        (
            '[models.m]\nurl = "http://x/v1"\nkey = "k"\n[agents.a]\nkind = "engine"\nmodel = "m"',
            "models.m.key",
        ),
        (
            '[models.m]\nurl = "http://x/v1"\nfallbacks = ["n"]\n[models.n]\nurl = 1',
            "models.n.url",
        ),
    ],
)
def test_a_section_that_is_wrong_is_told_once_and_not_as_missing(
    tmp_path: Path, text: str, key: str
) -> None:
    with pytest.raises(ConfigInvalid) as found:
        settings(tmp_path, text)
    assert (found.value.facts["key"], found.value.others) == (key, ())
