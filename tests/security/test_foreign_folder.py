"""Looking at somebody else's configuration runs none of its code (A85)."""

import os
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, cli, home, port

__all__ = ["cli", "home", "port"]

NOBODY = 65_534
CANARY = "open('canary', 'w').close()\n"
LOOKING = (["agents", "list"], ["doctor"], ["config", "check"], ["config", "show"])
OTHERS = (["tokens", "list"], ["runs"], ["serve"], ["init"], ["reload"])


def belongs_to_another(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """We are root, and the folder is somebody's."""
    if os.geteuid() == 0:
        for path in (home, *home.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
    else:  # nobody but root can give files away: be root in name, and they are ours no more
        monkeypatch.setattr(os, "geteuid", lambda: 0)


@pytest.mark.parametrize("words", LOOKING)
def test_a85_looking_imports_nothing(cli: Cli, home: Path, words: list[str]) -> None:
    module = home / "agents.py"
    module.write_text(CANARY + module.read_text())
    ran = cli(*words)
    assert ran.code == 0, ran.err
    assert not (home / "canary").exists()
    assert "agents" not in sys.modules


@pytest.mark.parametrize("words", LOOKING[:3])
def test_a85_who_asks_for_it_has_the_agents_imported(
    cli: Cli, home: Path, words: list[str]
) -> None:
    module = home / "agents.py"
    module.write_text(CANARY + module.read_text())
    assert cli(*words, "--load").code == 0
    assert (home / "canary").exists()
    assert "agents" not in sys.modules


@pytest.mark.parametrize("words", [*LOOKING, *OTHERS])
def test_a85_root_uses_no_configuration_of_somebody_else(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    module = home / "agents.py"
    module.write_text(CANARY + module.read_text())
    belongs_to_another(home, monkeypatch)
    ran = cli(*words)
    assert ran.code == 2
    output = ran.out + ran.err
    assert "neither you nor root" in output
    assert "--trust-owner" in output
    assert not (home / "canary").exists()


@pytest.mark.parametrize("name", ["carnet.toml", "agents.py", "."])
def test_a85_one_part_of_it_is_enough(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if os.geteuid() == 0:
        os.chown(home / name, NOBODY, NOBODY)
    else:
        belongs_to_another(home, monkeypatch)
    ran = cli("config", "check", "--load")
    assert ran.code == 2
    assert "neither you nor root" in ran.err


def test_a85_a_link_of_somebody_else_is_his(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = home / "elsewhere.toml"
    (home / "carnet.toml").rename(elsewhere)
    (home / "carnet.toml").symlink_to(elsewhere)
    if os.geteuid() == 0:
        os.chown(home / "carnet.toml", NOBODY, NOBODY, follow_symlinks=False)
    else:
        belongs_to_another(home, monkeypatch)
    assert "neither you nor root" in cli("config", "check").err


def test_a85_who_trusts_the_owner_says_so(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    belongs_to_another(home, monkeypatch)
    assert cli("config", "check", "--trust-owner").code == 0
    assert cli("--trust-owner", "agents", "list").code == 0
