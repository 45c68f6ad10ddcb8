"""Killing a gateway at a point while it runs, and knowing which points it has passed.

Its agents.py ends with TRIGGER.
"""

import json
import signal
from pathlib import Path
from typing import Final

from carnet.testing.wait import until
from tests.support.organisation import Organisation

NOWHERE: Final = "nowhere"  # a plan that kills nobody
TRIGGER: Final = (Path(__file__).parents[1] / "trigger.py").read_text()


def arm(gateway: Organisation, plan: str) -> None:
    """Let it die at a point, `name` or `name:3` for the third time, as if it had been started so.

    Who is armed already is armed anew, and counts from one.
    """
    folder = gateway.folder
    (folder / "armed").write_text("")
    (folder / "crash_at").write_text(plan)
    gateway.signal(signal.SIGUSR1)
    until((folder / "armed").read_text, lambda armed: armed == plan)


def disarm(gateway: Organisation) -> None:
    """Let it live; it only notes the points that it passes from now on."""
    arm(gateway, NOWHERE)


def points_of(gateway: Organisation) -> set[str]:
    """The points that are written down."""
    path = gateway.folder / "points.json"
    return set(json.loads(path.read_text())) if path.exists() else set()


def passed(gateway: Organisation) -> set[str]:
    """The points that it has passed since it was armed."""
    (gateway.folder / "points.json").unlink(missing_ok=True)
    disarm(gateway)
    return points_of(gateway)
