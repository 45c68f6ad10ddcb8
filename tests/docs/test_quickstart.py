"""What the pages tell people to type is typed here, word for word."""

import ast
import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from carnet.config import load
from carnet.testing.address import Address
from tests.docs.first.masks import masked

pytestmark = pytest.mark.timeout(600)  # a page is typed, with all its gateways

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "docs" / "quickstart.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "== end of block"


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    text: str


class Step(NamedTuple):
    """Commands, and what the page says they print."""

    commands: str
    printed: str

    @property
    def serves(self) -> bool:
        return self.commands.strip().endswith(" serve")

    @property
    def fails(self) -> bool:
        return self.printed.startswith("Error:")


def blocks_of(page: Path) -> list[Block]:
    return [Block(*found) for found in BLOCK.findall(page.read_text())]


def steps_of(page: Path) -> list[Step]:
    blocks = [*blocks_of(page), Block("", "")]
    return [
        Step(block.text, after.text if after.language == "text" else "")
        for block, after in pairwise(blocks)
        if block.language == "sh"
    ]


def script_of(steps: list[Step], addresses: dict[str, Address]) -> str:
    """One shell session; what would have a terminal of its own runs beside it.

    The ports of the page may be taken here: ours are handed down in their place.
    """
    lines = ["set -euo pipefail"]
    left = iter(addresses.values())
    for step in steps:
        commands = step.commands.replace("make setup\n", "")  # the tests run in what it makes
        if step.serves:
            folder = commands.split("-c ")[1].split("/")[0]
            handed = f"--fd {next(left).fd}"
            lines.append(f"{{ {commands.strip()} {handed} ; }} > {folder}.log 2>&1 &")
            lines.append(f"until test -e {folder}/var/gateway.url; do sleep 0.1; done")
        else:
            lines.append(f"{{\n{commands}}}" + (" || test $? -eq 1" if step.fails else ""))
        lines.append(f"echo '{MARK}'")
    script = "\n".join(lines)
    for written, address in addresses.items():
        script = script.replace(written, str(address.port))
    return script


def typed(script: str, folder: Path, addresses: Iterable[Address]) -> str:
    ours = ("CARNET", "MAKE", "MFLAGS")  # a page is typed in a shell of its own, not below make
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    path = f"{_with_curl(folder)}:{Path(sys.executable).parent}:{kept['PATH']}"
    shell = subprocess.Popen(  # noqa: S603  our own page
        ["bash", "-c", script],  # noqa: S607
        cwd=ROOT,
        env={**kept, "PATH": path, "TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        pass_fds=[address.fd for address in addresses],
    )
    try:
        printed, _ = shell.communicate(timeout=500)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGTERM)  # the gateways that the page started beside it
    assert shell.returncode == 0, printed
    return printed


def _with_curl(folder: Path) -> Path:
    """A folder with a command of that name, on any machine the same: see curl.py."""
    command = folder / "bin" / "curl"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ROOT}/tests/docs/curl.py" "$@"\n')
    command.chmod(0o700)
    return command.parent


def test_every_command_of_the_quickstart_works_as_it_is_written(tmp_path: Path) -> None:
    steps = steps_of(QUICKSTART)
    addresses = {"8701": Address(), "8702": Address()}
    script = "\n".join([script_of(steps, addresses), *sentences(steps, addresses)])
    printed = typed(script, tmp_path, addresses.values()).split(MARK)
    assert sum(step.serves for step in steps) == 2
    assert sum(bool(step.printed) for step in steps) == 5
    for step, got in zip(steps, printed, strict=False):
        if step.printed:
            assert masked(got, addresses) == masked(step.printed)
    assert len({line for line in _of("sha256sum", steps, printed).split() if len(line) == 64}) == 1
    assert "HTTP/1.1 429" in _of("x-tangle-forwarded-depth: 4", steps, printed)
    assert "x-tangle-runid" in _of("curl -i", steps, printed)
    mismatch, malformed = printed[len(steps) : len(steps) + 2]
    assert '{"error":{"code":"idempotency_mismatch"' in mismatch
    assert '{"error":{"code":"malformed_caller_context"' in malformed


def sentences(steps: list[Step], addresses: dict[str, Address]) -> list[str]:
    """What the page says of a changed text (422) and of a depth of `three` (400), typed too."""
    [twice] = [step for step in steps if "demo-1.t0.relay" in step.commands]
    [deep] = [step for step in steps if "forwarded-depth" in step.commands]
    once = twice.commands.partition("do\n")[2].partition(" | sha256sum")[0]
    changed = [
        Step(once.replace('"once"', '"twice"') + "\n", ""),
        Step(deep.commands.replace("depth: 4", "depth: three"), ""),
    ]
    return [script_of([step], addresses) for step in changed]


def _of(part: str, steps: list[Step], printed: list[str]) -> str:
    return next(got for step, got in zip(steps, printed, strict=False) if part in step.commands)


def test_the_snippets_of_the_readme_make_a_configuration(tmp_path: Path) -> None:
    snippets = blocks_of(ROOT / "README.md")
    (python,) = [block.text for block in snippets if block.language == "python"]
    (toml,) = [block.text for block in snippets if block.language == "toml"]
    (tmp_path / "agents_of_readme.py").write_text(python)
    (tmp_path / "carnet.toml").write_text(toml)
    settings = load(tmp_path / "carnet.toml", {})
    module, _, function = str(settings.agents["researcher"].target).partition(":")
    names = {
        node.name for node in ast.walk(ast.parse(python)) if isinstance(node, ast.AsyncFunctionDef)
    }
    assert (module, function in names) == ("agents", True)
    exec(compile(python, "README.md", "exec"), {})  # noqa: S102  our own page


def test_it_says_where_it_works_and_leaves_no_umask_behind() -> None:
    lines = [line for block in blocks_of(QUICKSTART) for line in block.text.splitlines()]
    assert not [line for line in lines if line.startswith("umask")]
    assert [line for line in lines if "mktemp" in line] == ['cd "$(mktemp -d)" && pwd']
