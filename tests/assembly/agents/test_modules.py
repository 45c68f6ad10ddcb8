"""The user's own modules: imported anew, all of them or none."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from carnet.assembly.agents.functions import load
from carnet.assembly.agents.modules import imported_anew, own_files, own_modules
from carnet.errors import ConfigInvalid

NAMES = {"reload_agents", "reload_part", "reload_new"}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "reload_part.py").write_text("NUMBER = 1\n")
    (tmp_path / "reload_agents.py").write_text("import reload_part\nNUMBER = reload_part.NUMBER\n")
    path = list(sys.path)
    assert load("reload_agents:NUMBER", tmp_path, key="x") == 1
    yield tmp_path
    sys.path[:] = path
    for name in NAMES:
        sys.modules.pop(name, None)


def test_what_is_imported_anew_is_what_stands_in_the_files(folder: Path) -> None:
    """At once: within a second, and of the same length, Python takes its own copy for the same."""
    for number in range(2, 6):
        (folder / "reload_part.py").write_text(f"NUMBER = {number}\n")
        with imported_anew(folder):
            assert load("reload_agents:NUMBER", folder, key="x") == number


def test_what_cannot_be_imported_leaves_all_as_it_was(folder: Path) -> None:
    before = own_modules(folder)
    finders = list(sys.meta_path)
    (folder / "reload_new.py").write_text("NUMBER = 9\n")
    (folder / "reload_agents.py").write_text("import reload_new\nimport reload_part\n1 / 0\n")
    with pytest.raises(ConfigInvalid, match=r"line 3 of reload_agents\.py"), imported_anew(folder):
        load("reload_agents:NUMBER", folder, key="x")
    assert own_modules(folder) == before
    assert not NAMES - {"reload_new"} - before.keys()
    assert "reload_new" not in sys.modules
    assert sys.meta_path == finders


def test_installed_packages_and_carnet_itself_are_not_the_users(folder: Path) -> None:
    assert {path.name for path in own_files(folder)} == {"reload_agents.py", "reload_part.py"}
    root = Path(sys.modules["carnet"].__file__ or "").parents[2]
    assert "carnet" not in own_modules(root)
    assert "pytest" not in own_modules(Path("/"))


def test_where_it_went_wrong_is_never_told_as_a_line_of_carnet(folder: Path) -> None:
    """In a checkout Carnet lies below the folder of carnet.toml; a mistake is the user's."""
    (folder / "reload_agents.py").write_text("def broken(:\n")
    root = Path(sys.modules["carnet"].__file__ or "").parents[2]
    with pytest.raises(ConfigInvalid) as refused, imported_anew(folder):
        load("reload_agents:NUMBER", root, key="x")
    assert "modules.py" not in str(refused.value)
    assert "reload_agents.py, line 1" in str(refused.value)
