"""Every line of every page is typed, in the order of the page, beside a gateway that serves.

README, quickstart, "I want to ...", the tutorials and a few more have tests of their own, which
also look at what is printed.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from carnet.testing.stage import Organisation
from tests.docs.blocks import scene
from tests.docs.blocks.lines import DOCS, NOT_TYPED, PAGES, lines_of, typed_lines
from tests.docs.blocks.reader import Reader
from tests.docs.test_quickstart import ROOT
from tests.worst.__main__ import read_options

pytestmark = pytest.mark.timeout(600)  # some of it lasts, or has a model compute

REFUSED = re.compile(r"# refused with (\w+)")


@pytest.fixture
def reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Reader]:
    """Somebody whose gateway serves, with a terminal in its folder."""
    home = Organisation(tmp_path, "carnet.localhost")
    home.configure(scene.CONFIG, agents=(tmp_path / "agents.py").read_text() + scene.AGENTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["carnet"])
    editor = scene.write_executable(tmp_path / "editor", scene.EDITOR)
    monkeypatch.setenv("EDITOR", str(editor))
    home.start()
    made = Reader(home, lambda: request.getfixturevalue("server"))
    yield made
    made.close()
    home.close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_line_of_a_page_does_what_it_is_there_for(page: Path, reader: Reader) -> None:
    lines = typed_lines(page)
    reader.prepare(lines)
    faults = {}
    for line in lines:
        refused = REFUSED.search(line)
        code, printed = reader.type(line)
        if code != (1 if refused else 0) or (refused and refused[1] not in printed):
            faults[line] = (code, printed)
    assert faults == {}


def test_each_reason_not_to_type_a_line_is_needed() -> None:
    every = [line for page in DOCS.rglob("*.md") for line in lines_of(page)]
    for pattern in NOT_TYPED:
        assert any(re.search(pattern, line) for line in every), pattern
    assert sum(len(typed_lines(page)) for page in PAGES) >= 160


def test_what_the_measurements_are_given_is_what_they_take() -> None:
    every = [line for page in DOCS.rglob("*.md") for line in lines_of(page)]
    # By name: what it measures beside is not installed for the checks, and has no types here.
    parsers = {"bench": import_module("bench.__main__").arguments, "worst": read_options}
    read = 0
    for line in every:
        for target, read_options_of in parsers.items():
            if re.search(rf"\bmake {target}\b", line):
                read_options_of(_given(line, target))
                read += 1
    assert read >= 16


def _given(line: str, target: str) -> list[str]:
    """What make hands to a measurement, where a line is typed in the checkout."""
    ours = ("MAKE", "ARGS")
    env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    command = ["bash", "-c", line.replace("make ", f"make --no-print-directory -nC {ROOT} ", 1)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)  # noqa: S603  our own page
    _, found, given = done.stdout.splitlines()[-1].rpartition(f"{target} ")
    return shlex.split(given) if found else []
