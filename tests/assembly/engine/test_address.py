"""Where an engine listens: the file of a socket is its owner's, and nobody else's is taken."""

import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from carnet.assembly.engine.address import engine_bound, engine_listen
from carnet.config import Settings, load
from carnet.errors import ConfigInvalid

CONFIG = """
[agents.echo]
kind = "python"
target = "agents:echo"

[engine]
listen = "{listen}"
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path: the file of a socket has no longer one."""
    with TemporaryDirectory(prefix="carnet-") as name:
        yield Path(name)


def settings(folder: Path, listen: str) -> Settings:
    file = folder / "carnet.toml"
    file.write_text(CONFIG.format(listen=listen))
    return load(file, {})


def test_an_address_is_asked_as_it_stands_and_a_file_by_a_name_that_nobody_has(
    folder: Path,
) -> None:
    plain = settings(folder, "http://127.0.0.1:8701").engine
    assert (plain.asked_at, plain.sockets(folder)) == ("http://127.0.0.1:8701", {})
    filed = settings(folder, "unix:e.sock").engine
    assert filed.asked_at == "http://engine.invalid"
    assert filed.sockets(folder) == {"engine.invalid": str(folder / "e.sock")}


def test_the_file_is_its_owners_and_goes_with_it(folder: Path) -> None:
    file = folder / "e.sock"
    with engine_bound(settings(folder, "unix:e.sock")) as (where, sockets):
        assert where == f"unix:{file}"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        engine_listen(sockets)
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(file))
    assert list(folder.iterdir()) == [folder / "carnet.toml"]


def test_the_file_of_a_dead_engine_is_replaced_and_that_of_a_live_one_is_not(folder: Path) -> None:
    configured = settings(folder, "unix:e.sock")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(folder / "e.sock"))
    with engine_bound(configured) as (_, sockets):
        engine_listen(sockets)
        with pytest.raises(ConfigInvalid, match="another engine"), engine_bound(configured):
            pass
        assert (folder / "e.sock").exists()


def test_one_that_is_too_busy_to_be_asked_is_left(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as busy, socket.socket(socket.AF_UNIX) as waiting:
        busy.bind(str(folder / "e.sock"))
        busy.listen(0)
        waiting.connect(str(folder / "e.sock"))  # and nobody else can
        configured = settings(folder, "unix:e.sock")
        with pytest.raises(ConfigInvalid, match="another engine"), engine_bound(configured):
            pass


def test_one_that_another_engine_has_put_there_since_is_left(folder: Path) -> None:
    file = folder / "e.sock"
    with engine_bound(settings(folder, "unix:e.sock")), socket.socket(socket.AF_UNIX) as other:
        file.unlink()
        (folder / "keeps the number of the file").write_text("")
        other.bind(str(file))
    assert file.exists()


@pytest.mark.parametrize(
    ("listen", "says"),
    [
        ("inprocess", "name an address"),
        ("unix:carnet.toml", "is a file, and no socket"),
        ("unix:nowhere/e.sock", "nobody can listen"),
        (f"unix:{'x' * 120}", "too long"),
    ],
)
def test_where_nobody_can_listen_that_is_told(folder: Path, listen: str, says: str) -> None:
    configured = settings(folder, listen)
    with pytest.raises(ConfigInvalid, match=says), engine_bound(configured):
        pass
    assert (folder / "carnet.toml").is_file()


def test_what_is_no_place_is_refused(folder: Path) -> None:
    for listen in ("unix:", "http://127.0.0.1", "tcp:1"):
        with pytest.raises(ConfigInvalid, match="engine"):
            settings(folder, listen)
