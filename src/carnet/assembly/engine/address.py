"""Where an engine listens: at an address, or at a file that its owner alone may open.

Law 1. The file of a socket is made with its mode, 0600, and never has another. It stands in its
       place when it is bound, and is removed at the stop, if it is ours still.
Law 2. A file that somebody listens at is not taken from them, and one that is no socket not at all.
"""

import contextlib
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from carnet.assembly.sockets import Sockets, bound, listen
from carnet.config import Settings
from carnet.config.engine import IN_PROCESS, UNIX
from carnet.config.settings import local_url
from carnet.errors import ConfigInvalid
from carnet.http.server import BACKLOG

_KEY: Final = "engine.listen"
_LONGEST_PATH: Final = 107  # bytes that the kernel takes
_OTHERS: Final = 0o177  # what is taken from the mode of the file


@contextlib.contextmanager
def engine_bound(settings: Settings, *, fd: int | None = None) -> Iterator[tuple[str, Sockets]]:
    """The sockets that an engine listens on, or the inherited one; and where that is."""
    file = settings.engine.socket(settings.base)
    if file is not None and fd is None:
        with _bound_file(file) as made:
            yield f"{UNIX}{file}", [made]
        return
    with bound(settings if fd is not None else _address(settings), fd=fd) as (real, sockets):
        yield local_url(real.gateway.host, real.gateway.port), sockets


def engine_listen(sockets: Sockets) -> None:
    """Begin to listen: callers may come."""
    for each in sockets:
        if each.family == socket.AF_UNIX:
            each.listen(BACKLOG)
        else:
            listen([each])


def _address(settings: Settings) -> Settings:
    """The settings with the address of the engine in the place of the gateway's."""
    if settings.engine.listen == IN_PROCESS:
        reason = "is 'inprocess'; name an address, such as 'http://127.0.0.1:8701', to serve it at"
        raise ConfigInvalid(key=_KEY, reason=reason)
    parts = urlsplit(settings.engine.listen)
    return settings.listening_at(parts.hostname, parts.port)


@contextlib.contextmanager
def _bound_file(path: Path) -> Iterator[socket.socket]:
    """A socket that is bound to a file, for as long as it is there."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    if len(os.fsencode(draft)) > _LONGEST_PATH:
        reason = f"{path} is too long for the file of a socket; choose a shorter one"
        raise ConfigInvalid(key=_KEY, reason=reason)
    _refuse_taken(path)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        number = _bind(made, draft, path)
        try:
            yield made
        finally:
            with contextlib.suppress(OSError):
                if path.stat().st_ino == number:  # not that of an engine which began since
                    path.unlink()
    finally:
        made.close()


def _bind(made: socket.socket, draft: Path, path: Path) -> int:
    """Bind to a file beside the path, and move it there; the number of that file."""
    mask = os.umask(_OTHERS)
    try:
        draft.unlink(missing_ok=True)
        made.bind(str(draft))
        number = draft.stat().st_ino
        draft.replace(path)
    except OSError as error:
        reason = f"nobody can listen at {path} ({error.strerror})"
        raise ConfigInvalid(key=_KEY, reason=reason) from None
    finally:
        os.umask(mask)
    return number


def _refuse_taken(path: Path) -> None:
    """Refuse a file that somebody else needs; the socket of a dead engine is replaced."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise ConfigInvalid(key=_KEY, reason=f"{path} is a file, and no socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
            asking.settimeout(0)  # one that has too much to do is there as well
            asking.connect(str(path))
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
        return  # nobody does
    except OSError:
        pass  # somebody may, whom we cannot ask
    raise ConfigInvalid(key=_KEY, reason=f"another engine listens at {path}; stop it first")
