"""The server of the `samvad` package as a process, and a gateway that it trusts."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from carnet.runtime.client.key import ClientKey, load_key
from carnet.testing.address import Address
from carnet.testing.wait import until
from tests.support.federation import organisation
from tests.support.http import request
from tests.support.organisation import Organisation

ROOT = Path(__file__).parents[3]


class Scene(NamedTuple):
    """A gateway and a server of the SDK that trusts it, and a client that it trusts as well."""

    gateway: Organisation
    url: str
    key: ClientKey


@contextmanager
def serving(server: Path, address: Address, folder: Path, **trusted: str) -> Iterator[None]:
    """A script that serves, until the context is left."""
    entries = [f"agent://{who}={key}" for who, key in trusted.items()]
    script = ".".join(server.relative_to(ROOT).with_suffix("").parts)
    command = [sys.executable, "-m", script, str(address.fd), str(folder / "keys"), *entries]
    with (folder / "sdk.log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603  our own script
            command, cwd=ROOT, stdout=log, stderr=log, pass_fds=[address.fd]
        )

    def answers() -> bool:
        assert process.poll() is None, (folder / "sdk.log").read_text()
        try:
            return request("GET", address.url + "/agent/health").status == 200
        except OSError:
            return False

    try:
        until(answers)
        yield
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def beside_gateway(server: Path, folder: Path) -> Iterator[Scene]:
    """A server of the SDK, and a gateway and a client that it trusts."""
    address, key = Address(), load_key(folder / "client.key")
    url = address.url
    gateway = organisation(folder / "acme", "acme.example")
    gateway.configure(
        f'[agents.sdk]\nkind = "samvad"\nurl = "{url}"\n'
        f'[peers."globex.example"]\nurl = "{url}"\ndialect = "samvad"\n'
    )
    gateway.start()
    (own,) = request("GET", gateway.url + "/.well-known/carnet.json").json["keys"]
    trusted = {"acme.example": own["key"], f"client-{key.kid}": key.public_text}
    with serving(server, address, folder, **trusted):
        yield Scene(gateway, url, key)
    gateway.stop()
