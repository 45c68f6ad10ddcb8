"""The sockets a gateway listens on: bound once, before anything is opened, and kept.

Law 1. What is bound is what listens. Nothing is tried, closed and hoped for again, so a port that
       was free when we looked cannot be somebody else's when we listen.
Law 2. The address in the settings of a running gateway is the real one: of port 0, the port that
       the system chose; of an inherited socket, where that is bound.
"""

import contextlib
import errno
import socket
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from carnet.config import Settings
from carnet.errors import ConfigInvalid
from carnet.http.server import BACKLOG

Sockets = list[socket.socket]

MOST_ATTEMPTS: Final = 16  # of letting the system choose a port


@contextlib.contextmanager
def bound(settings: Settings, *, fd: int | None = None) -> Iterator[tuple[Settings, Sockets]]:
    """The sockets of a configuration, or the inherited one; and the settings with their address."""
    sockets = _bind(settings) if fd is None else [_inherited(fd)]
    try:
        host, port = sockets[0].getsockname()[:2]
        yield settings.listening_at(None if fd is None else host, port), sockets
    finally:
        _close(sockets)


def listen(sockets: Iterable[socket.socket]) -> None:
    """Begin to listen: callers may come."""
    for each in sockets:
        host, port = each.getsockname()[:2]
        try:
            # Of an inherited one: connections of who listened before us may be there still.
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            each.listen(BACKLOG)
        except OSError as error:
            raise _refused(error, host, port) from None


def _bind(settings: Settings) -> Sockets:
    """A socket for each address of the host; all with one port.

    A port that the system chose for the first of them may be taken at the next: then it chooses
    another.
    """
    host, port = settings.gateway.host, settings.gateway.port
    attempts = 1 if port else MOST_ATTEMPTS
    while True:
        attempts -= 1
        try:
            return _bind_all(host, port)
        except OSError as error:
            if not attempts or error.errno != errno.EADDRINUSE:
                if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
                    raise _unknown_host(settings, error.strerror or "unknown") from None
                raise _refused(error, host, port) from None
        except UnicodeError:  # what can be no name of a host
            raise _unknown_host(settings, "it is no name") from None


def _unknown_host(settings: Settings, why: str) -> ConfigInvalid:
    """A host that is none of this machine, by the name of what gave it."""
    is_option = settings.origins["gateway.host"] == "option --host"
    reason = (
        f"'{settings.gateway.host}' is no address of this machine ({why}); listen on 127.0.0.1 "
        "for callers here, on 0.0.0.0 for all"
    )
    return ConfigInvalid(key="--host" if is_option else "gateway.host", reason=reason)


def _bind_all(host: str, port: int) -> Sockets:
    sockets: Sockets = []
    try:
        for family, address in _addresses(host, port):
            each = socket.socket(family, socket.SOCK_STREAM)
            sockets.append(each)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                each.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            chosen = sockets[0].getsockname()[1]  # 0 until the first one is bound
            each.bind((address, port or chosen))
    except OSError:
        _close(sockets)
        raise
    return sockets


def _addresses(host: str, port: int) -> Sequence[tuple[socket.AddressFamily, str]]:
    """The addresses that a host has here, each once."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys((family, str(where[0])) for family, _, _, _, where in found))


def _inherited(fd: int) -> socket.socket:
    """The socket that whoever started us has bound."""
    try:
        given = socket.socket(fileno=fd)
    except OSError as error:
        raise ConfigInvalid(
            key="--fd", reason=f"{fd} is no socket that was handed down ({error.strerror})"
        ) from None
    if given.family not in {socket.AF_INET, socket.AF_INET6} or given.type != socket.SOCK_STREAM:
        given.detach()
        raise ConfigInvalid(key="--fd", reason=f"{fd} is no TCP socket")
    if not given.getsockname()[1]:
        given.detach()
        raise ConfigInvalid(key="--fd", reason=f"the socket {fd} is not bound to a port")
    given.set_inheritable(False)  # handed down to us, and not on to what an agent starts
    return given


def _close(sockets: Sockets) -> None:
    for each in sockets:
        each.close()


def _refused(error: OSError, host: str, port: int) -> ConfigInvalid:
    return ConfigInvalid(key="gateway.port", reason=_why(error, host, port))


def _why(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} on {host} is in use by another program; stop it, or use another port: "
            f"carnet serve --port {port + 1}"
        )
    if error.errno == errno.EACCES:
        return f"this user may not listen on port {port}; use one above 1023"
    return f"cannot listen on {host}:{port} ({error.strerror})"
