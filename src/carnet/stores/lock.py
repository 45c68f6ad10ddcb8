"""The lock file beside a database: one gateway at a time.

The lock is the kernel's and goes with its process, however that ends; the file itself stays.

The writer of one dialogue holds such a file too, which goes when the writer lets go of it.

Law. A child that was forked does not hold it: who outlives a gateway keeps no other one out.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

from carnet.errors import ConfigInvalid, InProgress, UsageInvalid

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


class RunLock:
    """Held by the one who writes something of a database, from `hold` until `release`."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._path = path

    @classmethod
    def hold(cls, database: Path, name: str) -> "RunLock":
        """Lock what has this name for its only writer, or raise InProgress."""
        folder = database.with_name(database.name + ".locks")
        path = folder / sha256(name.encode()).hexdigest()[:32]
        while True:
            folder.mkdir(mode=0o700, exist_ok=True)
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except FileNotFoundError:  # whoever was the last in the folder has just taken it away
                continue
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(descriptor)
                if not isinstance(error, BlockingIOError):
                    raise
                raise InProgress("somebody else writes it") from None
            if _is_file(descriptor, path):
                _held.add(descriptor)
                return cls(descriptor, path)
            os.close(descriptor)  # whoever held it has just taken it away

    @classmethod
    @contextlib.contextmanager
    def held(cls, database: Path, name: str) -> Iterator[None]:
        """The same for as long as a block lasts."""
        lock = cls.hold(database, name)
        try:
            yield
        finally:
            lock.release()

    def release(self) -> None:
        """Let the next one write."""
        if self._descriptor in _held:
            self._path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # others are in it
                self._path.parent.rmdir()
            _held.discard(self._descriptor)
            os.close(self._descriptor)
        self._descriptor = -1


def _is_file(descriptor: int, path: Path) -> bool:
    """Whether a file that was opened is the one that stands there now."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
