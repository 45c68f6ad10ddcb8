"""A file that is written whole or not at all.

Law 1. What is written stands beside its place under another name, readable by its owner alone, and
       takes its place when it is complete and on the disk.
Law 2. A file that is there already stays, unless replacing it was asked for.
Law 3. Nothing takes a place beside which a database has left its log: SQLite would play it back
       over whatever is there.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import Final

from carnet.errors import UsageInvalid

_MODE: Final = 0o600
_NO_LINKS: Final = {errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS}  # of the file system
_BESIDE: Final = ("-wal", "-shm", "-journal")  # what SQLite keeps beside a file


@contextmanager
def draft_of(path: Path, *, replaces: bool = False) -> Iterator[Path]:
    """The path to write to; when the block ends well, what is there takes the place of `path`."""
    check_place(path, replaces=replaces)
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        _clear(draft)  # of an earlier process that had our number
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE))
        yield draft
        _to_disk(draft)
        _put(draft, path, replaces=replaces)
        _to_disk(path.parent)
    except FileExistsError:
        raise _taken(path) from None
    except OSError as error:
        raise UsageInvalid(
            reason=f"{path} cannot be written: {error.strerror or error}.",
            fix="Choose another place, or make room and give this user the right to the folder.",
        ) from None
    finally:
        _clear(draft)


def check_place(path: Path, *, replaces: bool) -> None:
    """Refuse a place that cannot be written, before any work is done."""
    if not path.parent.is_dir():
        raise UsageInvalid(
            reason=f"The folder {path.parent} does not exist.",
            fix=f"Make it: mkdir -p {quote(str(path.parent))}",
        )
    if path.is_dir():
        raise UsageInvalid(reason=f"{path} is a folder.", fix=f"Name a file: {path}/carnet.db")
    if path.exists() and not replaces:
        raise _taken(path)
    for beside in (path.with_name(path.name + end) for end in _BESIDE):
        if beside.exists():
            raise UsageInvalid(
                reason=f"{beside} belongs to a database that is or was at {path}.",
                fix="Set it aside together with its database, or name another file.",
            )


def _put(draft: Path, path: Path, *, replaces: bool) -> None:
    check_place(path, replaces=replaces)
    if not replaces:
        try:
            path.hardlink_to(draft)  # unlike a rename, it fails if the file exists
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
        else:
            return
    draft.replace(path)


def _taken(path: Path) -> UsageInvalid:
    return UsageInvalid(
        reason=f"{path} exists already; it is not replaced.",
        fix="Name another file, or give --force to replace it.",
    )


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _clear(draft: Path) -> None:
    for name in (draft.name, *(draft.name + end for end in _BESIDE)):
        with suppress(OSError):
            draft.with_name(name).unlink(missing_ok=True)
