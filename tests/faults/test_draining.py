"""SIGTERM in the midst of many streams: none is lost, none is told as done that is not (F30).

`make drain` does it with 1,000 streams, on both stores; `FAULT_STREAMS` is their number.
"""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from carnet.testing.wait import until
from tests.faults.scene import HELD, HELD_CONFIG, PRICE, ids
from tests.faults.stores import move_to, number, rows
from tests.selection import STORES
from tests.stores.support import servers
from tests.support.federation import organisation
from tests.support.http import chat_body, request
from tests.support.organisation import Organisation
from tests.support.served import AGENTS

STREAMS = int(os.environ.get("FAULT_STREAMS", "100"))
ON = STORES if "FAULT_STREAMS" in os.environ else STORES[:1]
DRAIN_SECONDS = 8
BOUND_SECONDS = 60  # for what takes a moment, on a machine that is busy
CONFIG = f"""{HELD_CONFIG}
[limits]
streams_per_caller = {2 * STREAMS}
calls_per_caller = {2 * STREAMS}
"""


@pytest.fixture(params=ON)
def acme(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Organisation]:
    gateway = organisation(tmp_path / "acme", "acme.example")
    if request.param == "postgres":
        server: servers.Server = request.getfixturevalue("server")  # not started for SQLite alone
        move_to(gateway, server.create())
    gateway.configure(CONFIG, agents=AGENTS + HELD)
    config = gateway.folder / "carnet.toml"
    config.write_text(
        config.read_text().replace("[gateway]", f"[gateway]\ndrain_seconds = {DRAIN_SECONDS}", 1)
    )
    gateway.start()
    yield gateway
    gateway.kill()


class Stream:
    """One client that reads an answer to its end."""

    def __init__(self, gateway: Organisation, n: int) -> None:
        self.run = f"conv_{n:04}"
        self.until = "go" if n % 2 else "never"  # what its agent waits for
        self.received = b""
        self._gateway = gateway
        self.begun = asyncio.Event()

    async def read(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._gateway.port)
        try:
            writer.write(self._request())
            while data := await reader.read(65_536):
                self.received += data
                if b"half " in self.received:
                    self.begun.set()
        finally:
            self.begun.set()
            writer.close()

    def _request(self) -> bytes:
        body = chat_body(self.until, "held", stream=True)
        fields = [
            ("host", "acme"),
            ("authorization", f"Bearer {self._gateway.token}"),
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("connection", "close"),
            *ids(self.run),
        ]
        head = "".join(f"{name}: {value}\r\n" for name, value in fields)
        return f"POST /v1/chat/completions HTTP/1.1\r\n{head}\r\n".encode() + body

    @property
    def end(self) -> str:
        """How it ended for its client."""
        if b"data: [DONE]" in self.received:
            return (
                "done"
                if b"whole " in self.received and b'"error"' not in self.received
                else "false"
            )
        return "shutting_down" if b'"shutting_down"' in self.received else "broken"


def check_refusing(gateway: Organisation) -> None:
    """It takes nothing new, and is still there to say so."""
    reply = gateway.chat("new work", headers=ids("conv_late"))
    assert (reply.status, reply.code) == (503, "shutting_down")
    assert int(reply.headers["retry-after"]) >= 1
    signed = request("POST", gateway.url + "/agent/message", (), b"{}")
    assert (signed.status, signed.json["error"]["code"]) == (503, "AGENT_UNAVAILABLE")
    assert gateway.get("/healthz").status == 200


def stop_and_look(gateway: Organisation) -> float:
    """Tell it to stop, look at it, let half of the streams end; how long until its end."""
    assert gateway.process is not None
    began = time.monotonic()
    gateway.process.send_signal(signal.SIGTERM)
    until(lambda: gateway.get("/readyz").status == 503)
    (gateway.folder / "go").touch()
    check_refusing(gateway)
    assert gateway.process.wait(BOUND_SECONDS) == 0
    return time.monotonic() - began


@pytest.mark.timeout(300)
async def test_f30_a_stop_amid_many_streams_finishes_or_fails_each_and_loses_none(
    acme: Organisation,
) -> None:
    streams = [Stream(acme, n) for n in range(STREAMS)]
    async with asyncio.timeout(3 * BOUND_SECONDS), asyncio.TaskGroup() as reading:
        for stream in streams:
            reading.create_task(stream.read())
        for stream in streams:
            await stream.begun.wait()
        took = await asyncio.to_thread(stop_and_look, acme)
    half = STREAMS // 2
    assert Counter(stream.end for stream in streams) == {"done": half, "shutting_down": half}
    assert took >= DRAIN_SECONDS  # those that do not end are given their time
    acme.ended()
    recorded = rows(acme, "SELECT state, code, COUNT(*) FROM turn GROUP BY state, code")
    assert sorted(recorded) == [("done", None, half), ("failed", "shutting_down", half)]
    assert number(acme, "SELECT COUNT(*) FROM ledger") == half
    assert number(acme, "SELECT SUM(amount) FROM ledger") == half * PRICE
    assert b"Traceback" not in (acme.folder / "err.txt").read_bytes()

    acme.start()
    finished, cut = streams[1], streams[0]
    assert b"whole " in acme.chat("go", "held", headers=ids(finished.run), stream=True).body
    assert number(acme, "SELECT COUNT(*) FROM ledger") == half  # from the record
    (acme.folder / "never").touch()
    assert b"whole " in acme.chat("never", "held", headers=ids(cut.run), stream=True).body
    assert number(acme, "SELECT COUNT(*) FROM ledger") == half + 1
