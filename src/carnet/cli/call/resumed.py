"""Runs of a journal of conversations, by the names that people give them (R55).

Law. Nothing is begun under the name of a run that is not there, and no journal is made to look.
"""

from pathlib import Path
from typing import Final

from carnet.cli.invocation import find_begun
from carnet.errors import UsageInvalid

LAST: Final = "last"  # the newest run
MOST_SHOWN: Final = 5
_SQLITE: Final = "sqlite:"


async def find_resumed(journal: str, named: str) -> str:
    """The id of a run: itself, the only one that begins so, or the newest."""
    from carnet.assembly.dialogue.driver import ConversationJournal

    file = _kept_in(journal)
    async with ConversationJournal(journal) as opened:
        begun = await opened.begun("" if named == LAST else named)
        if named in begun or (named == LAST and begun):
            return named if named in begun else begun[0]
        found = find_begun(named, begun, "run") if named else None
        if found is not None:
            return found
        newest = await opened.begun()
    if not newest:
        raise UsageInvalid(reason=f"No run was begun in {file}.", fix="Begin without --resume.")
    shown = f"{', '.join(newest[:MOST_SHOWN])}{', ...' if newest[MOST_SHOWN:] else ''}"
    raise UsageInvalid(
        reason=f"{file} has no run '{named}'.", fix=f"The newest first: {shown}; or --resume last"
    )


def _kept_in(journal: str) -> Path:
    """The file of a journal, if that is there."""
    file = Path(journal.removeprefix(_SQLITE))
    if journal.startswith(_SQLITE) and not file.exists():
        raise UsageInvalid(
            reason=f"There is no journal {file}, so nothing was begun that could go on.",
            fix="Begin without --resume, or name the journal: --journal sqlite:FILE",
        )
    return file
