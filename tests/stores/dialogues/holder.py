"""Holds a run in a process of its own, until it is killed."""

import asyncio
import sys
from pathlib import Path

from carnet.stores.open import open_journal


async def hold(folder: Path) -> None:
    journal = await open_journal("sqlite:j.db", base=folder)
    async with journal.hold("r", "", ""):
        sys.stdout.write("held\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(hold(Path(sys.argv[1])))
