"""Where tests put their files."""

import tempfile
from pathlib import Path

import pytest

from tests.support import memory


def test_a_folder_has_room_if_much_can_be_kept_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "ROOM", 0)
    assert memory.has_room(tmp_path)
    assert not memory.has_room(tmp_path / "missing")
    monkeypatch.setattr(memory, "ROOM", 1 << 80)
    assert not memory.has_room(tmp_path)


def test_files_are_put_where_somebody_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "ROOM", 0)
    monkeypatch.setattr(tempfile, "tempdir", "before")
    monkeypatch.setenv("TMPDIR", "said")
    memory.use(tmp_path)
    assert tempfile.gettempdir() == "before"
    monkeypatch.delenv("TMPDIR")
    memory.use(tmp_path / "missing")
    assert tempfile.gettempdir() == "before"
    memory.use(tmp_path)
    assert tempfile.gettempdir() == str(tmp_path)
