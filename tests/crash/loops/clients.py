"""Clients that ask again and again while a gateway is killed; a failed loop leaves none behind."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

SETTLE_SECONDS: Final = 120.0  # a generous bound for what takes a moment


class LoadClient(threading.Thread):
    """One of them: it asks on until it is to stop, and waits for its last answer."""

    def __init__(self, name: str, stop: threading.Event) -> None:
        super().__init__(name=name, daemon=True)
        self.stop_asking = stop
        self.given_up = False  # then for no answer either


@contextmanager
def asking(clients: Sequence[LoadClient]) -> Iterator[None]:
    """They ask meanwhile; afterwards all of them have been answered."""
    for client in clients:
        client.start()
    try:
        yield
        _join(clients)
        assert not any(client.is_alive() for client in clients)
    finally:  # also where the gateway never came back
        for client in clients:
            client.given_up = True
        _join(clients)


def _join(clients: Sequence[LoadClient]) -> None:
    for client in clients:
        client.stop_asking.set()
    for client in clients:
        client.join(SETTLE_SECONDS)
