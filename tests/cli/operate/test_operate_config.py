"""What is wrong in a configuration, as the command line tells it."""

from pathlib import Path

from tests.cli.conftest import Cli
from tests.config.test_sources import BAD, KEYS


def test_the_command_line_tells_all_of_them(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "carnet.toml").write_text(BAD)
    for words in (("config", "check"), ("serve",), ("runs",)):
        ran = cli(*words)
        assert ran.code == 2
        places = [ran.err.index(f"{key}: ") for key in KEYS]
        assert places == sorted(places)
    page = cli("config", "check", "--format", "json").error
    assert len(page["others"]) == len(KEYS) - 1
    checks = cli("doctor", "--format", "json").page["checks"]
    assert [check["message"].partition(": ")[0] for check in checks] == KEYS


def test_what_values_lead_to_is_told_at_once_as_well(cli: Cli, home: Path) -> None:
    config = home / "carnet.toml"
    more = """
[agents.nobody]
target = "agents:nobody"

[peers."globex.example"]
url = "https://globex.example"
token = {file = "var/missing.token"}

[agents.model]
kind = "openai"
url = "https://api.example/v1"
api_key = {env = "NO_SUCH_KEY"}
"""
    config.write_text(config.read_text() + more)
    ran = cli("config", "check")
    assert ran.code == 2
    keys = ["agents.nobody.target", 'peers."globex.example".token', "agents.model.api_key"]
    places = [ran.err.index(f"{key}: ") for key in keys]
    assert places == sorted(places)
