"""A column of the turn costs one definition and one migration, on both stores."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import carnet
from carnet.stores.turn.row import COLUMNS
from tests.stores.support import servers
from tests.stores.support.scenes import Place

_ROOT = Path(__file__).parents[3]
_DEFINITION = (
    '    Column("mood", TEXT, begins="admitted.caller.actor.name", again="None",'
    ' ends="finish.state"),\n'
)
_MIGRATION = "ALTER TABLE turn ADD COLUMN mood TEXT;\n"


def with_one_more(tmp_path: Path) -> Path:
    """A copy of the program that differs by that definition and that migration alone."""
    package = tmp_path / "other" / "carnet"
    shutil.copytree(Path(carnet.__file__).parent, package)
    definition = package / "stores" / "turn" / "row.py"
    before, after = definition.read_text().split("COLUMNS: Final = (\n", 1)
    columns, rest = after.split("\n)\n", 1)
    definition.write_text(f"{before}COLUMNS: Final = (\n{columns}\n{_DEFINITION})\n{rest}")
    for driver in ("sqlite", "postgres"):
        (package / "stores" / "migrations" / f"9000_mood.{driver}.sql").write_text(_MIGRATION)
    return package.parent


def test_a_column_is_one_definition_and_one_migration(
    driver: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    other = with_one_more(tmp_path)
    place = Place(tmp_path, request.getfixturevalue("empty") if driver == "postgres" else "")
    scene = [sys.executable, "-m", "tests.stores.turn.column_scene", str(place.folder)]
    path = os.pathsep.join([str(other), str(_ROOT)])
    done = subprocess.run(  # noqa: S603  our own program
        scene, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "begun: token:alice",
        "ended: failed",
        "copied: failed",
        "again: None",
    ]


@pytest.mark.usefixtures("store")
async def test_the_definition_is_the_table_as_it_is(place: Place) -> None:
    if place.postgres:
        found = servers.rows(
            place.postgres,
            "SELECT column_name, data_type FROM information_schema.columns"
            " WHERE table_schema = current_schema() AND table_name = 'turn'",
        )
        types = {"bigint": "BIGINT", "text": "TEXT", "bytea": "BYTEA"}
    else:
        found = place.rows("SELECT name, type FROM pragma_table_info('turn')")
        types = {"INTEGER": "BIGINT", "TEXT": "TEXT", "BLOB": "BYTEA"}
    assert {name: types[kind] for name, kind in found} == {c.name: c.type for c in COLUMNS}
