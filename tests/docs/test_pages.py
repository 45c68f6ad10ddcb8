"""What the pages name is there, and in the order they say."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from carnet import api
from tests.docs.test_quickstart import ROOT, blocks_of

PATH = ["What you see", "Publish your own agent", "Call a partner", "Move to PostgreSQL", "Read on"]
PACKAGE = ROOT / "src" / "carnet"
ALL = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")]


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.name)
def test_snippets_in_the_pages_can_be_read(page: Path) -> None:
    for block in blocks_of(page):
        if block.language == "python":
            compile(block.text, page.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        elif block.language == "toml":
            tomllib.loads(block.text)


# What is typed is `sh`, what is run is `python`: a block of another name would be neither.
LANGUAGES = {"sh", "python", "text", "toml", "json", "yaml", "sql", "nginx", "caddyfile"}


def test_every_block_says_what_it_is() -> None:
    for page in ALL:
        fences = re.findall(r"^ *```(.*)$", page.read_text(), re.MULTILINE)
        assert len(fences) % 2 == 0, page.name
        assert set(fences[::2]) <= LANGUAGES, page.name
        assert set(fences[1::2]) <= {""}, page.name


def test_the_readme_begins_with_three_sentences_and_one_picture() -> None:
    title, words, picture, *rest = (ROOT / "README.md").read_text().split("\n\n")
    assert title == "# Carnet"
    assert len(re.findall(r"\.(?:\s|$)", words)) == 3
    assert re.fullmatch(r"!\[[^\]]+\]\(docs/images/console-run\.png\)", picture)
    assert not any(each.startswith("![") for each in rest)
    headings = re.findall(r"^## (.+)$", "\n\n".join(rest), re.MULTILINE)
    assert [name for name in headings if name in PATH] == PATH


def test_every_link_of_a_page_leads_somewhere() -> None:
    for page in ALL:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / link).exists(), (page.name, link)


def test_every_picture_is_shown_and_is_one_that_can_be_made_again() -> None:
    there = {path.name for path in (ROOT / "docs" / "images").iterdir()}
    shown = {name for page in ALL for name in re.findall(r"images/([\w.-]+)\)", page.read_text())}
    source = (ROOT / "tests" / "browser" / "pictures.py").read_text()
    made = {f"{name}.png" for name in re.findall(r'keep\(page, "([\w-]+)"\)', source)}
    assert there == shown == made


def test_every_public_name_is_explained() -> None:
    text = (ROOT / "docs" / "python.md").read_text()
    missing = [name for name in api.__all__ if f"`{name}" not in text]
    assert missing == []


def test_every_file_that_the_life_of_a_call_names_is_there() -> None:
    text = (ROOT / "docs" / "life-of-a-call.md").read_text()
    named = re.findall(r"`(\w+/[\w/]+\.py)`", text)
    assert len(named) > 10
    assert [name for name in named if not (PACKAGE / name).exists()] == []


def test_whatever_the_usual_changes_name_is_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    (table,) = re.findall(r"## The usual changes(.*?)\n## ", text, re.DOTALL)
    assert len(re.findall(r"^\| \*\*", table, re.MULTILINE)) == 13
    named = re.findall(r"`([\w.]+(?:/[\w.]+)*(?:/|\.py|\.md|\.toml))`", table)
    written = [name for name in named if "NAME" not in name]
    assert len(written) > 40
    missing = [
        name for name in written if not ((PACKAGE / name).exists() or (ROOT / name).exists())
    ]
    assert missing == []


def rooms_drawn() -> list[dict[str, list[str]]]:
    """The floors of the picture, from the top: each room with its folders."""
    text = (ROOT / "docs" / "life-of-a-call.md").read_text()
    (drawn,) = re.findall(r"```text\n room .*?\n(-.*?)```", text, re.DOTALL)
    floors: list[dict[str, list[str]]] = []
    for line in drawn.splitlines():
        if line.startswith("-"):
            floors.append({})
            continue
        room, folders = line[1:12].strip(), line[12:68].split()
        floors[-1].setdefault(room or [*floors[-1]][-1], []).extend(folders)
    return floors


def test_the_picture_shows_every_room_with_its_folders() -> None:
    drawn = {room: folders for floor in rooms_drawn() for room, folders in floor.items()}
    rooms = [path for path in PACKAGE.iterdir() if not path.name.startswith("__")]
    there = {
        path.stem: sorted(
            below.name for below in path.glob("*/") if below.is_dir() and below.name[0] != "_"
        )
        for path in rooms
        if path.is_dir() or path.suffix == ".py"
    }
    assert drawn == there


def test_the_floors_of_the_picture_are_those_that_are_checked() -> None:
    checked = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = [contract["layers"] for contract in checked["contracts"] if "layers" in contract]
    floors = [
        [room.strip() for room in layer.split("|") if "(" not in room]  # those in brackets may come
        for layer in layers
    ]
    assert [[*floor] for floor in rooms_drawn()] == [floor for floor in floors if floor]


def _plain(name: str) -> str:
    return name.lower().replace("_", "")


def test_the_guards_stand_in_the_order_that_is_told() -> None:
    text = (ROOT / "docs" / "life-of-a-call.md").read_text()
    order = re.findall(r"^\| `(\w+)` \(`guards/", text, re.MULTILINE)
    source = (PACKAGE / "guards" / "admission" / "order.py").read_text()
    lists = [
        re.search(rf"{opening} \((.*?)\n        \)", source, re.DOTALL)
        for opening in (r"self\.by_token: [^=]+ =", r"answers\.\"\"\"\n.*\n        return")
    ]
    listed = "".join(found[1] for found in lists if found)
    real = re.findall(r"^ +(?:\*\(.* else \()?(?:self\.)?(\w+)[(,]", listed, re.MULTILINE)
    assert [_plain(name) for name in order] == [_plain(name) for name in real]
