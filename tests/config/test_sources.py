"""Everything that is wrong in a configuration is told at once, in the order of the file."""

from pathlib import Path

import pytest

from carnet.config import load
from carnet.errors import ConfigInvalid

BAD = """\
[peers."hooli.example"]
url = "ftp://hooli.example"
credit = "much"

[agents.a]
kind = "python"

[agents.b]
target = "agents:b"
retries = -1
colour = "red"

[gateway]
port = 99999
prot = 1

[peers."globex.example"]

[store]
secrets = {env = "X"}

[wrong]
"""
KEYS = [
    'peers."hooli.example".url',
    'peers."hooli.example".credit',
    "agents.a.kind",
    "agents.b.retries",
    "agents.b.colour",
    "gateway.port",
    "gateway.prot",
    'peers."globex.example".url',
    "store.secrets",
    "wrong",
]


def refused(folder: Path, text: str, env: dict[str, str] | None = None) -> list[str]:
    path = folder / "carnet.toml"
    path.write_text(text)
    with pytest.raises(ConfigInvalid) as caught:
        load(path, env or {})
    first = caught.value
    return [str(error.facts["key"]) for error in (first, *first.others)]


def test_all_errors_are_told_in_the_order_of_the_file(tmp_path: Path) -> None:
    assert refused(tmp_path, BAD) == KEYS


def test_what_comes_from_the_environment_is_told_beside_the_file(tmp_path: Path) -> None:
    env = {"CARNET__GATEWAY__PROT": "1", "CARNET__LEDGER__CURRENCY": "", "CARNET__NOTHING": "1"}
    found = refused(tmp_path, "[gateway]\nport = 99999\n", env)
    assert found[0] == "gateway.port"
    assert sorted(found[1:]) == ["CARNET__GATEWAY__PROT", "CARNET__NOTHING", "ledger.currency"]


def test_one_error_has_no_others(tmp_path: Path) -> None:
    assert refused(tmp_path, "[gateway]\nport = 99999\n") == ["gateway.port"]
    assert refused(tmp_path, "agents = 1\n") == ["agents"]
