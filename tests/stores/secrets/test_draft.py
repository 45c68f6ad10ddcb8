"""A file that is written whole or not at all."""

import errno
import stat
from pathlib import Path

import pytest

from carnet.errors import UsageInvalid
from carnet.stores.secrets.draft import draft_of


def test_what_was_written_takes_its_place_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    with draft_of(tmp_path / "kept") as draft:
        draft.write_text("all of it")
        assert not (tmp_path / "kept").exists()
    assert (tmp_path / "kept").read_text() == "all of it"
    assert stat.S_IMODE((tmp_path / "kept").stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [tmp_path / "kept"]


def fail(draft: Path) -> None:
    draft.with_name(draft.name + "-wal").touch()
    raise KeyError


def test_what_failed_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyError), draft_of(tmp_path / "kept") as draft:
        fail(draft)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_came_meanwhile_stays(tmp_path: Path) -> None:
    with pytest.raises(UsageInvalid, match="exists"), draft_of(tmp_path / "kept"):
        (tmp_path / "kept").write_text("theirs")
    assert (tmp_path / "kept").read_text() == "theirs"


@pytest.mark.parametrize("taken", [False, True])
def test_a_file_system_without_hard_links_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, taken: bool
) -> None:
    def no_links(*_: object) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(Path, "hardlink_to", no_links)
    path = tmp_path / "kept"
    try:
        with draft_of(path) as draft:
            draft.write_text("ours")
            if taken:
                path.write_text("theirs")
    except UsageInvalid:
        assert taken
    assert path.read_text() == ("theirs" if taken else "ours")


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
def test_no_file_takes_a_place_where_a_database_has_left_its_log(tmp_path: Path, end: str) -> None:
    beside = tmp_path / f"kept{end}"
    with pytest.raises(UsageInvalid, match="belongs to"), draft_of(tmp_path / "kept"):
        beside.touch()  # it came meanwhile
    with pytest.raises(UsageInvalid, match="belongs to"), draft_of(tmp_path / "kept"):
        raise AssertionError("work was begun")
    assert list(tmp_path.iterdir()) == [beside]


def test_a_disk_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageInvalid) as caught, draft_of(tmp_path / "kept"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert "No space left on device" in caught.value.safe_text
