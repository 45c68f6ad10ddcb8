"""Makes the recording anew, and reads the one that is kept."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.exchanges.areas import AREAS
from tests.exchanges.scene import running
from tests.exchanges.stage import Stage

RECORDED = Path(__file__).parent / "recorded"

Area = list[dict[str, Any]]


def recorded(folder: Path) -> Iterator[tuple[str, Area]]:
    """Send everything, area by area; what was written down of each."""
    with running(folder) as scene:
        literals = scene.literals()
        for name, parts in AREAS.items():
            stage = Stage(scene, literals)
            for part in parts:
                part(stage)
            yield name, stage.written


def lines(exchange: dict[str, Any]) -> list[str]:
    """One exchange as it stands in its file."""
    return json.dumps(exchange, indent=1, ensure_ascii=False).split("\n")


def write(name: str, area: Area) -> None:
    """Keep an area."""
    text = ",\n".join("\n".join(lines(exchange)) for exchange in area)
    (RECORDED / f"{name}.json").write_text(f"[\n{text}\n]\n")


def read(name: str) -> Area:
    """What is kept of an area."""
    area: Area = json.loads((RECORDED / f"{name}.json").read_text())
    return area
