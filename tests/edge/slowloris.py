"""`make slowloris`: two thousand slow connections, and what a healthy caller notices of them (A50).

A third says nothing, a third drips a head and a third a body, a byte each second. It prints how
long a call takes without them and among them, and when the last of them was gone. It is no test:
figures of a machine that does other things too say nothing.
"""

import http.client
import select
import socket
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

from tests.edge.wire import CHAT, HEAD
from tests.support.http import chat_body
from tests.support.organisation import Organisation
from tests.support.served import AGENTS, CONFIG

CALLS = 3000
GONE_SECONDS = 12.0  # ten for a head, and the sweep
FIRST = (b"", b"GET / HTTP/1.1\r\n" + HEAD + b"X-A: ", CHAT + b"content-length: 9999\r\n\r\n")


class Slow:
    """The slow connections, and a thread that drips into them until they are closed."""

    def __init__(self, port: int, number: int) -> None:
        self.sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(number)]
        self.began = time.monotonic()
        self.gone_after = 0.0
        for index, connection in enumerate(self.sockets):
            connection.sendall(FIRST[index % 3])
        self._thread = threading.Thread(target=self._drip, daemon=True)
        self._thread.start()

    def _drip(self) -> None:
        poll = select.poll()
        open_ones = {connection.fileno(): connection for connection in self.sockets}
        kinds = {connection.fileno(): n % 3 for n, connection in enumerate(self.sockets)}
        for number in open_ones:
            poll.register(number, select.POLLIN | select.POLLHUP)
        while open_ones:
            for number, _ in poll.poll(1000):
                if not _received(open_ones[number]):
                    poll.unregister(number)
                    open_ones.pop(number).close()
                    self.gone_after = time.monotonic() - self.began
            for number, connection in open_ones.items():
                if kinds[number]:
                    with suppress(OSError):
                        connection.send(b"a")

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()


def _received(connection: socket.socket) -> bytes:
    with suppress(OSError):
        return connection.recv(65_536)
    return b""


def timed_calls(gateway: Organisation, number: int) -> list[float]:
    """How long each of so many calls took, one after the other."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    fields = {"authorization": f"Bearer {gateway.token}", "content-type": "application/json"}
    took = []
    for _ in range(number):
        began = time.perf_counter()
        connection.request("POST", "/v1/chat/completions", chat_body("hi"), fields)
        response = connection.getresponse()
        response.read()
        assert response.status == 200
        took.append(time.perf_counter() - began)
    connection.close()
    return sorted(took)


def tell(name: str, took: list[float]) -> None:
    """One line of figures."""
    p50, p99 = (1000 * took[int(len(took) * part)] for part in (0.5, 0.99))
    sys.stdout.write(f"{name:<28} p50 {p50:7.2f} ms   p99 {p99:7.2f} ms\n")


def main(number: int) -> int:
    """Measure; 1 if a slow connection was still there when it should have been gone."""
    with tempfile.TemporaryDirectory() as folder:
        gateway = Organisation(Path(folder), "slow.example")
        gateway.configure(CONFIG, agents=AGENTS)
        gateway.start()
        try:
            timed_calls(gateway, CALLS // 3)  # until it is warm
            baseline = timed_calls(gateway, CALLS)
            slow = Slow(gateway.port, number)
            among = timed_calls(gateway, CALLS)
            while not slow.is_over and time.monotonic() - slow.began < 3 * GONE_SECONDS:
                among += timed_calls(gateway, CALLS // 10)
        finally:
            gateway.stop()
    among.sort()
    tell("alone", baseline)
    tell(f"among {number} slow ones", among)
    ratio = among[int(len(among) * 0.99)] / baseline[int(len(baseline) * 0.99)]
    sys.stdout.write(f"p99 {ratio:.2f} times the baseline; the aim is below 2\n")
    sys.stdout.write(f"the last slow one was gone after {slow.gone_after:.1f} s\n")
    return int(not slow.is_over or slow.gone_after > GONE_SECONDS)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000))
