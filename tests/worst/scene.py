"""A gateway as its defaults are, a caller that does its worst, another, and receivers of webhooks.

The gateway, the attacker and the receivers are processes; the other caller is this one.
"""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from carnet.testing.wait import until
from tests.support.organisation import Organisation
from tests.support.webhooks.receivers import ROOT, Receivers, receiving
from tests.worst.other import Noticed, Other

ENDING_SECONDS = 120.0  # for an attacker that was told for how long
AGENTS = '''
import asyncio

WORDS = "so it goes on and on " * 800


async def echo(visit):
    return visit.text


async def brief(visit):
    """Say little, whatever it was told."""
    return "ok"


async def words(visit):
    """As many as the text asks for, one by one."""
    for number in range(int(visit.text)):
        yield f"{number} "


async def endless(visit):
    while True:
        yield WORDS
        await asyncio.sleep(0)


async def sleeper(visit):
    await asyncio.sleep(2)
    return "awake"
'''
NAMES = ("brief", "words", "endless", "sleeper")
CONFIG = "".join(f'[agents.{name}]\nkind = "python"\ntarget = "agents:{name}"\n' for name in NAMES)


class Outcome(Struct, frozen=True):
    """What came of one attack, and what the other caller noticed of it."""

    noticed: Noticed
    seen: dict[str, int]  # the attacker's answers, by what was asked
    peak_bytes: int  # of the gateway's memory while it went on


class Scene:
    """All of them, with the gateway started."""

    def __init__(self, gateway: Organisation, receivers: Receivers, rate: str = "") -> None:
        """`rate` is what the attacker's token may ask for, `600/min` for example."""
        self.gateway = gateway
        self._receivers = receivers
        self._attacker = gateway.new_token("attacker", *(("--rate", rate) if rate else ()))
        self._scraper = gateway.new_token("scraper", "--scope", "metrics")
        token = gateway.new_token("other")
        self._other = Other(gateway.port, token, receivers.url("well", "/other"))

    def quiet(self, seconds: float) -> Noticed:
        """What the other caller notices while nobody else calls."""
        return asyncio.run(self._other.go_on(seconds))

    def attacked(self, seconds: float, names: Sequence[str]) -> Outcome:
        """What it notices during these attacks, and until they have ended."""
        self._forget_peak()
        urls = [self._receivers.url(name) for name in ("gone", "failing")]
        words = [str(self.gateway.port), str(seconds), ",".join(names), *urls]
        attacker = subprocess.Popen(  # noqa: S603  our own module
            [sys.executable, "-m", "tests.worst.attacker", *words],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert attacker.stdin is not None
            assert attacker.stdout is not None
            attacker.stdin.write(self._attacker + "\n")
            attacker.stdin.flush()
            assert attacker.stdout.readline() == "begun\n"
            noticed = asyncio.run(self._other.go_on(seconds))
            output, _ = attacker.communicate(timeout=ENDING_SECONDS)
        finally:
            attacker.kill()
            attacker.wait()
        assert attacker.returncode == 0
        return Outcome(noticed, json.loads(output), self._memory("VmHWM"))

    def resident_bytes(self) -> int:
        """What the gateway has in memory now."""
        return self._memory("VmRSS")

    def wait_for_the_end(self) -> None:
        """Wait until no call of anybody is open, and the other's webhooks have arrived."""
        until(lambda: self._open_calls() == "0.0", seconds=ENDING_SECONDS)
        until(lambda: self.arrived() >= self._other.callbacks, seconds=ENDING_SECONDS)

    def arrived(self) -> int:
        """How many of the other's webhooks have come."""
        ids = {one["headers"]["webhook-id"] for one in self._receivers.received("well")}
        return len(ids)

    def _open_calls(self) -> str:
        lines = self.gateway.get("/metrics", token=self._scraper).body.decode().splitlines()
        (found,) = [line for line in lines if line.startswith("carnet_open_calls ")]
        return found.split()[1]

    def _memory(self, name: str) -> int:
        found = re.search(rf"{name}:\s+(\d+) kB", (self._process / "status").read_text())
        assert found
        return int(found[1]) * 1024

    def _forget_peak(self) -> None:
        (self._process / "clear_refs").write_text("5")  # VmHWM is counted from now

    @property
    def _process(self) -> Path:
        assert self.gateway.process is not None
        return Path(f"/proc/{self.gateway.process.pid}")


@contextmanager
def staged(folder: Path, rate: str = "") -> Iterator[Scene]:
    """The scene, in a folder; its gateway is stopped at the end, and has to end well."""
    with receiving(folder, "well", "gone", "failing") as receivers:
        gateway = Organisation(folder / "acme", "acme.example")
        allowed = ", ".join(f'"127.0.0.1:{port}"' for port in receivers.ports.values())
        egress = f"[egress]\nallow = [{allowed}]\n"
        gateway.configure(CONFIG + egress, agents=AGENTS)
        gateway.start()
        try:
            yield Scene(gateway, receivers, rate)
            assert gateway.stop() == 0
        finally:
            gateway.kill()
