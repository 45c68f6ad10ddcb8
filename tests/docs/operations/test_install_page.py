"""The page about installing: typed where it can be, and otherwise held to the files that it names.

What is typed runs in a clone, into an environment that the page's own lines make; see clone.py for
what that shares with the one of the tests. What needs a container engine, a service manager or pipx
is not run: the names that those lines give are compared with the files that they lead to.
"""

import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from carnet.testing.address import Address
from tests.docs.blocks.lines import DOCS, lines_of
from tests.docs.first.clone import clone_into, environment_of, share_packages
from tests.docs.first.terminal import Terminal
from tests.docs.test_quickstart import ROOT

pytestmark = pytest.mark.timeout(600)  # it installs

PAGE: Final = DOCS / "operations" / "install.md"
PLACE, STATE = "/usr/local/lib/carnet", "/var/lib/carnet"
UP: Final = re.compile(r"\"hello\"}]}'\n")
PREFIX: Final = re.compile(r"^(docker compose exec gateway|sudo -u carnet) ")
# What is not run, and what it is held to instead.
ELSEWHERE: Final = {
    r"^pipx ": "no pipx: its extras are those of pyproject.toml",
    r"^docker compose (up|logs|cp|restart)\b": "no engine: its services are those of compose.yaml",
    r"^sudo (useradd|install|cp|systemctl)\b|^journalctl ": (
        "changes the machine: tests/packages/test_service.py holds it to the unit"
    ),
}


class Machine:
    """Where it is installed: a clone, folders in the place of the page's, and a terminal."""

    def __init__(self, folder: Path) -> None:
        self.tree = clone_into(folder)
        self.folder = folder / "service"
        self.place = folder / "lib" / "carnet"
        python = folder / "python" / "python3"
        env = environment_of(self.tree)
        python.parent.mkdir()
        python.write_text(f'#!/bin/sh\nexec "{env["PYTHON"]}" "$@"\n')
        python.chmod(0o700)
        # pip would fetch what builds the wheel: it is there (see Makefile, INSTALL_SELF).
        env |= {"PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        env["PATH"] = f"{python.parent}:{self.place}/bin:{env['PATH']}"
        self.address = Address()
        self.checkout = Terminal(self.tree, env)
        self.home = folder / "home-of-gateway"
        self.home.mkdir()
        self.serving = Terminal(self.home, env, [self.address.fd])
        self.other = Terminal(self.home, env)

    def type(self, line: str) -> None:
        """Type a line where a reader would."""
        text = PREFIX.sub("", line).replace(PLACE, str(self.place))
        text = text.replace(STATE, str(self.folder)).replace("8700", str(self.address.port))
        text = text.replace("/data/", f"{self.home}/")
        if text.startswith("carnet serve"):
            self.serving.begin(f"{text} --fd {self.address.fd}")
            self.serving.until(UP)
            return
        has_pip = "/pip " in text or "-m venv" in text
        printed = (self.checkout if has_pip else self.other).type(text)
        if "-m venv" in text:
            share_packages(self.place)
        if text.startswith("curl"):
            assert "200 OK" in printed

    def close(self) -> None:
        for each in (self.checkout, self.serving, self.other):
            each.__exit__()
        self.address.close()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    yield made
    made.close()


def is_elsewhere(line: str) -> bool:
    return any(re.search(pattern, line) for pattern in ELSEWHERE)


def test_every_line_that_can_be_typed_is(machine: Machine) -> None:
    lines = [line for line in lines_of(PAGE) if not is_elsewhere(line)]
    assert len(lines) >= 14
    for line in lines:
        machine.type(line)
    where = machine.checkout.type(f"{machine.place}/bin/python -c 'import carnet; print(carnet)'")
    assert str(machine.place) in where


def test_every_other_line_can_be_read_by_a_shell_and_names_what_is_there() -> None:
    lines = [line for line in lines_of(PAGE) if is_elsewhere(line)]
    for pattern in ELSEWHERE:
        assert any(re.search(pattern, line) for line in lines), pattern
    bash = shutil.which("bash")
    assert bash is not None
    for line in lines:
        subprocess.run([bash, "-n", "-c", line], check=True)  # noqa: S603  our own page
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {name for line in lines for name in re.findall(r"'\.\[(\w+)\]'", line)}
    assert named
    assert named <= set(extras["optional-dependencies"])
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    used = {name for line in lines for name in re.findall(r"(?:logs|restart) (\w+)|(\w+):/", line)}
    assert {name for pair in used for name in pair if name} == {"gateway"} <= set(services)
    files = {name for line in lines for name in re.findall(r"sudo cp (\S+)", line)}
    assert files
    assert all((ROOT / name).is_file() for name in files)
