"""The commands people are told to type exist, and CI types the same ones."""

import os
import re
import tomllib
from collections.abc import Iterator

import click
import pytest

from carnet.cli.main import carnet
from tests.architecture.tree import ROOT

README_COMMANDS = ["make serve", "make test"]


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def first_block(markdown: str) -> list[str]:
    """The commands of the first shell block, without their comments."""
    block = re.search(r"^```sh\n(.*?)^```", markdown, re.MULTILINE | re.DOTALL)
    assert block, "the README opens with a shell block"
    return [line.partition("#")[0].strip() for line in block[1].splitlines() if line.strip()]


def test_the_readme_opens_with_the_two_commands() -> None:
    assert first_block((ROOT / "README.md").read_text()) == README_COMMANDS


def test_every_make_command_in_the_text_is_a_target() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    named = {name for page in pages for name in re.findall(r"`make ([a-z0-9-]+)", page.read_text())}
    named |= {command.removeprefix("make ") for command in README_COMMANDS}
    assert named - make_targets() == set()


def test_every_target_says_in_the_help_what_it_does() -> None:
    text = (ROOT / "Makefile").read_text()
    explained = set(re.findall(r"^([a-z0-9-]+):[^#\n]*## \S", text, re.MULTILINE))
    assert make_targets() == explained


def test_ci_runs_the_readme_test_command_and_nothing_else() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    makes = re.findall(r"^(?:exec )?make .*$", script.read_text(), re.MULTILINE)
    assert makes == ["exec make test"]


def named_commands() -> Iterator[tuple[str, list[str]]]:
    """Yield (file, words) of every `carnet ...` that a page, a hint or a help text names."""
    pages = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
    for path in [*pages, *sorted((ROOT / "src").rglob("*.py"))]:
        for line in re.findall(r"[`'\"]carnet ([a-z][^`'\"\n]*)[`'\"]", path.read_text()):
            yield path.name, line.split()


def unknown_word(words: list[str]) -> str | None:
    """The first word that should name a command and names none."""
    at: click.Command = carnet
    for word in words:
        if not isinstance(at, click.Group) or not re.fullmatch(r"[a-z|-]+", word):
            return None
        found = [at.get_command(click.Context(at), name) for name in word.split("|")]
        if not all(found) and not (at.invoke_without_command and at is not carnet):
            return word
        if found[0] is None:
            return None
        at = found[0]
    return None


def test_every_command_that_is_told_to_people_exists() -> None:
    named = list(named_commands())
    assert len(named) > 50
    assert [(place, words) for place, words in named if unknown_word(words)] == []


@pytest.mark.parametrize("words", [["fly"], ["run", "away"], ["tokens", "create|mint"]])
def test_a_command_that_does_not_exist_would_be_found(words: list[str]) -> None:
    assert unknown_word(words) is not None


def test_the_console_script_is_the_command_line() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"carnet": "carnet.cli.main:main"}


def test_every_lock_is_pinned_by_hash_and_names_no_index() -> None:
    for lock in sorted((ROOT / "requirements").glob("*.txt")):
        entries = lock.read_text().replace("\\\n", " ").splitlines()
        for entry in (line for line in entries if line and not line.startswith("#")):
            assert re.fullmatch(r"[\w.-]+==[\w.]+( ;[^-]+)?( +--hash=sha256:[0-9a-f]{64})+", entry)
