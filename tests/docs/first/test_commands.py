"""Every command that a page names is one of ours, with options that it takes."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from carnet.cli.main import carnet
from tests.docs.test_quickstart import ROOT, blocks_of

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
INLINE = re.compile(r"`((?:\.venv/bin/)?carnet [^`]+)`")
BEGINS = re.compile(r"(?:^|[|(] ?)(?:\.venv/bin/)?(?=carnet [\w-])", re.MULTILINE)
END = re.compile(r" [|>] ?|\) *$|\)\"|; | && | #")
HISTORY = {"decisions"}  # pages that tell what was, and are not changed


def commands(page: Path) -> Iterator[str]:
    """What a page writes as a command of ours, in a block or in a sentence."""
    text = page.read_text()
    for block in blocks_of(page):
        if block.language == "sh":
            joined = block.text.replace("\\\n", " ")
            for line in joined.splitlines():
                for found in BEGINS.finditer(line.strip()):
                    yield END.split(line.strip()[found.end() :])[0]
    for written in INLINE.findall(text.replace("\n", " ")):
        yield END.split(written.removeprefix(".venv/bin/"))[0]


def wrong(command: str) -> str:
    """What is not as the command line takes it; empty if all is."""
    where: click.Command = carnet
    words = iter(shlex.split(command)[1:])
    for word in words:
        options = {
            name: isinstance(each, click.Option) and not each.is_flag
            for each in where.params
            for name in (*each.opts, *each.secondary_opts, "--help")
        }
        name, equals, _ = word.partition("=")
        if word.startswith("-") and word != "-":
            if name not in options:
                return f"no option {name}"
            if options[name] and not equals:
                next(words, None)
        elif isinstance(where, click.Group) and word in where.commands:
            where = where.commands[word]
        elif isinstance(where, click.Group) and not word.isupper():
            return f"no command {word}"
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_of_a_page_are_there(page: Path) -> None:
    if page.parent.name not in HISTORY:
        assert {each: wrong(each) for each in commands(page) if wrong(each)} == {}


def test_what_is_not_there_is_found() -> None:
    assert len([*commands(ROOT / "docs" / "command-line.md")]) > 20
    assert wrong("carnet tokens end alice") == "no command end"
    assert wrong("carnet -c a.toml runs --strem") == "no option --strem"
    assert wrong("carnet COMMAND --help") == ""
