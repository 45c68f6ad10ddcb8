"""How many Python and C functions a request calls: the budget that has no noise.

`make bench ARGS=calls` shows all of it, `python -m bench.calls FILE` writes what is exact.

Law 1. Alone is exact: one request at a time, on connections that are kept, and the next one when
       nothing is counted any more. The figure is the least that a request has: whatever else runs
       (timers, the thread that writes the log's lines together) only adds to some of them.
Law 2. Under load is an average, with what callers share: there a batch of the store is one for
       many of them. It varies by a percent or two from run to run.
Law 3. What takes a task that has ended out of asyncio's list of them is not counted: whether it
       runs in this request or in the next depends on when the last reference goes.
"""

import http.client
import itertools
import json
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import a2a_peer, samvad_peer
from bench.bodies import CHAT_PATH, chat_request, post
from bench.load import Wrong
from bench.process import run, serving
from carnet.testing.address import Address

ROOT = Path(__file__).parent.parent
WARM_UP = 20
COUNTED = 40
CALLERS = 16
EACH = 40  # requests of each caller under load
QUIET_SECONDS = 0.004
PATIENCE_SECONDS = 30.0

TOKEN_HOP, SIGNED_ECHO, SIGNED_HOP = "token hop", "signed echo", "signed hop"
TOKEN_ECHO, A2A_ECHO = "token echo", "a2a echo"
BUDGET_HOP = "budget hop"  # a token hop that brings a budget
AGENTS = """
[agents.up]
kind = "openai"
url = "http://127.0.0.1:{upstream}/v1"
model = "m"

[agents.signed]
kind = "samvad"
url = "http://127.0.0.1:{upstream}"
trust = "public"

[limits]
sender_calls_per_minute = 1000000000
agent_calls_per_minute = 1000000000
"""

LATER = "WeakSet.__init__.<locals>._remove"

Function = tuple[str, str, str]  # call or c_call, file, qualified name
Counts = Counter[Function]  # in the order in which they ran first


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """What one request of a kind calls."""

    name: str
    functions: Counts
    share: float  # of the requests that have exactly this many
    loaded: tuple[float, float] | None  # Python and C calls under load, on average

    def of(self, kind: str) -> int:
        return sum(number for (event, _, _), number in self.functions.items() if event == kind)

    @property
    def python(self) -> int:
        return self.of("call")

    @property
    def c(self) -> int:
        return self.of("c_call")

    @property
    def all(self) -> int:
        return self.python + self.c


