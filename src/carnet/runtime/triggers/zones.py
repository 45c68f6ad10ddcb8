"""Time zones by their names: `Europe/Berlin`, as the system's own tables of them tell."""

import re
from datetime import UTC, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from carnet.errors import InvalidRequest

FIELD: Final = "zone"
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{0,31}(?:/[A-Za-z0-9_+-]{1,32}){0,2}", re.ASCII)


def find_zone(name: str) -> tzinfo:
    """The zone of a name. UTC is always known; others as far as the system has them."""
    if name == "UTC":
        return UTC
    if _NAME.fullmatch(name) is None:
        raise InvalidRequest(FIELD, "must be a name such as Europe/Berlin")
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # not there, a folder, or no table at all
        raise InvalidRequest(
            FIELD,
            "is not known to this machine; write it as in Europe/Berlin, or install its time zones"
            " (the package tzdata)",
        ) from None
