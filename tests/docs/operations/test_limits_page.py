"""The page about limits says what the code says."""

import re

import msgspec

from carnet.config import Limits
from carnet.errors import BY_CODE
from tests.docs.test_quickstart import ROOT

PAGE = ROOT / "docs" / "operations" / "limits.md"


def rows() -> dict[str, list[str]]:
    """The table of limits: name, then its other cells."""
    lines = (line.strip("|").split("|") for line in PAGE.read_text().splitlines())
    cells = ([cell.strip() for cell in line] for line in lines if len(line) == 4)
    return {name.strip("`"): rest for name, *rest in cells if name.startswith("`")}


def test_every_limit_is_on_the_page_with_its_default() -> None:
    defaults = {
        name: None if cells[0] == "not set" else float(cells[0]) for name, cells in rows().items()
    }
    assert defaults == {field.name: field.default for field in msgspec.structs.fields(Limits)}


def test_every_code_on_the_page_exists_with_that_status() -> None:
    for name, (_, _, what) in rows().items():
        named = re.findall(r"(\d{3}) `(\w+)`", what)
        assert named or name in {
            "write_stall_seconds",
            "retries",
            "tasks",
            "tasks_per_agent",
            "memory_versions",
        }
        assert [(int(status), BY_CODE[code].status) for status, code in named] == [
            (BY_CODE[code].status, int(status)) for status, code in named
        ]
