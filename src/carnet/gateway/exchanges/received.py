"""How a turn was asked for."""

from typing import Any

from carnet.core.chain.grounds import TANGLE, Grounds
from carnet.core.chain.turn import Turn

Page = dict[str, Any]


def wire_page(turn: Turn, grounds: Grounds) -> Page:
    """In which dialect, by which path, with which of our headers, and what of it was signed.

    No credential and no signature is kept, so none is told; nor are other headers.
    """
    brought = [name for bit, name in enumerate(TANGLE) if grounds.tangle >> bit & 1]
    return {
        "dialect": turn.dialect or None,  # None: it was made in process
        "path": grounds.path.decode("latin-1") or None,
        "by": grounds.by,
        "sender": grounds.sender,
        "key": grounds.key,
        "has_document": grounds.document,
        "tangle": brought,
        "base": grounds.base.decode("latin-1") or None,
    }
