"""What the page about testing shows is run as it stands."""

from pathlib import Path
from typing import Any

from tests.docs.test_quickstart import ROOT, blocks_of

PAGE = ROOT / "docs" / "testing.md"


def test_its_examples_pass(tmp_path: Path) -> None:
    scene: dict[str, Any] = {"__name__": "testing_page"}
    for block in blocks_of(PAGE):
        if block.language == "python":
            exec(block.text, scene)  # noqa: S102  our own page
    tests = {name: each for name, each in scene.items() if name.startswith("test_")}
    assert len(tests) == 2
    for name, each in tests.items():
        each(tmp_path / name)
