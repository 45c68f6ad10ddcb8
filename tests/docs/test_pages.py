"""What the pages name is there, and in the order they say."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from carnet import api
from tests.docs.test_quickstart import ROOT, blocks_of

PACKAGE = ROOT / "src" / "carnet"
ALL = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")]


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_snippets_in_the_pages_can_be_read(page: Path) -> None:
    for block in blocks_of(page):
        if block.language == "python":
            compile(block.text, page.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        elif block.language == "toml":
            tomllib.loads(block.text)


def test_every_link_of_a_page_leads_somewhere() -> None:
    for page in ALL:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / link).exists(), (page.name, link)


def test_every_public_name_is_explained() -> None:
    text = (ROOT / "docs" / "python.md").read_text()
    missing = [name for name in api.__all__ if f"`{name}" not in text]
    assert missing == []


def test_every_file_that_the_life_of_a_call_names_is_there() -> None:
    text = (ROOT / "docs" / "life-of-a-call.md").read_text()
    named = re.findall(r"`(\w+/[\w/]+\.py)`", text)
    assert len(named) > 10
    assert [name for name in named if not (PACKAGE / name).exists()] == []


def _plain(name: str) -> str:
    return name.lower().replace("_", "")


def test_the_guards_stand_in_the_order_that_is_told() -> None:
    text = (ROOT / "docs" / "life-of-a-call.md").read_text()
    told = re.findall(r"^\| `(\w+)` \(`guards/", text, re.MULTILINE)
    source = (PACKAGE / "guards" / "admission" / "gate.py").read_text()
    lists = [
        re.search(rf"{opening} \((.*?)\n        \)", source, re.DOTALL)
        for opening in (r"self\._guards: [^=]+ =", r"answers\.\"\"\"\n        return")
    ]
    listed = "".join(found[1] for found in lists if found)
    real = re.findall(r"^ +(?:\*\(.* else \()?(?:self\._)?(\w+)[(,]", listed, re.MULTILINE)
    assert [_plain(name) for name in told] == [_plain(name) for name in real]
