"""Folders and files: a stranger finds one by the noun in mind, and a test by the file it is of."""

import re
from collections import Counter
from pathlib import Path

from tests.architecture.tree import PACKAGE, ROOT, name_of, package_modules

TESTS = ROOT / "tests"
MAX_FILES = 12  # modules of one folder; an `__init__` opens it and is not counted

# Rooms whose tests mirror the files of the package. The other folders of tests are about all of it.
ROOMS = (
    *("core", "wire", "guards", "stores", "runtime", "http", "gateway", "cli", "config"),
    *("assembly", "engine", "auth", "console"),
)

# Names that end in -ing and are the field's own: nouns, and the adjective of a wrapper. No word
# ends so by chance but keyring.
FIELD_WORDS = {"routing", "signing", "recording", "testing", "keyring", "retrying"}


def files_of(folder: Path) -> set[str]:
    """The stems of the modules in a folder."""
    return {path.stem for path in folder.glob("*.py")}


def is_named_after_a_file(test: Path) -> bool:
    """Whether a test lies where its file lies and is named after it.

    `tests/a/test_x.py` and `tests/a/test_x_what.py` are of `a/x.py`; a folder `tests/a/x/` holds
    the tests of `a/x.py`, whatever they are called.
    """
    mirrored = PACKAGE / test.parent.relative_to(TESTS)
    if not mirrored.is_dir():
        return mirrored.with_suffix(".py").is_file()
    name = test.stem.removeprefix("test_")
    return any(name == stem or name.startswith(f"{stem}_") for stem in files_of(mirrored))


def test_a_folder_holds_at_most_twelve_files() -> None:
    files = (*package_modules(), *TESTS.rglob("*.py"))
    counted = Counter(name_of(path.parent) for path in files if path.stem != "__init__")
    assert {folder: n for folder, n in counted.items() if n > MAX_FILES} == {}


def test_a_test_of_a_room_is_named_after_a_file_of_it() -> None:
    tests = (test for room in ROOMS for test in sorted((TESTS / room).rglob("test_*.py")))
    assert [name_of(test) for test in tests if not is_named_after_a_file(test)] == []


def test_no_file_is_named_with_a_gerund_that_is_not_the_fields_own() -> None:
    names = {name for path in package_modules() for name in (path.stem, path.parent.name)}
    gerunds = {name for name in names if re.search(r"ing(_|$)", name)}
    assert gerunds - FIELD_WORDS == set()
    assert FIELD_WORDS - gerunds == set()  # a word leaves the list with its file