class Meter:
    """Asks a counted process."""

    def __init__(self, address: Path) -> None:
        self._line = socket.socket(socket.AF_UNIX)
        self._line.settimeout(PATIENCE_SECONDS)
        self._line.connect(str(address))
        self._file = self._line.makefile("rb")

    def _ask(self, word: bytes) -> bytes:
        self._line.sendall(word)
        return self._file.readline()

    def taken(self) -> Counts:
        """What was counted since the last time, as soon as it does not grow any more."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        last = b""
        while (now := self._ask(b"n")) != last:
            if time.monotonic() > deadline:
                raise Wrong("the gateway does not come to rest")
            last = now
            time.sleep(QUIET_SECONDS)
        counts: Counts = Counter()
        for kind, file, name, number in json.loads(self._ask(b"w")):
            if name != LATER:
                counts[kind, file, name] += number
        return counts

    def close(self) -> None:
        self._file.close()
        self._line.close()


def count(
    name: str,
    port: int,
    address: Path,
    requests: Iterator[bytes],
    callers: int,
    times: int = COUNTED,
) -> Called:
    """Send them one by one; what most of them call."""
    meter = Meter(address)
    found: list[Counts] = []
    try:
        average = under_load(meter, port, requests, callers) if callers else None
        with socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) as line:
            for request in itertools.islice(requests, WARM_UP):
                _ask(line, request)
            meter.taken()
            for request in itertools.islice(requests, times):
                _ask(line, request)
                found.append(meter.taken())
    finally:
        meter.close()
    least = min(found, key=Counter.total)
    share = sum(each.total() == least.total() for each in found) / len(found)
    return Called(name=name, functions=least, share=share, loaded=average)


def under_load(
    meter: Meter, port: int, requests: Iterator[bytes], callers: int
) -> tuple[float, float]:
    """Python and C calls of a request where several callers ask at once."""
    number = callers * EACH
    _ask_at_once(port, list(itertools.islice(requests, number)), callers)  # to warm up
    meter.taken()
    _ask_at_once(port, list(itertools.islice(requests, number)), callers)
    counts = meter.taken()
    kinds = [
        sum(number for (kind, _, _), number in counts.items() if kind == wanted)
        for wanted in ("call", "c_call")
    ]
    return kinds[0] / number, kinds[1] / number


def _ask_at_once(port: int, requests: list[bytes], callers: int) -> None:
    shares = [requests[number::callers] for number in range(callers)]
    threads = [threading.Thread(target=_ask_all, args=(port, share)) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _ask_all(port: int, requests: list[bytes]) -> None:
    with socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) as line:
        for request in requests:
            _ask(line, request)


def _ask(line: socket.socket, request: bytes) -> None:
    line.sendall(request)
    response = http.client.HTTPResponse(line)
    response.begin()
    body = response.read()
    if response.status != http.client.OK or b'"error":{' in body:  # JSON-RPC refuses with 200 too
        raise Wrong(f"{response.status}: {body[:200]!r}")


@contextmanager
def counted(folder: Path) -> Iterator[tuple[int, Path, str]]:
    """A counted gateway with its agents, and the upstream behind them; port, socket, token."""
    python = sys.executable
    env = {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
    carnet = [python, "-m", "carnet.cli.main"]
    with Address() as at, Address() as upstream:
        run([*carnet, "init", str(folder), "--port", str(at.port)], folder=folder, env=env)
        with (folder / "carnet.toml").open("a") as settings:
            settings.write(AGENTS.format(upstream=upstream.port))
        keys = samvad_peer.client_keys(folder / "keys")
        pin = ["peers", "add", samvad_peer.SENDER, "--key", keys.public_key_b64]
        run([*carnet, *pin], folder=folder, env=env)
        address = folder / "counts"
        behind = [python, "-m", "bench.upstream", str(upstream.fd)]
        command = [python, "-m", "bench.counted", str(address), "serve", "--fd", str(at.fd)]
        with (
            serving(behind, at=upstream, core=None, folder=folder, env=env),
            serving(command, at=at, core=None, folder=folder, env=env),
        ):
            yield at.port, address, (folder / "var" / "starter.token").read_text().strip()


def calls(folder: Path, *, callers: int = CALLERS) -> list[Called]:
    """Count each kind of request at a gateway in this folder; without callers, alone only."""
    with counted(folder) as (port, address, token):
        keys = samvad_peer.client_keys(folder / "keys")
        signed = samvad_peer.requests
        shown = {"authorization": f"Bearer {token}"}
        bounded = {**shown, "carnet-budget": "calls=9,tokens=99999"}
        home = "carnet.localhost"
        hop = signed(keys, to=f"agent://signed.{home}", skill="chat", prefix="/agents/signed")
        kinds: dict[str, Iterator[bytes]] = {
            TOKEN_HOP: itertools.repeat(post(CHAT_PATH, chat_request("up"), shown)),
            BUDGET_HOP: itertools.repeat(post(CHAT_PATH, chat_request("up"), bounded)),
            TOKEN_ECHO: itertools.repeat(post(CHAT_PATH, chat_request("echo"), shown)),
            A2A_ECHO: a2a_peer.requests(**shown),
            SIGNED_ECHO: signed(keys, to=f"agent://{home}", skill="chat"),
            # The nonces of one sender must differ over all of its requests.
            SIGNED_HOP: itertools.islice(hop, WARM_UP + COUNTED + 2 * callers * EACH, None),
        }
        return [count(name, port, address, asked, callers) for name, asked in kinds.items()]


def show_calls(found: list[Called], *, by: str | None) -> None:
    """Print the totals, and where they come from."""
    print(f"{'':<12} {'alone: Python':>14} {'C':>6} {'all':>6}", end="")
    print(f"   {CALLERS} at once: {'Python':>6} {'C':>6} {'all':>6}")
    for one in found:
        python, c = one.loaded or (0, 0)
        print(f"{one.name:<12} {one.python:>14} {one.c:>6} {one.all:>6}", end="")
        print(f"{python:>21.0f} {c:>6.0f} {python + c:>6.0f}")
    print(f"\nAlone is the least of {COUNTED} requests, exactly; at once is an average.")
    for one in found if by is not None else ():
        print(f"\n{one.name}\n{'Python':>7} {'C':>7} {'all':>7}  {by}")
        for place, (python, c) in table(one, by=by or "file"):
            print(f"{python:>7} {c:>7} {python + c:>7}  {place}")


def table(found: Called, *, by: str) -> list[tuple[str, tuple[int, int]]]:
    """Python and C calls of each file or function, the most first.

    A Python call counts where the called function stands, a C call where it is called.
    """
    rows: dict[str, list[int]] = {}
    for (kind, file, name), number in found.functions.items():
        place = shortened(file) if by == "file" else f"{shortened(file)} {name}"
        rows.setdefault(place, [0, 0])[kind == "c_call"] += number
    pairs = [(place, (python, c)) for place, (python, c) in rows.items()]
    return sorted(pairs, key=lambda row: (-sum(row[1]), row[0]))


def shortened(file: str) -> str:
    """A file by what tells it from others."""
    for mark in ("/src/", "/site-packages/", "/lib/python3"):
        _, found, rest = file.rpartition(mark)
        if found:
            return rest.partition("/")[2] if mark == "/lib/python3" else rest
    return file


def calls_json(found: list[Called]) -> dict[str, dict[str, int]]:
    """The same for machines."""
    return {
        one.name: {
            "python": one.python,
            "c": one.c,
            "all": one.all,
            **({} if one.loaded is None else {"all_at_once": round(sum(one.loaded))}),
        }
        for one in found
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        Path(sys.argv[1]).write_text(json.dumps(calls_json(calls(Path(scratch), callers=0))))
