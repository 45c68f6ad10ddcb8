"""Whose a file is decides whether what it names may run."""

import os
from pathlib import Path

import pytest

from carnet.config import refuse_foreign
from carnet.errors import ConfigInvalid

SOMEBODY = 4242
NOBODY = 65_534


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that belongs to neither us nor root."""
    path = tmp_path / "carnet.toml"
    path.touch()
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)
    monkeypatch.setattr(os, "geteuid", lambda: SOMEBODY)
    return path


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_a_foreign_file_that_others_may_write_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(ConfigInvalid, match="others than its owner may write it"):
        refuse_foreign(file)


@pytest.mark.parametrize("mode", [0o644, 0o600])
def test_a_foreign_file_that_its_owner_alone_writes_may_be_looked_at(file: Path, mode: int) -> None:
    file.chmod(mode)
    refuse_foreign(file)


def test_our_own_file_may_have_any_mode(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.chmod(0o666)
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid)
    refuse_foreign(file)


def test_what_is_not_there_is_told_by_who_needs_it(file: Path) -> None:
    refuse_foreign(file.with_name("no such file"))
