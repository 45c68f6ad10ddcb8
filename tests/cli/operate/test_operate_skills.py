"""What is wrong with a skill is told by the commands that check a configuration."""

from pathlib import Path

import pytest

from tests.cli.conftest import Cli

SKILL = "import carnet\n\n\n@carnet.skill('book', input={schema})\ndef book(given): ...\n"


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{'$ref': 'http://127.0.0.1/schema.json'}", "input schema of skill 'book' is not usable"),
        ("{'pattern': '(?=a)a'}", 'is not a \\"regex\\"'),
        ("{'pattern': 'a' * 2000}", "a pattern of more than 1024 characters"),
        ("int", "the input of 'book' is no object"),
    ],
)
def test_a_skill_that_cannot_be_served_is_told_with_its_key(
    schema: str, message: str, cli: Cli, home: Path
) -> None:
    (home / "clerks.py").write_text(SKILL.format(schema=schema))
    with (home / "carnet.toml").open("a") as config:
        config.write('\n[agents.clerk]\nkind = "python"\ntarget = "clerks:book"\n')
    ran = cli("--format", "json", "config", "check", "--load")
    assert ran.code == 2
    assert "agents.clerk.target" in ran.err
    assert message in ran.err
