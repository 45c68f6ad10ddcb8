"""Where the files of tests are: in memory, if this machine has a folder there with enough room.

Most of what a store does in a test is to wait for a disk, and no test is about one: what is killed
is a process, and what is full is a limit. `TMPDIR=/somewhere pytest` puts them there instead.

Law. Where they are changes how long a run takes and nothing else. What passed is removed at once.
"""

import os
import tempfile
from pathlib import Path
from typing import Final

SHARED: Final = Path("/dev/shm")  # noqa: S108  as tempfile would, for one owner alone
ROOM: Final = 4 << 30  # a whole run needs less than one of these four


def has_room(folder: Path) -> bool:
    """Whether much can be kept in it, and what is kept can be run."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    runs = not found.f_flag & os.ST_NOEXEC
    return runs and os.access(folder, os.W_OK) and found.f_bavail * found.f_frsize >= ROOM


def use(folder: Path = SHARED) -> None:
    """Put what this process and those of it make for a while there, unless somebody said where."""
    if "TMPDIR" not in os.environ and has_room(folder):
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
