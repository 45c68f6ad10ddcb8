"""How a gateway is told where to die; the text of this module is added to a gateway's agents.py.

A gateway that is sent SIGUSR1 dies at the point that a file names, as if CRASH_AT had. From then on
it notes the points that it passes, and writes them down when it is sent the signal again; one that
was started with CARNET_NOTE_POINTS, when it stops.
"""

import atexit
import json
import os
import signal
from pathlib import Path

from carnet import faults

FOLDER = Path(__file__).parent


def arm(*_: object) -> None:
    """Die at a point from now on."""
    if faults.is_armed:
        write_points()
    plan = (FOLDER / "crash_at").read_text()
    name, *times = plan.split(":")
    faults._passed.clear()  # noqa: SLF001
    faults._crash_at, faults.is_armed = name, True  # noqa: SLF001
    faults._crash_on = float(times[0]) if times else 1.0  # noqa: SLF001
    (FOLDER / "armed").write_text(plan)


def write_points() -> None:
    """Add what was passed to what is written down."""
    path = FOLDER / "points.json"
    before = json.loads(path.read_text()) if path.exists() else []
    path.write_text(json.dumps(sorted({*before, *faults.passed()})))


signal.signal(signal.SIGUSR1, arm)
if os.environ.get("CARNET_NOTE_POINTS"):
    atexit.register(write_points)
