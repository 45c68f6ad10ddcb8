"""Every Python block of a page is run, one after the other, as a reader would."""

import ast
import asyncio
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any, Final

import pytest
from samvad import Agent

from tests.docs.test_quickstart import ROOT

BLOCK: Final = re.compile(r"^( *)```python\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
ALL: Final = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# The tutorials are done whole, with their files; decisions tell what was.
PAGES: Final = [
    page
    for page in ALL
    if page.parent.name not in {"tutorials", "decisions"} and BLOCK.search(page.read_text())
]


def given(page: Path, folder: Path) -> dict[str, Any]:
    """What a page says that there is already."""
    names: dict[str, Any] = {"__name__": "page"}
    if page.name == "bridging.md":
        names["agent"] = _agent(folder)
    return names


def _agent(folder: Path) -> Any:
    return Agent(name="theirs", url="http://127.0.0.1:1", keys_dir=str(folder))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_python_block_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = given(page, tmp_path)
    for _, text in BLOCK.findall(page.read_text()):
        source = textwrap.dedent(text)
        code = compile(source, page.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        result = eval(code, names)  # noqa: S307  our own page
        if inspect.iscoroutine(result):
            asyncio.run(result)


def test_there_are_many_of_them() -> None:
    assert len(PAGES) >= 12
