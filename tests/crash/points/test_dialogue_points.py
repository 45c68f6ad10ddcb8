"""kill -9 of a driver without a gateway, before and after everything that it keeps.

What was acknowledged is never spoken again, what was not is spoken once more under its id, and the
transcript and what it cost are those of a driver that nobody killed.
"""

import asyncio
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.crash.points.dialogue_driver import RESULT, SPOKEN, drive
from tests.support.commands import speaking

POINTS = ("dialogue.before_keep", "dialogue.kept")
# Kept of the run and of the three within it: the beginning, two of each turn, the end.
EVENTS = (1 + 6 * 2 + 1) + 3 * (1 + 2 * 2 + 1)
KILLED = -signal.SIGKILL


def kill(folder: Path, point: str) -> int:
    """Drive in a process of its own that dies at a point; how it ended."""
    module = "tests.crash.points.dialogue_driver"
    with speaking(module, str(folder), env={"CRASH_AT": point}) as (process, _):
        return process.wait(60)


def result_of(folder: Path) -> dict[str, Any]:
    """What a run came to, but for when, and how many attempts it took."""
    result: dict[str, Any] = msgspec.json.decode((folder / RESULT).read_bytes())
    turns = [{**turn, "attempts": 0, "started": 0, "ended": 0} for turn in result["transcript"]]
    return {"turns": turns, "spent": result["spent"], "halted": result["halted"]}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[str]]:
    """The same run, killed by nobody."""
    folder = tmp_path_factory.mktemp("whole")
    asyncio.run(drive(folder))
    return result_of(folder), (folder / SPOKEN).read_text().split()


def repeated(folder: Path, once: list[str]) -> list[str]:
    """The turns that were spoken more than once; all were at least once."""
    spoken = Counter((folder / SPOKEN).read_text().split())
    assert spoken.keys() == set(once)
    return [turn for turn, times in spoken.items() if times > 1]


@pytest.mark.parametrize("point", POINTS)
def test_a_driver_survives_a_kill_at_every(
    point: str, whole: tuple[dict[str, Any], list[str]], tmp_path: Path
) -> None:
    result, once = whole
    for place in range(1, EVENTS + 1):
        folder = tmp_path / str(place)
        folder.mkdir()
        assert kill(folder, f"{point}:{place}") == KILLED
        asyncio.run(drive(folder))
        assert result_of(folder) == result
        assert len(repeated(folder, once)) <= 1  # the one that nobody had acknowledged
    folder = tmp_path / "beyond"
    folder.mkdir()
    assert kill(folder, f"{point}:{EVENTS + 1}") == 0  # there is no further one


def test_a_driver_survives_kills_in_a_row(
    whole: tuple[dict[str, Any], list[str]], tmp_path: Path
) -> None:
    result, once = whole
    kills = 0
    while kill(tmp_path, "dialogue.kept:9") == KILLED:
        kills += 1
        assert kills < EVENTS
    assert kills > 2
    assert result_of(tmp_path) == result
    repeated(tmp_path, once)
