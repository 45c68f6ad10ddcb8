"""A server of the `a2a-sdk` package as a process, and a gateway whose agents lead to it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from carnet.testing.address import Address
from carnet.testing.wait import until
from tests.interop.a2a_client.sdk_server import CARD, SERVED
from tests.support.federation import organisation
from tests.support.http import Reply, request
from tests.support.organisation import Organisation

ROOT = Path(__file__).parents[3]
SCRIPT = "tests.interop.a2a_client.sdk_server"
KEYS = {
    "plain-rpc": 'api_key = {file = "../sesame"}\n',
    "plain-rest": 'token = {file = "../sesame"}\n',
}
CONFIG = "".join(
    f'[agents.{name}]\nkind = "a2a"\nurl = "{{url}}/{name}"\n{KEYS.get(name, "")}'
    for name in SERVED
)


class Scene(NamedTuple):
    """A gateway, and a server of the SDK."""

    gateway: Organisation
    url: str
    notes: Path

    def asked(self, *, text: str | None = None) -> list[dict[str, Any]]:
        """What the server was asked."""
        found = self.noted("asked")
        return [each for each in found if text is None or each["text"] == text]

    def noted(self, name: str) -> list[dict[str, Any]]:
        path = self.notes / f"{name}.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    def let_go(self, word: str) -> None:
        """Let what waits for a word go on."""
        (self.notes / f"go-{word}").write_text("")

    def again(self, waits: Reply, agent: str, text: str, *headers: tuple[str, str]) -> Reply:
        """Repeat the turn of an answer."""
        same = [(name, waits.headers[name]) for name in ("x-tangle-runid", "x-tangle-turnid")]
        return self.gateway.chat(text, agent, headers=[*same, *headers])


@contextmanager
def serving(folder: Path) -> Iterator[Address]:
    """The server of the SDK, until the context is left."""
    address = Address()
    command = [sys.executable, "-m", SCRIPT, str(address.fd), str(folder)]
    with (folder / "sdk.log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603  our own script
            command, cwd=ROOT, stdout=log, stderr=log, pass_fds=[address.fd]
        )

    def answers() -> bool:
        assert process.poll() is None, (folder / "sdk.log").read_text()
        try:
            return request("GET", f"{address.url}/rpc{CARD}").status == 200
        except OSError:
            return False

    try:
        until(answers)
        yield address
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def beside_gateway(folder: Path, database: str = "", more: str = "") -> Iterator[Scene]:
    """A server of the SDK, and a gateway with an agent for each of its addresses."""
    notes = folder / "notes"
    notes.mkdir()
    gateway = organisation(folder / "acme", "acme.example", database)
    with serving(notes) as address:
        (folder / "sesame").write_text("sesame-secret")
        (folder / "sesame").chmod(0o600)
        gateway.configure(CONFIG.replace("{url}", address.url) + more)
        gateway.start()
        yield Scene(gateway, address.url, notes)
        gateway.stop()
