"""Whose a configuration is: what it names runs with the rights of whoever uses it.

Law. Where somebody else could have written it, and it would run as root or anybody may write it, it
     is refused, with the reason. Who knows better says so: `--trust-owner`, as in a container
     whose files belong to another number.
"""

import os
import stat
from pathlib import Path
from typing import Final

from carnet.errors import ConfigInvalid

ROOT: Final = 0
OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


def refuse_foreign(path: Path) -> None:
    """Refuse a file, or a folder, of somebody who is neither we nor root."""
    we = os.geteuid()
    try:
        looks = [path.lstat(), path.stat()]  # a link has an owner too
    except OSError:  # whoever needs it says what is wrong
        return
    for look in looks:
        is_link = stat.S_ISLNK(look.st_mode)  # the mode of a link says nothing
        is_open = not is_link and bool(look.st_mode & OTHERS_WRITE)
        if look.st_uid not in {we, ROOT} and (we == ROOT or is_open):
            raise ConfigInvalid(key=str(path), reason=_why(look.st_uid, is_root=we == ROOT))


def _why(owner: int, *, is_root: bool) -> str:
    danger = "what it names would run as root" if is_root else "others than its owner may write it"
    return (
        f"belongs to user {owner}, who is neither you nor root, and {danger}. "
        "Use it as its owner, give it to yourself, or say that you trust it: --trust-owner"
    )
