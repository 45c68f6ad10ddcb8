"""Every entry of "I want to ..." is one command, which does it and prints what the page says."""

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from carnet.cli.main import run
from carnet.testing.address import Address
from carnet.testing.stage import Organisation
from tests.docs import curl
from tests.docs.first.masks import masked
from tests.docs.test_quickstart import BLOCK, ROOT

PAGE = ROOT / "docs" / "i-want-to.md"
FILE = re.compile(r"\$\(cat ([\w./]+)\)")


class Entry(NamedTuple):
    """A wish, the command that fulfils it, and what the page says it prints."""

    wish: str
    commands: list[str]
    printed: str
    links: list[str]


def entries() -> list[Entry]:
    return [_read(section) for section in PAGE.read_text().split("\n### ")[1:]]


def _read(section: str) -> Entry:
    wish, _, rest = section.partition("\n")
    blocks = BLOCK.findall(rest)
    commands = [line for kind, text in blocks if kind == "sh" for line in text.splitlines()]
    printed = "".join(text for kind, text in blocks if kind != "sh")
    return Entry(wish, commands, printed, re.findall(r"\]\(([^)]+)\)", rest))


@pytest.fixture
def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Organisation]:
    """What `make serve` makes, and a terminal in its folder."""
    made = Organisation(tmp_path, "carnet.localhost")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["carnet"])
    made.start()
    yield made
    made.close()


def entered(command: str) -> int:
    """Type one command; the exit code."""
    words = shlex.split(FILE.sub(lambda found: Path(found[1]).read_text().strip(), command))
    return {"carnet": run, "curl": curl.main}[words[0]](words[1:])


def test_an_entry_is_one_command_and_a_way_on() -> None:
    assert len(entries()) > 25
    assert [entry.wish for entry in entries() if len(entry.commands) != 1] == []
    assert [entry.wish for entry in entries() if not entry.links] == []


def test_every_entry_does_what_it_says(
    gateway: Organisation, capfd: pytest.CaptureFixture[str]
) -> None:
    ports = {"8700": gateway.address, "8702": Address()}
    for entry in entries():
        [command] = entry.commands
        for written, address in ports.items():
            command = command.replace(written, str(address.port))
        capfd.readouterr()
        code = entered(command)
        printed = "".join(capfd.readouterr())
        assert code == 0, (entry.wish, printed)
        if entry.printed:
            assert masked(printed, ports) == masked(entry.printed), entry.wish
