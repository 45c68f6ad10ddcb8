"""The reference pages say what the program does."""

from pathlib import Path

import pytest

from carnet.config.settings import FAMILIES, SECTIONS
from tests.docs.tables import DOCS, PAGES, filled


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_tables_of_a_reference_are_made_of_what_they_describe(path: Path) -> None:
    page = path.read_text()
    assert filled(page) == page, "run: .venv/bin/python -m tests.docs.tables"


def test_every_section_of_the_configuration_has_its_table() -> None:
    page = (DOCS / "configuration.md").read_text()
    for name in SECTIONS | FAMILIES:
        assert f"<!-- table {name} -->" in page
