"""How deep a chain may be that a program without a gateway answers or begins."""

import os
from typing import Final

from carnet.config.file import DEPTH_VARIABLE
from carnet.config.readers import Wrong, whole
from carnet.config.settings import MOST_DEPTH
from carnet.errors import ConfigInvalid

_DEPTH: Final = whole(1, MOST_DEPTH)


def first_refused(given: int) -> int:
    """The first depth that is refused; the environment has the last word (R2)."""
    if given < 1:
        raise ValueError("max_depth is at least 1")
    text = os.environ.get(DEPTH_VARIABLE)
    if text is None:
        return given
    try:
        depth: int = _DEPTH.read_text(text)
    except Wrong as wrong:
        raise ConfigInvalid(key=DEPTH_VARIABLE, reason=str(wrong)) from None
    return depth
