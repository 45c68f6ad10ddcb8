"""A launcher: `python -m bench.counted SOCKET ARGUMENT...` is `carnet ARGUMENT...`, counted.

Every call of a Python function (a coroutine that goes on counts as well) and of a C function is
counted, in every thread, by the function that is called or, of a C function, that calls it. Who
connects to SOCKET and sends `n` is told how many there were, and for `w` which, in the order in
which they ran first; then they are forgotten.

Law. The thread that tells is not counted, so that asking changes nothing.
"""

import json
import socket
import sys
import threading
from collections import Counter
from operator import itemgetter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from carnet.cli.main import main

Counts = dict[str, "Counter[CodeType]"]


class Counting:
    """Calls by function; a thread writes its own counters alone."""

    def __init__(self) -> None:
        self._threads: list[Counts] = []
        self._order: dict[CodeType, None] = {}  # of all threads together

    def start(self, _: FrameType | None = None, __: str = "", ___: object = None) -> None:
        """Count in this thread from now on; given to `threading`, in each that begins."""
        counts: Counts = {"call": Counter(), "c_call": Counter()}
        self._threads.append(counts)
        order = self._order

        def note(frame: FrameType, event: str, _: Any) -> None:
            found = counts.get(event)
            if found is not None:
                found[frame.f_code] += 1
                order.setdefault(frame.f_code)

        sys.setprofile(note)

    def number(self) -> bytes:
        """How many there are, as a line."""
        counters = [found for counts in tuple(self._threads) for found in counts.values()]
        return b"%d\n" % sum(number for found in counters for number in tuple(found.values()))

    def take(self) -> bytes:
        """All of it as one line of JSON; what was counted is forgotten."""
        places = {code: place for place, code in enumerate(tuple(self._order))}
        last = len(places)  # who runs while this is asked has no place yet
        placed = [
            (places.get(code, last), kind, code, number)
            for counts in tuple(self._threads)
            for kind, found in counts.items()
            for code, number in tuple(found.items())
        ]
        placed.sort(key=itemgetter(0))
        rows = [(kind, code.co_filename, code.co_qualname, n) for _, kind, code, n in placed]
        for counts in tuple(self._threads):
            for found in counts.values():
                found.clear()
        self._order.clear()
        return json.dumps(rows).encode() + b"\n"


def tell(counting: Counting, listener: socket.socket) -> None:
    """Answer whoever asks."""
    while True:
        line, _ = listener.accept()
        with line:
            while asked := line.recv(1):
                line.sendall(counting.take() if asked == b"w" else counting.number())


if __name__ == "__main__":
    address = Path(sys.argv[1])
    sys.argv = ["carnet", *sys.argv[2:]]
    own = Counting()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(address))
    listener.listen()
    threading.Thread(target=tell, args=(own, listener), daemon=True).start()
    threading.setprofile(own.start)
    own.start()
    main()
