"""The lock file beside a database: one gateway at a time.

The lock is the kernel's and goes with its process, however that ends; the file itself stays.

Law. A child that was forked does not hold it: who outlives a gateway keeps no other one out.
"""

import fcntl
import os
from pathlib import Path
from typing import Final

from carnet.errors import ConfigInvalid, UsageInvalid

_held: Final[set[int]] = set()  # descriptors of the locks of this process


def _forget() -> None:
    for each in _held:
        os.close(each)  # the lock itself is our parent's, who has it open too
    _held.clear()


os.register_at_fork(after_in_child=_forget)


class Lock:
    """Held from `take` until `release`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def take(cls, database: Path) -> "Lock":
        """Lock a database for this process, or say who has it."""
        path = database.with_name(database.name + ".lock")
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigInvalid(
                key="[store] url",
                reason=f"{path} cannot be written ({error.strerror});"
                " give this user the right to its folder",
            ) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.write(descriptor, b"%d\n" % os.getpid())
        except BlockingIOError:
            holder = os.read(descriptor, 20).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise UsageInvalid(
                reason=f"Another gateway (process {holder}) is using {database}.",
                fix="Stop it first, or give this gateway a database of its own in [store] url.",
            ) from None
        except OSError:
            os.close(descriptor)
            raise
        _held.add(descriptor)
        return cls(descriptor)

    def release(self) -> None:
        if self._descriptor in _held:
            _held.discard(self._descriptor)
            os.close(self._descriptor)
        self._descriptor = -1
