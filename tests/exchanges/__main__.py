"""`python -m tests.exchanges record` makes the recording anew from the code as it is."""

import sys
import tempfile
import time
from pathlib import Path

from tests.exchanges.recording import RECORDED, recorded, write


def main() -> int:
    """Record, and say how much."""
    if sys.argv[1:] != ["record"]:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    RECORDED.mkdir(exist_ok=True)
    began = time.monotonic()
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, area in recorded(Path(folder)):
            write(name, area)
            count += len(area)
            sys.stdout.write(f"{name}: {len(area)}\n")
    sys.stdout.write(f"{count} exchanges in {time.monotonic() - began:.1f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
