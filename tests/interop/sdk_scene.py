"""The server of the `samvad` package as a process, and a gateway that it trusts."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from carnet.runtime.client_key import ClientKey, load_key
from tests.support.federation import organisation
from tests.support.http import request
from tests.support.organisation import Organisation, free_port

ROOT = Path(__file__).parents[2]
START_SECONDS = 60.0


class Scene(NamedTuple):
    """A gateway and a server of the SDK that trusts it, and a client that it trusts as well."""

    gateway: Organisation
    url: str
    key: ClientKey


@contextmanager
def serving(server: Path, port: int, folder: Path, **trusted: str) -> Iterator[None]:
    """A script that serves, until the context is left."""
    entries = [f"agent://{who}={key}" for who, key in trusted.items()]
    script = f"tests.interop.{server.stem}"
    command = [sys.executable, "-m", script, str(port), str(folder / "keys"), *entries]
    with (folder / "sdk.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)  # noqa: S603  our own
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _answers(port):
            assert process.poll() is None, (folder / "sdk.log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait(30)


def _answers(port: int) -> bool:
    try:
        return request("GET", f"http://127.0.0.1:{port}/agent/health").status == 200
    except OSError:
        return False


@contextmanager
def beside_gateway(server: Path, folder: Path) -> Iterator[Scene]:
    """A server of the SDK, and a gateway and a client that it trusts."""
    port, key = free_port(), load_key(folder / "client.key")
    url = f"http://127.0.0.1:{port}"
    gateway = organisation(folder / "acme", "acme.example")
    gateway.configure(
        f'[agents.sdk]\nkind = "samvad"\nurl = "{url}"\n'
        f'[peers."globex.example"]\nurl = "{url}"\ndialect = "samvad"\n'
    )
    gateway.start()
    (own,) = request("GET", gateway.url + "/.well-known/carnet.json").json["keys"]
    trusted = {"acme.example": own["key"], f"client-{key.kid}": key.public_text}
    with serving(server, port, folder, **trusted):
        yield Scene(gateway, url, key)
    gateway.stop()
