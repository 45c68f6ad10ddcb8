"""Through how many files a request walks: counted at a real gateway, with a bound that goes down.

Whoever follows a call through the code opens these files. A change that makes the way longer is
seen here.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

# Files, and switches of room. Lower them when a change has made a way shorter.
BOUNDS = {"token call": (44, 20), "signed echo": (64, 29), "signed hop": (79, 34)}


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    out = tmp_path_factory.mktemp("walk") / "walk.json"
    command = [sys.executable, "-m", "bench.walk", str(out)]
    done = subprocess.run(  # noqa: S603  our own command
        command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(out.read_text())
    return found


@pytest.mark.parametrize("name", BOUNDS)
def test_a_request_walks_through_no_more_files_and_rooms_than_it_may(
    walked: dict[str, dict[str, Any]], name: str
) -> None:
    files, switches = BOUNDS[name]
    hint = "make bench ARGS='walk --by file' shows them in their order"
    assert walked[name]["files"] <= files, hint
    assert walked[name]["switches"] <= switches, hint


def test_the_way_begins_at_the_server_and_leads_through_the_gate_to_an_agent(
    walked: dict[str, dict[str, Any]],
) -> None:
    for found in walked.values():
        way = found["way"]
        assert way[0].startswith("http/")
        assert {file.partition("/")[0] for file in way} >= {"guards", "stores", "runtime", "wire"}
        assert len(set(way)) == found["files"] == len(way)
