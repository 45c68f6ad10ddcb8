"""A port of this machine that a test owns, whether anybody listens there or not.

Law. From the beginning to `close` nobody else gets the port, also not between the end of one
     process that listened there and the start of the next. To listen on it, a process is handed
     the socket: `carnet serve --fd N`. One that comes after another allows reuse before it
     listens, as gateways do: connections of the one before may be there still.
"""

import socket
import weakref
from typing import Self

HOST = "127.0.0.1"
REUSE = (socket.SOL_SOCKET, socket.SO_REUSEADDR)


class Address:
    """A port that is ours; nobody listens there until a process that was handed it does."""

    def __init__(self) -> None:
        self._socket = _bound()
        weakref.finalize(self, self._socket.close)
        self.port = int(self._socket.getsockname()[1])
        self.url = f"http://{HOST}:{self.port}"

    @property
    def fd(self) -> int:
        """The descriptor to hand down."""
        return self._socket.fileno()

    def listen(self) -> None:
        """Listen already, for a program that is handed a listening socket: callers wait for it."""
        self._socket.setsockopt(*REUSE, 1)
        self._socket.listen()

    def shut(self) -> None:
        """Nobody listens any more: who calls is refused at once. The port stays ours."""
        # One that has never listened would be shut for good.
        if self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            self._socket.shutdown(socket.SHUT_RDWR)
        # Who begins to listen on it allows reuse, for the connections of the one before. Without,
        # no program of the same kind can take the port meanwhile.
        self._socket.setsockopt(*REUSE, 0)

    def close(self) -> None:
        """Give it up."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _bound() -> socket.socket:
    """A socket that is bound by number to a port the system has chosen.

    A port that the system chose is given back when a socket stops listening; one that was asked for
    by its number is kept. So it is chosen first and asked for then; if somebody took it in between,
    which `bind` tells, another one is chosen.
    """
    while True:
        with socket.socket() as chosen:
            chosen.bind((HOST, 0))
            where = chosen.getsockname()
        held = socket.socket()
        try:
            held.bind(where)
        except OSError:
            held.close()
        else:
            return held
